"""More hand-written tools: numbers, nature, history, culture, code; the notation is explained in domains_daily.py."""

TABLE = """
== numbers
percentage_change: Change between two numbers in percent.
  old_value! num:1..9000:2 | Value before
  new_value! num:1..9000:2 | Value after
! calculate the change from {old_value}[ to {new_value}] in percent
> The price went from {old_value}[ to {new_value}]. By how many percent?
> How much growth is it from {old_value}[ to {new_value}]?
> Before it was {old_value}, now it is {new_value}; what's that relatively?
permutations: Number of ways to choose items.
  total! int:2..60 | Number of items
  chosen! int:1..20 | Number of items chosen
  ordered bool | Whether the order counts
! count the ways to choose {chosen} of[ {total}] things[{ordered?, the order matters|, the order doesn't matter}]
> How many ways are there to pick {chosen} out of[ {total}]?[{ordered? Order counts.| Order doesn't count.}]
> We have {total} players and need {chosen}. How many line-ups?
> From {total} cards I draw {chosen}: how many outcomes?
matrix_product: Multiply two rows of numbers element by element.
  first! list:int:-20..90 | First row
  second! list:int:-20..90 | Second row
! multiply {first}[ with {second}]
> What's the product of the vectors {first}[ and {second}]?
> Take {first}[ times {second}], element by element.
> One row is {first}, the other {second}; combine them by multiplication.
sort_numbers: Sort a list of numbers.
  numbers! list:int:-90..900 | Numbers
  descending bool | Whether the largest comes first
! sort {numbers}[{descending? from large to small| from small to large}]
> Put {numbers} in order[{descending?, largest first|, smallest first}].
> I need these sorted: {numbers}.[{descending? Descending.| Ascending.}]
> {numbers}: which order do they belong in?
number_base: Write a number in another base.
  number! int:2..99999 | Number
  base! int:2..36 | Base
! write {number}[ in base {base}]
> What does {number} look like[ in base {base}]?
> Convert the number {number}[ to the base {base}].
> How is {number} spelled with {base} digits as the base?
sphere_volume: Volume of a sphere, cone or cylinder.
  shape! enum:sphere=a sphere/a ball,cone=a cone,cylinder=a cylinder/a can | Body
  radius! num:0.5..90:1 | Radius
  height num:0.5..90:1 | Height of a cone or cylinder
! compute the volume of {shape}[ with radius {radius}][ and height {height}]
> How much fits into {shape}[ of radius {radius}][, {height} high]?
> I have {shape}[, radius {radius}][, height {height}]. What's its volume?
> Radius {radius}, {shape}: how large is it inside?
roi: Return on an investment.
  invested! num:100..90000:2 | Money invested
  returned! num:100..190000:2 | Money got back
  years num:0.5..20:1 | Duration in years
! calculate the return on {invested}[ that became {returned}][ in {years} years]
> I put in {invested} and got[ {returned}] back[ after {years} years]. What's my return?
> Was it worth it to invest {invested}[ and get {returned}][ over {years} years]?
> {invested} turned into {returned}: which rate of return is that?
== nature
earthquake_search: Search for earthquakes.
  region! country | Region
  min_magnitude num:2..8:1 | Lowest magnitude
  since date | First day, YYYY-MM-DD
! list earthquakes[ in {region}][ of magnitude {min_magnitude} or more][ since {since}]
> Has the earth shaken[ in {region}][ since {since}]?[ I mean {min_magnitude} and above.]
> What quakes were there[ in {region}][ above {min_magnitude}]?
> Did anything tremble in {region} after {since}?
tree_height: Height of a tree from angle and distance.
  distance_m! num:2..90:1 | Distance to the tree in metres
  angle_deg! num:5..80:1 | Angle to the top in degrees
  eye_height_m num:1..2:2 | Height of the eye in metres = 1.6
! work out the height of a tree {distance_m} m away[ seen under {angle_deg} degrees][ from an eye height of {eye_height_m} m]
> I stand {distance_m} metres from a tree[ and look up at {angle_deg}°]. How tall is it?[ My eyes are at {eye_height_m} m.]
> How high is a fir[ whose top is at {angle_deg} degrees] from {distance_m} metres?
> At {distance_m} m distance the top is {angle_deg} degrees up: what's the height?
population_growth: Size of a population after growing.
  initial! int:10..100000 | Number at the start
  rate_percent! num:0.1..60:1 | Growth in percent for each step
  steps! int:1..60 | Number of steps
! compute a population that starts with {initial}[ and grows {rate_percent} percent][ over {steps} generations]
> {initial} rabbits grow by {rate_percent} %[ for {steps} generations]. How many are there in the end?
> How big is a colony of {initial}[ after {steps} steps][ at {rate_percent} percent growth]?
> Start: {initial}. Growth: {rate_percent} %. Steps: {steps}. Result?
blood_type: Possible blood types of a child.
  mother! enum:A,B,AB,O=0 | Type of the mother
  father! enum:A,B,AB,O=0 | Type of the father
! find the blood types possible with a mother of type {mother}[ and a father of type {father}]
> Mum has {mother}[, dad has {father}]. What can the child have?
> Which blood can the baby have if the mother is {mother}[ and the father {father}]?
> Mother {mother}, father {father}: the child's blood group?
moon_phase: Phase of the moon.
  date! date | Day, YYYY-MM-DD
  hemisphere enum:north=northern hemisphere,south=southern hemisphere | Where one looks from
! tell me the phase of the moon[ on {date}][ for the {hemisphere}]
> Is it full moon[ on {date}]?[ I'm in the {hemisphere}.]
> How bright will the moon be[ on {date}]?
> Does the moon wax or wane[ on {date}][, {hemisphere}]?
soil_test: Record a test of the soil.
  plot! word | Name of the plot
  ph! num:3.5..9:1 | pH value
  nutrients obj(nitrogen:int:1..200,potassium:int:1..300) | Nutrients in mg/kg
! record a pH of {ph}[ for plot {plot}][ with nitrogen {nutrients.nitrogen} and potassium {nutrients.potassium}]
> The soil of {plot} has[ a pH of {ph}].[ Nitrogen was {nutrients.nitrogen}, potassium {nutrients.potassium}.]
> I tested {plot}[: pH {ph}][, nitrogen {nutrients.nitrogen}, potassium {nutrients.potassium}].
> Note pH {ph} for {plot}.
speed_of_sound: Speed of sound in a medium.
  medium! enum:air,water,steel,wood,glass | What it travels through
  temperature_c num:-40..90:1 | Temperature in degrees Celsius
! look up the speed of sound[ in {medium}][ at {temperature_c} degrees]
> How fast is sound[ in {medium}][ when it has {temperature_c} °C]?
> I knock on something made of {medium}[, {temperature_c} degrees warm]; how fast does that travel?
> At {temperature_c} °C, how quick is sound in {medium}?
== culture
museum_hours: Opening hours of a museum.
  museum! title | Name of the museum
  day weekday | Day of the week
! look up the opening hours of[ the] {museum}[ on {day}]
> When is {museum} open[ on {day}]?
> Can I still get into {museum}[ on a {day}]?
> We'd like to visit {museum}[ next {day}], until when?
artwork_info: Facts about a work of art.
  title! title | Title
  artist name | Artist
  detail enum:year=when it was made,place=where it hangs,technique=how it was made | Detail wanted
! find out about the painting {title}[ by {artist}][: {detail}]
> Who painted {title}?[ Perhaps {artist}.][ I want to know {detail}.]
> Tell me something on {title}[ by {artist}][, namely {detail}].
> In an exhibition I saw {title}[ by {artist}]; {detail}?
concert_search: Find concerts.
  city! city | City
  artist name | Artist
  month month | Month
  max_price num:10..300:2 | Highest price
! find concerts[ in {city}][ with {artist}][ in {month}][ below {max_price}]
> Who plays[ in {city}][ in {month}]?[ Tickets up to {max_price}.]
> Is {artist} coming[ to {city}][ in {month}]?
> I'm in {city}[ in {month}] and want to hear live music[ by {artist}].
transpose_chord: Transpose chords.
  chords! list:code | Chords
  steps! int:1..11 | Half steps
  direction enum:up,down | Direction = up
! transpose {chords}[ {direction}][ by {steps} half steps]
> Those chords are too low: {chords}.[ Move them {direction}][ by {steps} semitones].
> I sing {steps} half steps[ {direction}] from {chords}; which chords do I play?
> {chords}, {steps} semitones[ {direction}], please.
king_of: Who ruled a country in a year.
  country! country | Country
  year! int:900..2020 | Year
! find out who ruled {country}[ in {year}]
> Who was in power[ in {country}][ in {year}]?
> Under whom did people live in {country}[ around {year}]?
> {year}, {country}: who sat on the throne?
festival_calendar: Festivals of a country.
  country! country | Country
  month month | Month
  type enum:music,film,food,religious,literature | Kind of festival
! list the[ {type}] festivals of {country}[ in {month}]
> What[ {type}] festivals does {country} have[ in {month}]?
> We visit {country}[ in {month}]; what is celebrated?[ Preferably {type}.]
> Is there anything festive in {country}[ around {month}]?
word_of_day: Word of the day.
  language! language | Language
  level enum:beginner,intermediate,advanced | Level
! give me a[ {level}] word of the day[ in {language}]
> Teach me a word[ of {language}].[ I'm at {level} level.]
> What's today's[ {level}] word[ in {language}]?
> My {language} needs practice: one word, please.
== code
http_request: Send an HTTP request.
  url! url | Address
  method! enum:GET,POST,PUT,DELETE | Method
  body message | Body
  timeout_s num:0.5..60:1 | Time limit in seconds
! send a {method} request[ to {url}][ with the body "{body}"][ and a timeout of {timeout_s} seconds]
> I want to {method}[ {url}].[ The body is: {body}][ Stop after {timeout_s} s.]
> What does {url} answer to[ {method}]?[ Wait at most {timeout_s} seconds.]
> {method} {url} and show me the result.
find_function: Find where a function is defined.
  name! word | Name of the function
  folder folder | Where to look
  language enum:python=Python,c=C,java=Java,javascript=JavaScript,rust=Rust | Language
! find the[ {language}] function {name}[ in {folder}]
> Where is {name} defined[ below {folder}]?[ It's {language}.]
> I'm looking for the definition of {name}[ in the {language} code][ under {folder}].
> Somebody calls {name}; show me its source[ in {folder}].
rename_variable: Rename a variable in a file.
  file! path | File
  old_name! word | Old name
  new_name! word | New name
! rename {old_name}[ to {new_name}][ in {file}]
> {old_name} is a bad name, call it[ {new_name}][ in {file}].
> In {file}, every {old_name} should be[ {new_name}].
> Let {new_name} stand for {old_name} throughout {file}.
commit_changes: Commit changes to a repository.
  message! task | Commit message
  branch word | Branch
  files list:filename | Files; all when left out
! commit[ {files}][ on {branch}] with the message "{message}"
> My changes[ to {files}] are ready, commit them[ to {branch}] as "{message}".
> Save my work[ on {branch}] with the note {message}.
> {message}: that's the commit[ for {files}].
cron_job: Run a command at fixed times.
  command! path | Command
  time! clock | Time, HH:MM
  days list:weekday | Days
  user word | Account
! run {command}[ at {time}][ on {days}][ as {user}]
> {command} should start[ at {time}][ every {days}].[ The account is {user}.]
> I want {command} to happen by itself[ at {time}][, {days}].
> Schedule: {command}, {time}[, {days}].
backup_database: Back up a database.
  database! word | Name of the database
  target! folder | Where to
  compress bool | Whether to compress
  keep int:1..60 | Number of old copies to keep
! back up {database}[ to {target}][{compress?, compressed|, uncompressed}][ and keep {keep} copies]
> Make a copy of the database {database}[ in {target}].[{compress? Compress it.| Don't compress it.}][ Keep {keep} of them.]
> I'm afraid to lose {database}, save it[ under {target}][ and keep the last {keep}].
> {database} to {target}, as a backup.
check_certificate: Check the certificate of a site.
  host! url | Address of the site
  port int:1..9999 | Port = 443
! check the certificate of {host}[ on port {port}]
> Does the certificate of {host} expire soon?[ Port {port}.]
> My browser warns me about {host}[, port {port}]; is its certificate all right?
> Until when is {host} valid[ at port {port}]?
== people
birthday_reminder: Remember a birthday.
  person! name | Person
  date! date | Birthday, YYYY-MM-DD
  gift_idea good | Idea for a present
! remember that {person} was born[ on {date}][ and would like a {gift_idea}]
> {person}'s birthday is[ {date}].[ A {gift_idea} might be a good present.]
> Note {date} as the birthday of {person}[; present: {gift_idea}].
> {date} is when {person} was born.
seat_plan: Seat guests at tables.
  guests! list:name | Guests
  tables! int:1..30 | Number of tables
  keep_together list:name | Guests who sit together
! seat {guests}[ at {tables} tables][, keeping {keep_together} together]
> We expect {guests}[ and have {tables} tables]. Who sits where?[ {keep_together} want to sit together.]
> Make a seating plan for {guests}[ with {tables} tables].
> {tables} tables for {guests}: arrange that.
volunteer_shift: Assign a shift to a volunteer.
  volunteer! name | Volunteer
  task! task | What to do
  start! moment | Start, YYYY-MM-DDTHH:MM
  hours num:1..10:1 | Length in hours
! assign {volunteer} to {task}[ from {start}][ for {hours} hours]
> {volunteer} can {task}[, starting {start}][, for {hours} hours].
> Who will {task}? Put {volunteer} down[, {start}][, {hours} h].
> From {start}, {volunteer} is going to {task}.
donate: Donate money to an organisation.
  organisation! company | Organisation
  amount! num:5..900:2 | Amount
  monthly bool | Whether it is paid every month
  dedication name | In whose name
! donate {amount}[ to {organisation}][{monthly? every month| once}][ in the name of {dedication}]
> I'd like to give {organisation}[ {amount}].[{monthly? Make it monthly.| Only once.}][ It is for {dedication}.]
> {organisation} does good work, let them have[ {amount}][ on behalf of {dedication}].
> Please support {organisation} with {amount}.
language_partner: Find somebody to practise a language with.
  learns! language | Language to learn
  speaks! language | Language spoken
  city city | City
! find a partner who speaks {learns}[ and learns {speaks}][ in {city}]
> I speak {speaks} and want to practise[ {learns}][ in {city}].
> Who would teach me {learns}[ for some {speaks}][, around {city}]?
> {learns} in exchange for {speaks}[ in {city}]: anybody?
lost_item: Report a lost thing.
  item! good | What was lost
  place! city | Where
  date date | When, YYYY-MM-DD
  contact phone | Telephone number
! report a lost {item}[ in {place}][ on {date}][, reachable at {contact}]
> I lost my {item}[ in {place}][ on {date}].[ Call {contact} if it turns up.]
> My {item} is gone, I had it last[ in {place}].[ That was {date}.]
> Has a {item} been found[ in {place}]?[ My number is {contact}.]
"""
