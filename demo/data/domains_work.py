"""Hand-written tools of work, school and technology; the notation is explained in domains_daily.py."""

TABLE = """
== math
calculate: Evaluate an arithmetic expression.
  expression! expr | Expression with + - * /
  precision int:0..8 | Digits after the point
! (calculate|compute|work out) {expression}[ to {precision} digits]
> What('s| is) {expression}?[ {precision} decimals.]
> How much is {expression}[, rounded to {precision} places]?
> I get a different number every time for {expression}, what is right?
solve_quadratic: Solve a quadratic equation a x^2 + b x + c = 0.
  a! int:-20..20 | Coefficient of x^2
  b! int:-60..60 | Coefficient of x
  c! int:-90..90 | Constant term
! solve the quadratic equation with a = {a}[, b = {b}][, c = {c}]
> What are the roots of {a}x^2 + {b}x + {c}?
> For which x is {a} x squared plus {b} x plus {c} zero?
> My homework has coefficients {a}, {b} and {c} of a quadratic; what are its solutions?
greatest_common_divisor: Greatest common divisor of two numbers.
  first! int:2..5000 | First number
  second! int:2..5000 | Second number
! find the greatest common divisor of {first}[ and {second}]
> What is the largest number that divides both {first} and {second}?
> GCD of {first} and {second}, please.
> I want to shorten the fraction {first}/{second}; by what?
triangle_area: Area of a triangle.
  base! num:1..90:1 | Length of the base
  height! num:1..90:1 | Height over the base
  unit enum:mm=millimetres,cm=centimetres,m=metres,inch=inches | Unit of the lengths
! (calculate|find) the area of a triangle with (base|a base of) {base}[ and height {height}][ in {unit}]
> How big is a triangle that is {base} wide[ and {height} high][ ({unit})]?
> A triangular sail has a base of {base}[ and a height of {height}][ {unit}]. What is its area?
> Base {base}, height {height}: which area does the triangle have?[ Units are {unit}.]
circle_properties: Circumference and area of a circle.
  radius! num:0.5..300:2 | Radius
  get enum:area,circumference,both=area and circumference | What to compute
! (compute|calculate) the[ {get}] of a circle with radius {radius}
> A round table has a radius of {radius}. What's its[ {get}]?
> How large is a circle of radius {radius}?[ I want the {get}.]
> Radius {radius}: tell me about that circle[ (just the {get})].
unit_conversion: Convert a quantity from one unit to another.
  value! num:0.1..9000:2 | Number to convert
  from_unit! enum:km=kilometres,mile=miles,kg=kilograms,lb=pounds,celsius=degrees Celsius,fahrenheit=degrees Fahrenheit,litre=litres,gallon=gallons,joule=joules,calorie=calories | Unit of the number
  to_unit! enum:km=kilometres,mile=miles,kg=kilograms,lb=pounds,celsius=degrees Celsius,fahrenheit=degrees Fahrenheit,litre=litres,gallon=gallons,joule=joules,calorie=calories | Wanted unit
! convert {value} {from_unit}[ to {to_unit}]
> How (many|much) is {value} {from_unit}[ in {to_unit}]?
> I have {value} {from_unit} and need {to_unit}.
> Express {value} {from_unit} in {to_unit}, would you?
prime_factors: Split a number into prime factors.
  number! int:10..99999 | Number
  format enum:list,string,exponents=with exponents | Form of the answer
! (factor|split) {number} into primes[, {format}]
> What are the prime factors of {number}?[ Give the result as {format}.]
> Is {number} a prime, or what is it made of?
> Which primes multiply to {number}?
statistics: Describe a list of numbers.
  numbers! list:int:1..500 | Numbers
  measures list:enum:mean=average,median,mode,variance,stdev=standard deviation | Measures to compute
! (compute|give me) the[ {measures}] of {numbers}
> What's the[ {measures}] of these numbers: {numbers}?
> I measured {numbers}.[ What are {measures}?]
> Analyse {numbers}[ and report {measures}].
linear_regression: Fit a straight line to points.
  x! list:num:0..90:1 | x values
  y! list:num:0..90:1 | y values
  predict num:0..200:1 | Point at which to predict
! fit a line to x = {x}[ and y = {y}][ and predict at {predict}]
> With x being {x}[ and y being {y}], what is the regression line?[ What does it say for {predict}?]
> Here are my data. x: {x}[; y: {y}]. I need a linear fit[ and the value at {predict}].
> y is {y} when x is {x}: draw the best line through that.
random_number: Draw random numbers.
  minimum! int:0..500 | Lowest number
  maximum! int:501..99999 | Highest number
  count int:1..20 | How many = 1
! (draw|pick)[ {count}] random numbers between {minimum}[ and {maximum}]
> Give me a number from {minimum}[ to {maximum}].[ Or rather {count} of them.]
> I need[ {count}] lottery numbers, at least {minimum}[ and at most {maximum}].
> Surprise me with something between {minimum} and {maximum}.
== science
projectile_range: Range of a projectile without air.
  speed! num:1..300:1 | Initial speed in m/s
  angle! num:5..85:1 | Angle in degrees
  gravity num:1..25:2 | Gravity in m/s^2 = 9.81
! (compute|calculate) how far a ball flies at {speed} m/s[ and {angle} degrees][ with gravity {gravity}]
> I throw a stone at {speed} m/s[ under {angle} degrees]. Where does it land?[ Gravity is {gravity}.]
> What's the range of a shot with {speed} metres per second[ and an angle of {angle}°]?
> At {angle} degrees and {speed} m/s, how far does the arrow go?
ohms_law: Current, voltage or resistance by Ohm's law.
  voltage num:1..400:1 | Voltage in volts
  current num:0.1..20:2 | Current in amperes
  resistance num:1..9000:1 | Resistance in ohms
! use Ohm's law on a voltage of {voltage} V and a current of {current} A
> Which current flows through {resistance} ohms at {voltage} volts?
> What voltage drives {current} A through {resistance} Ω?
> A heater takes {current} amperes from {voltage} volts, what is its resistance?
> {voltage} V over {resistance} ohms: how many amps?
kinetic_energy: Kinetic energy of a moving body.
  mass_kg! num:0.1..5000:1 | Mass in kilograms
  velocity! num:0.1..900:1 | Velocity in m/s
! (calculate|find) the kinetic energy of {mass_kg} kg[ at {velocity} m/s]
> How much energy is in a {mass_kg} kg body[ that moves at {velocity} metres per second]?
> A cart of {mass_kg} kilograms rolls along[ with {velocity} m/s]; what's its kinetic energy?
> Moving at {velocity} m/s and weighing {mass_kg} kg, which energy does it carry?
element_info: Properties of a chemical element.
  element! word | Name or symbol of the element
  property enum:mass=atomic mass,number=atomic number,melting_point=melting point,density | Property wanted
! look up the[ {property}] of {element}
> What is the[ {property}] of the element {element}?
> Tell me about {element}[, especially its {property}].
> In chemistry class we talked about {element}; what was its[ {property}]?
molar_mass: Molar mass of a compound.
  formula! code | Chemical formula
  moles num:0.1..20:2 | Amount in moles = 1
! (calculate|find) the molar mass of {formula}[ for {moles} mol]
> How much do[ {moles} moles of] {formula} weigh?
> What's the mass of[ {moles} mol] {formula}?
> I need to weigh out[ {moles} mol of] {formula}. How many grams?
dna_complement: Complement of a DNA sequence.
  sequence! id | Sequence of bases
  reverse bool | Whether to reverse the result
! (find|write) the complement of the sequence {sequence}[{reverse?, reversed|, not reversed}]
> What pairs with {sequence}?[{reverse? Turn it round.| Keep the direction.}]
> The strand reads {sequence}, what is on the other one?
> {sequence} is my primer; which strand does it bind to?
planet_position: Position of a planet in the sky.
  planet! enum:mercury=Mercury,venus=Venus,mars=Mars,jupiter=Jupiter,saturn=Saturn,uranus=Uranus,neptune=Neptune | Planet
  city! city | Place of the observer
  date! date | Day, YYYY-MM-DD
! find {planet} in the sky[ over {city}][ on {date}]
> Where is {planet}[ on {date}][, seen from {city}]?
> We set up the telescope in {city}[ on {date}]: where must it point for {planet}?
> Can I see {planet} from {city} on {date}?
sunrise_sunset: Times of sunrise and sunset.
  latitude! num:-65..65:4 | Latitude in degrees
  longitude! num:-180..180:4 | Longitude in degrees
  date date | Day, YYYY-MM-DD
! get the sunrise at latitude {latitude}[ and longitude {longitude}][ on {date}]
> When does the sun set at {latitude}[, {longitude}][ on {date}]?
> My position is {latitude}[, {longitude}]. How long is it light[ on {date}]?
> At {latitude} / {longitude}, when does the day begin[ on {date}]?
species_info: Facts about a species.
  animal! animal | Animal
  topic enum:diet=what it eats,habitat=where it lives,lifespan=how old it gets,size=how big it is | Topic wanted
! find out about the {animal}[, {topic}]
> I want to know more about the {animal}[: {topic}].
> My daughter asks about the {animal}[ and {topic}].
> The {animal} is today's subject[, mainly {topic}].
== world
country_facts: Facts about a country.
  country! country | Country
  facts list:enum:capital,population,area,currency,languages | Facts wanted
! (look up|list) the[ {facts}] of {country}
> What's the[ {facts}] of {country}?
> I'm writing about {country}.[ I need its {facts}.]
> {country}: please fill in the[ {facts}].
historical_event: Find what happened in history.
  event! topic | Event
  country country | Country
  year int:800..2020 | Year
! (look up|find) the {event}[ in {country}][ of {year}]
> What do we know about the {event}[ in {country}][ in {year}]?
> When and why did the {event} happen[ in {country}]?[ It should be around {year}.]
> The exam covers the {event}[ of {year}]; what was that?
distance_between: Distance between two places.
  start! city | First place
  end! city | Second place
  mode enum:road=by road,air=as the crow flies,rail=by rail | How to measure
! (measure|calculate) the distance from {start}[ to {end}][ {mode}]
> How far is it from {start}[ to {end}][ {mode}]?
> Is {start} far from {end}?[ I mean {mode}.]
> Between {start} and {end}, how many kilometres are there[ {mode}]?
get_directions: Directions from one place to another.
  origin! address | Starting point
  destination! address | End point
  mode enum:driving=by car,walking=on foot,cycling=by bike,transit=by bus and train | Means of transport = driving
  avoid list:enum:tolls,ferries,motorways | What to avoid
! (give me directions|navigate) from {origin}[ to {destination}][ {mode}][ without {avoid}]
> How do I get to {destination} from {origin}[ {mode}]?[ Avoid {avoid}.]
> I'm at {origin} and must be at {destination}.[ I go {mode}.]
> Which way leads from {origin} to {destination}[ {mode}]?
population_density: Population density of a region.
  region! country | Region
  population! int:10000..90000000 | Number of people
  area_km2! num:10..900000:1 | Area in square kilometres
! calculate the population density of {region}[ with {population} people][ on {area_km2} km²]
> {region} has {population} inhabitants[ on {area_km2} square kilometres]. How dense is that?
> How crowded is {region}, {population} people[ and {area_km2} km2]?
> {population} people live on the {area_km2} square kilometres of {region}; how many is that for each?
time_in_city: Current local time of a city.
  city! city | City
  format enum:12h=12-hour clock,24h=24-hour clock | Form of the time
! tell me the time[ in {city}][, {format}]
> What time is it[ in {city}][ ({format})]?
> I want to phone somebody[ in {city}]; are they awake?
> How late is it[ in {city}] now?[ Use the {format}.]
== text
count_words: Count the words of a text.
  text! message | Text
  unique bool | Whether to count each word once
! count the words in "{text}"[{unique?, each once|, repeats included}]
> How many words does "{text}" have?[{unique? Count each only once.| Count repeats.}]
> Text: {text} How long is it in words?
> Is this short enough in words: {text}
summarize_url: Summarize a web page.
  url! url | Address of the page
  sentences int:1..10 | Length in sentences = 3
  language language | Language of the summary
! summarize {url}[ in {sentences} sentences][ in {language}]
> What does {url} say?[ {sentences} sentences will do.][ In {language}.]
> I have no time to read {url}, what's in it[ in {sentences} sentences]?
> Boil {url} down for me[ to {sentences} sentences].
replace_text: Replace words in a text.
  text! message | Text
  search! word | Word to look for
  replacement! word | Word to put there
  ignore_case bool | Whether capitals matter not
! replace {search}[ with {replacement}] in "{text}"[{ignore_case?, ignoring case|, case matters}]
> In "{text}", {search} should be[ {replacement}].
> Swap {search} for {replacement} in this text: {text}
> Wherever "{text}" has {search}, write {replacement}.
generate_password: Make a password.
  length! int:8..64 | Number of characters
  symbols bool | Whether to use symbols
  exclude code | Characters to leave out
! (generate|make) a password[ of {length} characters][{symbols? with symbols| without symbols}][, never using {exclude}]
> I need a new password[, {length} characters long].[{symbols? Symbols are allowed.| No symbols.}]
> What would be a safe password[ with {length} signs]?[ Leave out {exclude}.]
> Secure my account with {length} random characters[{symbols?, symbols too|, no symbols}].
detect_language: Find out the language of a text.
  text! unicode | Text
  top int:1..5 | Number of guesses
! detect the language of "{text}"[, {top} guesses]
> Which language is this: {text}?[ Give me {top} guesses.]
> I got a note that says {text} and cannot read it. What language is it?
> {text}: where does that come from, linguistically?
make_qr_code: Make a QR code.
  content! url | What the code holds
  size int:64..1024 | Width in pixels
  color color | Colour
! (make|create) a[ {color}] QR code for {content}[, {size} pixels wide]
> I need {content} as a QR code[ of {size} pixels][ in {color}].
> People should scan {content} from the poster; make the code[ {size} px].
> Turn {content} into something a phone camera can read.
== files
read_file: Read a file.
  path! path | Path of the file
  lines int:1..500 | Number of lines to read
! (open|read|show me)[ the first {lines} lines of] {path}
> What('s| is) in {path}?[ {lines} lines are enough.]
> I'd like to see[ {lines} lines of] {path}.
> Let me look into {path}[, top {lines} lines].
write_file: Write text to a file.
  path! path | Path of the file
  content! message | Text
  append bool | Whether to append to what is there
! write "{content}"[ to {path}][{append?, appending it|, replacing what is there}]
> {path} should contain: {content}[{append? Add it at the end.| Overwrite the rest.}]
> Save this[ in {path}]: {content}
> Store {content} under {path}.
copy_file: Copy a file to another place.
  source! path | File to copy
  destination! folder | Folder to copy to
  overwrite bool | Whether to replace a file of that name
! copy {source}[ to {destination}][{overwrite?, replacing what is there|, but replace nothing}]
> I need {source} in {destination} too.
> Put a copy of {source}[ into {destination}].[{overwrite? Overwriting is fine.| Don't overwrite.}]
> {destination} lacks {source}; bring it there and keep the original.
find_files: Find files by name.
  pattern! filename | Name to look for
  folder! folder | Where to look
  max_size_mb int:1..500 | Largest size in MB
! (find|search for) {pattern}[ in {folder}][ up to {max_size_mb} MB]
> Where below {folder} is {pattern}?[ It is smaller than {max_size_mb} MB.]
> I lost {pattern}, it must be somewhere[ in {folder}].
> Is there a {pattern} anywhere under {folder}?
compress_folder: Pack a folder into an archive.
  folder! folder | Folder to pack
  archive! filename | Name of the archive
  format enum:zip,tar_gz=tar.gz,seven_zip=7z | Format
  level int:1..9 | Compression level
! (pack|compress) {folder}[ into {archive}][ as {format}][ at level {level}]
> {folder} takes too much room, make {archive} of it[ ({format})].
> I want to mail {folder}; put it all in {archive}[, format {format}][, level {level}].
> Archive {folder} under the name {archive}.
== servers
restart_service: Restart a service on a server.
  host! word | Name of the server
  service! word | Name of the service
  graceful bool | Whether to wait for open requests
! restart {service}[ on {host}][{graceful?, gracefully|, at once}]
> {service} hangs[ on {host}], give it a kick.
> The {service} daemon[ of {host}] needs a restart.[{graceful? Let it finish its requests.| Don't wait for anything.}]
> Bring {service} down and up again[ on {host}].
check_disk: Free disk space of a server.
  host! word | Name of the server
  mount folder | Mounted folder
  unit enum:gb=gigabytes,mb=megabytes,percent | Unit
! check the disk[ of {host}][ at {mount}][ in {unit}]
> How full is {host}[, mount {mount}]?[ Tell me {unit}.]
> Is there still room on {host}[ in {mount}]?
> {host} complains about space[ on {mount}]; how much is left?
scale_deployment: Set the number of copies of a service.
  deployment! word | Name of the deployment
  replicas! int:0..60 | Number of copies
  namespace word | Namespace
! scale {deployment}[ to {replicas} replicas][ in {namespace}]
> We need {replicas} copies of {deployment}[ in the namespace {namespace}].
> Traffic is up, so run {replicas} instances of {deployment}[ in {namespace}].
> {deployment} should have {replicas} pods from now on[ ({namespace})].
ping_host: Measure the delay to a host.
  host! url | Host or address
  count int:1..20 | Number of packets = 4
  timeout_ms int:100..5000 | Time limit in milliseconds
! ping {host}[ {count} times][ with a timeout of {timeout_ms} ms]
> Is {host} up?[ Try {count} times.]
> How slow is {host}[ over {count} packets]?[ Give up after {timeout_ms} ms.]
> I can't reach {host}, does it answer you?
query_logs: Search the logs.
  service! word | Service
  level enum:debug,info,warning=warnings,error=errors | Lowest level
  since moment | Start of the time span
  contains word | Word in the line
! search the logs of {service}[ for {level}][ since {since}][ with the word {contains}]
> What did {service} log[ since {since}]?[ Only {level}.]
> Did {service} report any[ {level}] (|lately)[ about {contains}]?
> {service} went down, show me what it wrote[ from {since} on].
== development
create_issue: Open an issue in a tracker.
  repository! path | Repository
  title! topic | Title
  body message | Text
  labels list:tag | Labels
  priority enum:low,medium,high,critical | Priority
! (open|file) a[ {priority}] issue about the {title}[ in {repository}][ with labels {labels}][ saying "{body}"]
> I found a bug: {title}. Put it[ in {repository}] as[ {priority}] issue.
> {repository} needs a ticket titled {title}[: {body}].[ Label it {labels}.]
> Somebody should fix the {title}, track it[ under {repository}].
merge_pull_request: Merge a pull request.
  repository! path | Repository
  number! int:1..9000 | Number of the request
  method enum:merge=a merge commit,squash=squashing,rebase=rebasing | How to merge
! merge (pull request|PR) {number}[ in {repository}][ by {method}]
> Number {number}[ of {repository}] looks fine, take it in[ by {method}].
> PR {number} can go in[, repository {repository}].
> Please land {number} of {repository}.
run_tests: Run the tests of a project.
  project! folder | Folder of the project
  filter word | Only tests whose name has this
  parallel int:1..32 | Number of jobs
! run the[ {filter}] tests[ in {project}][ with {parallel} jobs]
> Do the tests[ of {project}] still pass?[ Only {filter}.]
> I changed something[ in {project}], test it[ on {parallel} cores].
> Check {project}[, only {filter} tests].
run_query: Run an SQL query on a database.
  database! word | Name of the database
  table! word | Table to read
  columns list:word | Columns to return
  limit int:1..1000 | Largest number of rows
! (fetch|select)[ {columns} from] the table {table}[ of {database}][, at most {limit} rows]
> What does {table} hold[ in the {database} database]?[ {limit} rows.][ I need {columns}.]
> Show me[ {limit} rows of] {table}[ in {database}].
> From {database}, pull[ {columns} of] {table}.
create_user: Create an account.
  username! word | Name of the account
  email! email | Email address
  role enum:admin=administrator,editor,viewer,guest | Role
  quota_gb int:1..500 | Storage in GB
! create (an account|a user) {username}[ with the address {email}][ as {role}][ and {quota_gb} GB]
> {username} starts today[, mail {email}], they need an account[ as {role}].
> Set up {username}[ ({email})] as a new user[ with {quota_gb} gigabytes].
> Let {username} in[, reachable at {email}][, role {role}].
deploy: Deploy a version of a service.
  service! word | Service
  version! id | Version
  environment! enum:production,staging,testing | Where to
  config obj(region:city,instances:int:1..20) | Settings
! deploy {service}[ version {version}][ to {environment}]
> {service} {version} is ready[ for {environment}].
> Ship {version} of {service}[ to {environment}][, {config.instances} instances in {config.region}].
> Put {service}[ {version}] live[ on {environment}].
== office
create_invoice: Write an invoice.
  customer! company | Customer
  items! rows(item:good,quantity:int:1..90) | What is billed
  due_date! date | Day of payment, YYYY-MM-DD
  tax_percent num:0..25:1 | Tax in percent
! (create|write) an invoice for {customer}[ over {items}][, due {due_date}][, with {tax_percent} % tax]
> Bill {customer} for {items}[, payable by {due_date}][, tax {tax_percent} percent].
> {customer} bought {items}; make the invoice[ due on {due_date}].
> Charge {customer} for {items}, they have until {due_date}.
book_room: Book a meeting room.
  room! word | Name of the room
  start! moment | Start, YYYY-MM-DDTHH:MM
  hours! num:0.5..8:1 | Length in hours
  equipment list:good | Things needed
! (book|reserve) the room {room}[ on {start}][ for {hours} hours][ with {equipment}]
> We meet in {room}[ on {start}][, {hours} hours]. Book it.[ We need {equipment}.]
> Is {room} free[ on {start}]? Then take it[ for {hours} hours].
> {hours} hours in {room} from {start}, please.
request_leave: Ask for days off.
  employee! name | Who
  start_date! date | First day, YYYY-MM-DD
  end_date! date | Last day, YYYY-MM-DD
  type enum:vacation,sick=sick leave,parental=parental leave,unpaid=unpaid leave | Kind of leave
! request[ {type}] for {employee}[ from {start_date}][ to {end_date}]
> {employee} will be away[ from {start_date}][ until {end_date}].[ It is {type}.]
> Please enter[ {type}] for {employee}[: {start_date}][ to {end_date}].
> Between {start_date} and {end_date} {employee} isn't here[ ({type})].
salary_after_tax: Net salary.
  gross! int:12000..250000 | Yearly salary before tax
  country! country | Country
  married bool | Whether married
! calculate the net salary of {gross}[ in {country}][{married? for a married person| for a single person}]
> I earn {gross} a year[ in {country}]; what's left after tax?[{married? I'm married.| I'm not married.}]
> An offer of {gross}[ in {country}], what's that net?
> How much of {gross} does the taxman in {country} leave me?
search_jobs: Search for jobs.
  title! topic | Job title
  location city | Place
  min_salary int:18000..180000 | Lowest salary
  remote bool | Whether to work from home
! (find|search for) {title} jobs[ in {location}][ paying {min_salary} or more][{remote?, remote|, on site}]
> I want to work in the field of {title}[, around {location}].[{remote? From home, please.| Not from home.}]
> Who is hiring for {title}[ in {location}]?[ I need {min_salary} a year.]
> My next job should be about {title}[, at least {min_salary}].
open_ticket: Open a support ticket.
  customer_id! id | Number of the customer
  problem! message | What is wrong
  urgency! enum:low,normal,high,blocker | Urgency
  contact obj(name:name,phone:phone) | Who to call back
! open a ticket for customer {customer_id}[ with urgency {urgency}]: {problem}
> Customer {customer_id} writes: "{problem}"[ Urgency {urgency}.] File it.
> Support case of {urgency} urgency[, customer {customer_id}]: {problem}[ Call {contact.name} on {contact.phone}.]
> {customer_id} is unhappy ({urgency}): {problem}
ship_package: Ship a package.
  recipient! name | Who gets it
  address! obj(street:address,city:city,country:country) | Address
  weight_kg! num:0.1..30:2 | Weight in kilograms
  express bool | Whether to use the fast service
  insurance num:10..2000:2 | Insured value
! ship {weight_kg} kg to {recipient}[, {address.street}, {address.city}, {address.country}][{express?, express|, standard}][, insured for {insurance}]
> {recipient} in {address.city} ({address.street}, {address.country}) gets a parcel[ of {weight_kg} kg].[{express? Make it fast.| The slow way is fine.}]
> Send a package[ of {weight_kg} kilograms] to {recipient}, {address.street} in {address.city}, {address.country}.
> A box[ weighing {weight_kg} kg] must go to {address.street}, {address.city} ({address.country}), care of {recipient}.
check_inventory: Stock of an article in a warehouse.
  sku! id | Article number
  warehouse! city | Warehouse
  include_reserved bool | Whether to count reserved pieces
! check the stock of {sku}[ in {warehouse}][{include_reserved?, including reserved ones|, without reserved ones}]
> How many {sku} do we have[ in {warehouse}]?[{include_reserved? Count reserved ones too.| Only free ones.}]
> Does {warehouse} still have {sku}?
> A customer asks for {sku}; is there any left in {warehouse}?
== home and garden
control_light: Control a lamp.
  room! room | Room
  brightness! int:0..100 | Brightness in percent
  color color | Colour
! set the (lamp|light) in the {room}[ to {brightness} percent][ in {color}]
> It's too dark in the {room}[, {brightness} % would be good].[ Make it {color}.]
> I'd like[ {color}] light[ at {brightness} percent] in the {room}.
> The {room} at {brightness} percent, please[, {color}].
set_temperature: Set the temperature of a room.
  room! room | Room
  temperature! num:12..28:1 | Temperature in degrees
  until clock | End, HH:MM
! (heat|set) the {room}[ to {temperature} degrees][ until {until}]
> I'm freezing in the {room}[, make it {temperature} degrees][ till {until}].
> The {room} should have[ {temperature} °C][ up to {until}].
> {temperature} degrees would be perfect for the {room}.
water_plants: Water plants.
  plant! food | Plant
  amount_ml! int:50..5000 | Amount of water in millilitres
  bed enum:north,south,greenhouse=in the greenhouse,balcony=on the balcony | Which bed
! water the {plant}[ with {amount_ml} ml][ {bed}]
> The {plant} look dry[, give them {amount_ml} millilitres].
> Let {amount_ml} ml of water run onto the {plant}[ {bed}].
> My {plant} are thirsty: {amount_ml} ml, please.
property_search: Search for houses and flats.
  city! city | City
  bedrooms! int:1..7 | Number of bedrooms
  max_price! int:50000..2000000 | Highest price
  type enum:house,flat,loft,farm | Kind of home
  features list:enum:garden,garage,balcony,pool,lift | What it must have
! find a[ {type}] in {city}[ with {bedrooms} bedrooms][ for up to {max_price}][, with {features}]
> We're moving to {city} and need[ {bedrooms} bedrooms][ for less than {max_price}].[ It must have {features}.]
> What[ {type}] can I buy in {city}[ for {max_price}][ with {bedrooms} bedrooms]?
> {bedrooms} bedrooms in {city}, no more than {max_price}: what's on the market?
pet_feeding: Feed a pet by machine.
  pet! name | Name of the pet
  grams! int:10..400 | Amount in grams
  times list:clock | Times, HH:MM
! feed {pet}[ {grams} grams][ at {times}]
> {pet} is hungry[, {grams} g should do].
> Give {pet}[ {grams} grams of food][ at {times}].
> I'm out; make sure that {pet} gets {grams} g[ at {times}].
paint_needed: Amount of paint for a wall.
  width_m! num:1..20:2 | Width in metres
  height_m! num:1..6:2 | Height in metres
  coats int:1..4 | Number of coats = 1
! calculate the paint for a wall {width_m} m wide[ and {height_m} m high][, {coats} coats]
> My wall is {width_m} metres wide[ and {height_m} tall]. How much paint do I need[ for {coats} coats]?
> How many litres cover {width_m} by {height_m} metres[ {coats} times]?
> Width {width_m}, height {height_m}, in metres: what paint do I buy[ for {coats} coats]?
== sports and games
team_results: Results of a sports team.
  team! company | Name of the team
  season int:1990..2026 | Season
  competition title | Competition
! (show|get) the results of {team}[ in {season}][ in the {competition}]
> How did {team} do[ in {season}][ in the {competition}]?
> Did {team} win[ the {competition}][ in {season}]?
> I missed the games of {team}[ in the {season} season].
player_stats: Statistics of a player.
  player! name | Player
  statistic enum:goals,assists,rebounds,minutes=minutes played,cards | Which number
  season int:1990..2026 | Season
! look up the[ {statistic}] of {player}[ in {season}]
> How many[ {statistic}] does {player} have[ in {season}]?
> Is {player} any good[ this year, I mean {season}]?[ Compare {statistic}.]
> {player}: what's the record[ for {statistic}][ in {season}]?
roll_dice: Roll dice.
  dice! int:1..12 | Number of dice
  sides! int:3..100 | Sides of a die
  modifier int:-5..10 | Number to add
! roll {dice} dice[ with {sides} sides][ and add {modifier}]
> We need a throw of {dice} dice[, {sides} sides each][, plus {modifier}].
> {dice} d {sides}, let's see[, modifier {modifier}].
> Let luck decide: {dice} dice of {sides} sides.
move_piece: Move a chess piece.
  game_id! id | Number of the game
  from_square! word | Square it leaves
  to_square! word | Square it goes to
  promote enum:queen,rook,bishop,knight | New piece for a pawn
! move from {from_square}[ to {to_square}] in game {game_id}[ and promote to {promote}]
> In game {game_id} my piece goes from {from_square}[ to {to_square}].
> {from_square} to {to_square}, game {game_id}[, {promote}].
> My move in {game_id}: {from_square} takes {to_square}.
register_race: Register for a race.
  race! title | Name of the race
  runner! name | Name of the runner
  distance_km! num:3..100:1 | Distance in kilometres
  shirt_size enum:s=S,m=M,l=L,xl=XL | Size of the shirt
! (register|sign up) {runner} for {race}[ over {distance_km} km][, shirt size {shirt_size}]
> {runner} wants to run[ {distance_km} kilometres at] {race}.[ Shirt: {shirt_size}.]
> Put {runner} on the list of {race}[ ({distance_km} km)].
> {race}, {distance_km} km, runner {runner}: enter that.
== vehicles and energy
charge_car: Charge an electric car.
  vehicle! word | Name of the car
  target_percent! int:20..100 | Level to reach
  start_time clock | Start, HH:MM
  max_current int:6..32 | Largest current in amperes
! charge {vehicle}[ to {target_percent} percent][ from {start_time}][ at {max_current} A]
> {vehicle} needs to be[ at {target_percent} %] tomorrow.[ Begin at {start_time}.]
> Fill up {vehicle}[ up to {target_percent} percent][, not above {max_current} amperes].
> Power is cheap[ from {start_time}], so load {vehicle}[ to {target_percent} %].
fuel_cost: Cost of fuel for a trip.
  distance_km! num:5..2500:1 | Distance in kilometres
  consumption! num:3..15:1 | Litres for 100 km
  price_per_litre! num:1..3:2 | Price of a litre
! calculate the fuel cost of {distance_km} km[ at {consumption} litres per 100 km][ and {price_per_litre} a litre]
> I drive {distance_km} kilometres[ with {consumption} l/100 km]; what does the fuel cost[ at {price_per_litre}]?
> What do I pay for {distance_km} km[ if the car takes {consumption} litres][ and fuel costs {price_per_litre}]?
> {distance_km} km, {consumption} litres per hundred, {price_per_litre} each: the total?
service_car: Book a garage appointment.
  plate! id | Number plate
  work! list:enum:oil=an oil change,tires=new tyres,brakes=a brake check,inspection,battery=a new battery | What to do
  date! date | Day, YYYY-MM-DD
  courtesy_car bool | Whether a replacement car is needed
! book {work} for {plate}[ on {date}][{courtesy_car?, with a replacement car|, no replacement car}]
> My car {plate} needs {work}[, {date} would suit me].[{courtesy_car? I need another car meanwhile.| I don't need another car.}]
> Can the garage do {work}[ on {date}]? The plate is {plate}.
> Time for {work}, {plate}[, on {date}].
solar_yield: Expected yield of solar panels.
  location! city | Place
  kilowatts! num:1..50:1 | Peak power in kW
  tilt int:0..90 | Tilt in degrees
  month month | Month
! estimate the yield of {kilowatts} kW of solar panels[ in {location}][ tilted {tilt} degrees][ in {month}]
> How much power do {kilowatts} kW of panels make[ in {location}][ in {month}]?[ They're tilted by {tilt}°.]
> We put {kilowatts} kilowatts on a roof[ in {location}]; what comes out[ in {month}]?
> Is solar worth it in {location} with {kilowatts} kW[ at {tilt} degrees]?
find_parking: Find a parking place.
  near! address | Where
  arrive! clock | Arrival, HH:MM
  hours! num:0.5..12:1 | Length of stay in hours
  max_price num:1..40:2 | Highest price
! find parking near {near}[ at {arrive}][ for {hours} hours][ below {max_price}]
> I arrive at {near}[ at {arrive}] and stay[ {hours} hours]. Where do I park?[ At most {max_price}.]
> Where can the car stand near {near}[ from {arrive}][ for {hours} hours]?
> {arrive}, {near}, {hours} hours: any space for a car?
== learning
define_word: Definition of a word.
  word! word | Word
  language language | Language
  examples int:1..5 | Number of example sentences
! define {word}[ in {language}][ with {examples} examples]
> What does {word} mean[ in {language}]?[ Give {examples} examples.]
> I came across "{word}"[ in a text in {language}], what is that?
> {word}, explain that word[ and show {examples} sentences].
create_flashcards: Make flash cards.
  topic! topic | Topic
  count! int:3..60 | Number of cards
  difficulty enum:easy,medium,hard | Difficulty
! (make|create) {count}[ {difficulty}] flash cards[ about {topic}]
> I have to learn {topic}.[ {count} cards, please.][ Keep them {difficulty}.]
> Quiz me on {topic}[ with {count}][ {difficulty}] cards.
> {topic} comes up in the test; {count} cards would help.
enroll_course: Enrol a student in a course.
  student! name | Student
  course! title | Course
  semester! enum:spring=the spring term,summer=the summer term,autumn=the autumn term,winter=the winter term | Term
  credits int:1..12 | Credits
! enrol {student} in {course}[ for {semester}][ with {credits} credits]
> {student} wants to take {course}[ in {semester}].[ It counts {credits} credits.]
> Put {student} into {course}[, {semester}].
> In {semester}, {student} attends {course}; sign up.
grade_average: Weighted average of grades.
  grades! list:num:1..6:1 | Grades
  weights list:int:1..10 | Weight of each grade
! (average|compute the mean of) the grades {grades}[ with weights {weights}]
> My grades are {grades}[ and count {weights}]. What's my average?
> What do {grades} come to[, weighted {weights}]?
> With {grades} on the report, where do I stand?
== legal
find_law: Find a law by topic.
  topic! topic | Topic
  country! country | Country
  year int:1900..2026 | Year
! find the law on {topic}[ in {country}][ from {year}]
> What does the law say about {topic}[ in {country}][ since {year}]?
> Is {topic} regulated[ in {country}]?
> In {country}, which act covers {topic}[ ({year})]?
case_lookup: Look up a court case.
  case_number! id | Number of the case
  court! city | Seat of the court
  details enum:parties=who was involved,ruling=how it ended,date=when it was | Detail wanted
! look up case {case_number}[ at the court of {court}][, {details}]
> What happened in case {case_number}[ in {court}]?[ I'd like to know {details}.]
> I need the file {case_number}[ from the {court} court].
> {court} heard {case_number}; what do the records say?
"""
