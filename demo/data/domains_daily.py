"""Hand-written tools of daily life: travel, food, time, messages, media, shopping, money, health.

How to read a table (domains.py parses it):

    name: description                      a tool; "== word" before it starts a domain
      param! kind | description = default  a parameter; ! means required (kinds: values.py)
    ! book {x}[ for {y}]                   an imperative without final stop: gets wrapped ("could you ... ?")
    > I'd like {x}(.|, please.)            a request used as it stands

In a phrasing {p} is a value, {p.q} a member of an object, {p?yes text|no text} what a boolean sounds like, (a|b) a free
choice and [...] a piece that is left out when one of its parameters is not given; a piece around a required parameter
makes the request for which a question has to be asked back. Each tool's last phrasing is held out from training.
"""

TABLE = """
== weather
get_weather: Get the current weather of a place.
  city! city | Name of the city
  unit enum:celsius=Celsius/degrees Celsius,fahrenheit=Fahrenheit/degrees Fahrenheit | Unit of temperature
! tell me the weather[ in {city}][ in {unit}]
> What's (the weather like|it like outside)[ in {city}](| right now| today)?[ I prefer {unit}.]
> Do I need a coat[ in {city}] (today|right now)?[ Show it in {unit}.]
> I'm (landing in|arriving in|on my way to) {city}, how is the weather there?[ In {unit}, please.]
> How warm is it[ in {city}] at the moment?[ ({unit})]
get_forecast: Forecast of the weather for the next days.
  location! city | Place of the forecast
  days! int:2..14 | Number of days to look ahead
  hourly bool | Whether to give hourly values
! show (me |)the[ {days}-day] forecast[ for {location}][{hourly?, hour by hour|, without hourly values}]
> What will the weather be[ in {location}][ over the next {days} days]?[{hourly? I need it hour by hour.| Daily values are enough.}]
> We are camping near {location}[ for {days} days], what should we expect?
> Will it rain[ in {location}][ within the next {days} days]?
get_air_quality: Read the air quality index of a city on a date.
  city! city | City to look up
  date date | Day, YYYY-MM-DD; today when left out
! check the air quality[ in {city}][ on {date}]
> How clean (is|was) the air[ in {city}][ on {date}]?
> Is it healthy to jog[ in {city}][ on {date}]?
> My asthma is bad, what was the pollution like[ in {city}][ on {date}]?
tide_times: Times of high and low tide at a harbour.
  harbour! city | Harbour
  date! date | Day, YYYY-MM-DD
! (look up|find) the tides[ at {harbour}][ for {date}]
> When is high tide[ in {harbour}][ on {date}]?
> We sail from {harbour}[ on {date}]; when is the water high enough?
> At what time does the tide turn[ at {harbour}][ on {date}]?
== travel
search_flights: Search for flights between two cities.
  origin! city | City of departure
  destination! city | City of arrival
  date! date | Date of departure, YYYY-MM-DD
  passengers int:1..9 | Number of travellers = 1
  cabin enum:economy,premium_economy,business,first=first class | Class of travel
! find (me |)flights from {origin}[ to {destination}][ on {date}][ for {passengers} people][ in {cabin}]
> I (want|need|have) to fly from {origin}[ to {destination}][ on {date}].[ There are {passengers} of us.][ {cabin}, please.]
> Are there any flights[ to {destination}] (leaving|departing) {origin}[ on {date}]?[ We'd go {cabin}.]
> How do I get from {origin}[ to {destination}] by plane[ on {date}][ with {passengers} seats]?
> Leaving {origin}[ on {date}], bound for {destination}: which planes go?[ {passengers} tickets.]
book_hotel: Book a hotel room.
  city! city | City of the hotel
  check_in! date | Day of arrival, YYYY-MM-DD
  nights! int:1..21 | Number of nights
  guests int:1..6 | Number of guests = 2
  room_type enum:single,double,suite,family | Type of room
  breakfast bool | Whether breakfast is included
! book a[ {room_type}] room in {city}[ from {check_in}][ for {nights} nights][ for {guests} guests][{breakfast?, with breakfast|, no breakfast}]
> I need a[ {room_type}] hotel room in {city}, arriving {check_in}[ and staying {nights} nights].[{breakfast? Include breakfast.| We don't want breakfast.}]
> We'll be in {city}[ on {check_in}][ for {nights} nights]; get us a[ {room_type}] room[ for {guests}].
> Can you arrange[ {nights} nights in] a hotel in {city} starting {check_in}?[ {guests} people.]
> {nights} nights in {city} from {check_in}: reserve something for us, will you?[ A {room_type} would be nice.]
cancel_reservation: Cancel a reservation.
  reservation_id! id | Number of the reservation
  reason message | Why it is cancelled
! cancel (reservation|booking)[ {reservation_id}][, because: {reason}]
> I won't make it, please drop (my reservation|my booking)[ {reservation_id}].[ Tell them: {reason}]
> My plans changed. The booking[ {reservation_id}] has to go.
> Get rid of {reservation_id} for me, I'm not travelling after all.
get_train_times: Departure times of trains between two stations.
  from_station! city | Station of departure
  to_station! city | Station of arrival
  after clock | Earliest departure, HH:MM
  weekday weekday | Day of the week
! list trains from {from_station}[ to {to_station}][ after {after}][ on {weekday}]
> When does the next train leave[ {from_station}] for {to_station}?[ I'm free after {after}.]
> I'm in {from_station} and have to be in {to_station}[ on {weekday}]. What trains are there[ from {after} on]?
> Which trains run between {from_station} and {to_station}[ on a {weekday}]?
> By rail from {from_station} to {to_station}[, not before {after}]: what are my options?
rent_car: Rent a car.
  pickup_city! city | Where the car is picked up
  start_date! date | First day, YYYY-MM-DD
  days! int:1..30 | Number of days
  car_class enum:small,compact,estate,van,electric | Class of car
  driver_age int:18..80 | Age of the driver
! rent a[ {car_class}] car in {pickup_city}[ from {start_date}][ for {days} days][, driver aged {driver_age}]
> I'd like to hire a[ {car_class}] car in {pickup_city} starting {start_date}[ for {days} days].[ I'm {driver_age}.]
> We need wheels in {pickup_city}[ for {days} days][ from {start_date}].
> Is there a[ {car_class}] car for me in {pickup_city}, {days} days from {start_date}?
visa_requirements: Check whether travellers need a visa.
  nationality! country | Country of the passport
  destination! country | Country to visit
  stay_days int:3..180 | Length of stay in days
! check (the visa rules|whether a visa is needed) for[ {nationality} passports] going to {destination}[ for {stay_days} days]
> I hold a passport of {nationality}. Do I need a visa[ for {destination}]?[ I'd stay {stay_days} days.]
> Can people from {nationality} enter {destination} without a visa[ for {stay_days} days]?
> {destination} with a {nationality} passport: what papers do I need?
== food
book_table: Book a table at a restaurant.
  restaurant! title | Name of the restaurant
  party_size! int:1..14 | Number of people
  time! clock | Time of arrival, HH:MM
  date date | Day, YYYY-MM-DD
  outdoor bool | Whether to sit outside
! (book|reserve) a table at {restaurant}[ for {party_size}][ at {time}][ on {date}][{outdoor?, outside|, inside}]
> (We are|There will be) {party_size} of us, can you get a table at {restaurant}[ for {time}][ on {date}]?
> I'd love to eat at {restaurant}[ at {time}][ on {date}].[ We're {party_size}.][{outdoor? Outdoors if possible.| Indoors.}]
> Dinner at {restaurant}[, {party_size} people][, {time}](.| please.)[ The day is {date}.]
> Call {restaurant} and have them keep {party_size} seats at {time}.
find_restaurants: Find restaurants of a cuisine near a place.
  location! city | Where to look
  cuisine enum:italian=Italian,indian=Indian,japanese=Japanese,mexican=Mexican,thai=Thai,greek=Greek,vegan | Type of kitchen
  max_price num:10..90:0 | Highest price per person
  open_now bool | Only places that are open now
! find[ {cuisine}] restaurants[ in {location}][ under {max_price} per person][{open_now?, open now|, open or not}]
> Where can I eat[ {cuisine} food] in {location}?[ Not more than {max_price} a head.]
> I'm hungry and in {location}.[ I feel like {cuisine} tonight.][ My limit is {max_price}.]
> Any good[ {cuisine}] places around {location}?[ Spending up to {max_price} is fine.]
get_recipe: Get a recipe for a dish.
  dish! dish | Name of the dish
  servings int:1..12 | Number of servings
  diet enum:vegetarian,vegan,gluten_free=gluten-free,none=no special diet | Diet to respect
! (show|give) me a[ {diet}] recipe for {dish}[ for {servings} people]
> How do I (make|cook) {dish}[ for {servings}]?[ It has to be {diet}.]
> I want to cook {dish} tonight[ for {servings} guests].[ We eat {diet}.]
> What goes into {dish}[ when {servings} people eat]?
order_groceries: Order groceries for delivery.
  items! rows(name:food,quantity:int:1..12) | What to order
  address! address | Delivery address
  slot clock | Wanted delivery time, HH:MM
! order {items}[ to {address}][ for {slot}]
> We are out of food: {items}, please[, delivered to {address}][ at {slot}].
> Have {items} brought to {address}[ around {slot}].
> I'd like {items} delivered[ to {address}].[ {slot} suits me.]
> My shopping list is {items}; the courier should come to {address}.
nutrition_facts: Nutrition values of a food.
  food! food | Food
  grams num:5..900:0 | Amount in grams = 100
! look up the nutrition facts of[ {grams} grams of] {food}
> How healthy (are|is)[ {grams} g of] {food}?
> How many calories (are|is) in[ {grams} grams of] {food}?
> I just ate[ {grams} g of] {food}, what did that do to my diet?
plan_meals: Make a meal plan.
  days! int:1..14 | Number of days
  calories_per_day! int:1200..3600 | Calories for each day
  exclude list:food | Foods to leave out
! plan meals[ for {days} days][ with {calories_per_day} calories a day][ without {exclude}]
> I need a meal plan[ of {days} days][ at {calories_per_day} kcal daily].[ I can't eat {exclude}.]
> What should I eat[ over the next {days} days] if I aim for {calories_per_day} calories per day?[ No {exclude}.]
> Put together {days} days of eating, {calories_per_day} kcal each[, nothing with {exclude}].
== calendar
create_event: Put an event into the calendar.
  title! topic | Title of the event
  start! moment | Start, YYYY-MM-DDTHH:MM
  duration_minutes int:10..240 | Length in minutes
  attendees list:name | People to invite
  location room | Where it takes place
! (schedule|set up) {title}[ on {start}][ for {duration_minutes} minutes][ with {attendees}][ in the {location}]
> Put "{title}" in my calendar[ on {start}][, {duration_minutes} minutes long].[ Invite {attendees}.]
> I have {title}[ on {start}][ in the {location}], (note it down|add it), please.[ It takes {duration_minutes} minutes.]
> {attendees} and I talk about {title}[ on {start}]; block the time[ ({duration_minutes} minutes)].
> Don't let me forget {title}[, {start}].[ We meet in the {location}.]
list_events: List the events of a day.
  date! date | Day, YYYY-MM-DD
  calendar enum:work,private,family,school | Which calendar
! (list|show) my[ {calendar}] (appointments|events)[ on {date}]
> What do I have[ on {date}]?[ Only the {calendar} calendar.]
> Am I free[ on {date}]?[ Look at the {calendar} calendar.]
> How busy is {date}[ at {calendar}]?
move_event: Move an event to another time.
  event! topic | Title of the event
  new_start! moment | New start, YYYY-MM-DDTHH:MM
  notify bool | Whether to tell the guests
! move {event}[ to {new_start}][{notify?, and let everyone know|, without telling anyone}]
> Something came up; {event} should be[ on {new_start}] instead.[{notify? Tell the guests.| No need to tell the guests.}]
> Can we do {event}[ on {new_start}]? Please change it.
> I can't make it to {event} as planned, shift it to {new_start}.
set_reminder: Remind the user of something.
  text! task | What to be reminded of
  time! clock | Time, HH:MM
  repeat enum:once,daily=every day,weekly=every week,monthly=every month | How often = once
! remind me to {text}[ at {time}][ {repeat}]
> I must not forget to {text}[ at {time}].[ That goes {repeat}.]
> At {time} I have to {text}; (ping|poke|tell) me.
> Give me a nudge[ at {time}] so that I {text}.
> Will you make sure that I {text} when it's {time}?[ {repeat}, please.]
set_alarm: Set an alarm clock.
  time! clock | Time, HH:MM
  days list:weekday | Days on which it rings
  label topic | Name of the alarm
! (set an alarm|wake me)[ for {time}][ on {days}][, label it {label}]
> I need to get up[ at {time}][ on {days}].
> Make some noise[ at {time}] so I don't oversleep[ on {days}].[ Call it {label}.]
> Tomorrow starts at {time} for me, please ring.
== messages
send_email: Send an email.
  to! email | Address of the recipient
  subject! topic | Subject line
  body! message | Text of the mail
  cc list:email | More recipients
! (send|write) an email to {to}[ about {subject}][ saying: {body}][, with {cc} in copy]
> Mail {to}[, subject "{subject}"]: {body}
> Let {to} know by email[ under the subject {subject}]: {body}[ Copy {cc}.]
> I need a message to go to {to}.[ Subject: {subject}.] Text: {body}
> {body} That's what {to} should read[ under the heading {subject}].
send_message: Send a text message to a contact.
  recipient! name | Who gets it
  text! message | Text
  app enum:sms=SMS/text message,signal=Signal,matrix=Matrix | Which app to use
! (text|message) {recipient}[ via {app}][: {text}]
> Tell {recipient}[: "{text}"][ (use {app})]
> {recipient} should know this: {text}
> Drop {recipient} a line[ on {app}]: {text}
> Could {recipient} hear from me that... well, just send this: {text}
find_contact: Find a person in the address book.
  name! name | Name of the person
  field enum:phone=phone number,email=email address,address=postal address,birthday | Which detail is wanted
! (look up|find)[ the {field} of] {name}
> What's the[ {field}] of {name}?
> How do I reach {name}?[ I only need the {field}.]
> Do we have {name} on file?[ Give me the {field}.]
add_contact: Add a person to the address book.
  name! name | Name
  phone phone | Telephone number
  email email | Email address
  company company | Employer
! (add|save) {name} (to my contacts|as a contact)[, phone {phone}][, email {email}][, works for {company}]
> I met {name}[ from {company}] today, keep[ the number {phone}] in my address book.
> New contact: {name}[, {phone}][, {email}][, {company}].
> {name} gave me a card[, it says {phone}][ and {email}]; store it.
post_update: Publish a post on a social network.
  text! message | Text of the post
  network! enum:mastodon=Mastodon,bluesky=Bluesky,linkedin=LinkedIn | Network
  hashtags list:hashtag | Hashtags to add
  schedule_at moment | When to publish, YYYY-MM-DDTHH:MM
! post "{text}"[ on {network}][ with the tags {hashtags}][ on {schedule_at}]
> My followers[ on {network}] should see this: {text}[ Tags: {hashtags}.]
> Publish the following[ to {network}]: {text}[ Wait until {schedule_at}.]
> Shout it out[ on {network}]: {text}
translate_text: Translate a text into another language.
  text! message | Text to translate
  target_language! language | Language to translate into
  formal bool | Whether to use formal address
! translate "{text}"[ into {target_language}][{formal?, formally|, informally}]
> How do you say "{text}"[ in {target_language}]?
> I need this[ in {target_language}]: {text}[{formal? Keep it formal.| Keep it casual.}]
> What would a speaker of {target_language} write for "{text}"?
== media
play_music: Play music.
  query! title | Song, album or artist
  room room | Where to play it
  volume int:5..100 | Volume in percent
  shuffle bool | Whether to shuffle
! play {query}[ in the {room}][ at {volume} percent][{shuffle?, shuffled|, in order}]
> I (want|would like) to hear {query}[ in the {room}].[ Volume {volume}.]
> Put on {query}[ in the {room}][, volume at {volume}].
> Some {query} would be nice[ in the {room}].[{shuffle? Mix up the order.| Keep the order.}]
> The {room} is too quiet, how about {query}?
create_playlist: Create a playlist.
  name! title | Name of the playlist
  songs! list:title | Songs
  public bool | Whether others can see it
! (make|create) a[{public? public| private}] playlist called {name}[ with {songs}]
> I want {songs} together in a playlist named {name}.[{public? Everyone may see it.| Keep it private.}]
> Collect {songs}[ under the name {name}].
> New list, {name}, please: {songs}.
search_movies: Search for films.
  genre enum:comedy,drama,horror,science_fiction,western,documentary,animation | Genre
  year int:1950..2026 | Year of release
  actor name | Actor in the film
  min_rating num:5..9.5:1 | Lowest rating
! find[ {genre}] (films|movies)[ from {year}][ with {actor}][ rated at least {min_rating}]
> Which[ {genre}] films[ of {year}] should I see?[ I adore {actor}.][ At least {min_rating} stars.]
> I'm in the mood for a film[ with {actor}][ of the {genre} kind][ made in {year}].
> Movie night, anything[ {genre}][ from {year}][ starring {actor}] would do.
book_tickets: Book tickets for a show.
  event! title | Name of the show
  date! date | Day, YYYY-MM-DD
  quantity! int:1..10 | Number of tickets
  category enum:balcony,stalls,standing,box | Kind of seat
! (get|book) {quantity}[ {category}] tickets[ for {event}][ on {date}]
> We'd like to see {event}[ on {date}], {quantity} tickets please[ ({category})].
> Are there {quantity} seats left for {event}[ on {date}]? Take them.[ {category} if possible.]
> {event} is in town; reserve {quantity} places[ for {date}].
get_book: Find a book in the library.
  title title | Title
  author name | Author
  language language | Language of the edition
  format enum:paper,audio=audiobook,ebook=e-book | Format
! find the[ {language}] book {title}[ by {author}][ as {format}]
> Do you have {title}[ by {author}][ in {language}]?[ I want the {format}.]
> I'm looking for a book called {title}[, written by {author}].
> Has the library got {title}[ from {author}]?[ {format}, please.]
search_news: Search the news.
  query! topic | What to search for
  since date | Oldest day, YYYY-MM-DD
  max_results int:1..50 | Number of articles
  language language | Language of the articles
! (find|search for)[ {max_results}] news (articles |)about {query}[ since {since}][ in {language}]
> What's new about {query}?[ Nothing older than {since}.][ {max_results} articles are enough.]
> Has anything been written on {query}[ since {since}][ in {language}]?
> Catch me up on {query}[ from {since} on].
== shopping
search_products: Search a shop for products.
  query! good | What to look for
  max_price num:5..900:2 | Highest price
  color color | Colour
  sort_by enum:price,rating,newest=newest first | Order of results
! (find|search for) a[ {color}] {query}[ under {max_price}][, sorted by {sort_by}]
> I'm looking for a[ {color}] {query}[, at most {max_price}].[ Sort by {sort_by}.]
> Which {query} can I get[ for less than {max_price}]?[ It should be {color}.]
> Need a new {query}[, budget {max_price}][, preferably {color}].
add_to_cart: Put an article into the shopping cart.
  product_id! id | Article number
  quantity! int:1..50 | How many
  size enum:xs=XS,s=S,m=M,l=L,xl=XL | Size
  gift_wrap bool | Whether to wrap it as a gift
! (add|put) {quantity} of[ {product_id}] (to|in) my cart[ in size {size}][{gift_wrap?, gift wrapped|, without wrapping}]
> I'll take {quantity} pieces of article {product_id}[, size {size}].
> {product_id} looks good, {quantity} of them please[ in {size}].[{gift_wrap? It's a present, wrap it.| No gift wrapping.}]
> Make it {quantity} times {product_id}.
track_parcel: Track a parcel.
  tracking_number! id | Tracking number
  carrier company | Carrier
! track (the parcel|my package)[ {tracking_number}][ sent with {carrier}]
> Where is my (parcel|package)[ {tracking_number}]?[ {carrier} carries it.]
> When will {tracking_number} arrive?
> {carrier} should have delivered {tracking_number} by now, what happened?
return_item: Return an article of an order.
  order_id! id | Number of the order
  item! good | What is returned
  reason! enum:defective=it is defective,wrong_size=it has the wrong size,late=it came too late,unwanted=I don't want it any more | Why
  refund_method enum:card=to my card,voucher=as a voucher | How the money is paid back
! return the {item}[ from order {order_id}][ because {reason}][, refund {refund_method}]
> The {item} from[ order {order_id}] goes back, {reason}.[ Pay me {refund_method}.]
> I'm not keeping the {item}[ ({order_id})]: {reason}.
> About order {order_id}: {reason}, so take back the {item}.
compare_prices: Compare the prices of a product in several shops.
  product! good | Product
  shops! list:company | Shops
  currency currency | Currency
! compare the price of a {product}[ at {shops}][ in {currency}]
> Is a {product} cheaper at {shops}?[ Show me {currency}.]
> Who sells the {product} for less[, {shops}]?
> Check {shops} for the best deal on a {product}[ ({currency})].
apply_coupon: Apply a discount code to an order.
  order_id! id | Number of the order
  coupon_code! code | Discount code
! apply (the code|coupon) {coupon_code}[ to order {order_id}]
> I have a voucher, {coupon_code}[, for order {order_id}].
> Take something off {order_id}, the code is {coupon_code}.
> {coupon_code} should make {order_id} cheaper, use it.
== money
transfer_money: Transfer money to an account.
  recipient! name | Who is paid
  amount! num:1..5000:2 | Amount
  currency! currency | Currency
  iban id | Account number
  note topic | Text on the statement
! (transfer|send) {amount}[ {currency}] to {recipient}[ (account {iban})][ for {note}]
> I owe {recipient} {amount}[ {currency}][ for the {note}], please pay.
> {recipient} gets {amount}[ {currency}] from me[, account {iban}].
> Settle up with {recipient}: {amount}[ {currency}][, note "{note}"].
> Please see to it that {recipient} receives {amount}[ {currency}].
convert_currency: Convert an amount from one currency to another.
  amount! num:1..20000:2 | Amount
  from_currency! currency | Currency of the amount
  to_currency! currency | Wanted currency
  date date | Day of the rate, YYYY-MM-DD
! convert {amount} {from_currency}[ to {to_currency}][ at the rate of {date}]
> How much is {amount} {from_currency}[ in {to_currency}](| today)?
> What do I get in {to_currency} for {amount}[ {from_currency}]?[ Use the rate of {date}.]
> I have {amount} {from_currency} left from the trip; what are they worth[ in {to_currency}]?
> {amount} {from_currency} are how many {to_currency}?
get_stock_price: Price of a share.
  symbol! code | Ticker symbol
  date date | Day, YYYY-MM-DD
  exchange enum:nasdaq=NASDAQ,nyse=NYSE,xetra=Xetra,lse=LSE | Stock exchange
! (get|look up) the (share|stock) price of {symbol}[ on {date}][ at {exchange}]
> What (is|was) {symbol} trading at[ on {date}][ on {exchange}]?
> How much is one {symbol} share[ on {exchange}]?
> Did {symbol} do well[ on {date}]?
place_order: Place an order for shares.
  symbol! code | Ticker symbol
  side! enum:buy,sell | Buy or sell
  shares! int:1..2000 | Number of shares
  limit num:1..900:2 | Limit price
! {side} {shares} shares[ of {symbol}][ at a limit of {limit}]
> I (want|decided) to {side} {shares} {symbol}[ at {limit} or better].
> Time to {side}: {shares} shares of {symbol}[, limit {limit}].
> {symbol}, {shares} shares, {side}, please.[ Limit {limit}.]
loan_payment: Monthly payment of a loan.
  principal! int:1000..900000 | Amount borrowed
  annual_rate! num:0.5..15:2 | Interest in percent a year
  years! int:1..40 | Duration in years
  extra_payment int:10..500 | Extra payment each month
! calculate the monthly payment for a loan of {principal}[ at {annual_rate} percent][ over {years} years][ with {extra_payment} extra a month]
> We borrow {principal}[ for {years} years][ at {annual_rate} %]; what does it cost a month?
> What would I pay each month on {principal}[ with {annual_rate} percent interest][ and {years} years]?[ I can add {extra_payment} monthly.]
> A bank offers me {principal} at {annual_rate} %[, {years} years]. How big are the instalments?
compound_interest: Value of savings with compound interest.
  principal! num:100..90000:2 | Amount at the start
  rate! num:0.1..12:2 | Interest in percent a year
  years! int:1..50 | Number of years
  compounds_per_year enum:1=yearly,4=quarterly,12=monthly,365=daily | Times interest is added a year
! calculate what {principal} grows to[ at {rate} percent][ in {years} years][, compounded {compounds_per_year}]
> If I put away {principal}[ at {rate} % interest], how much is it[ after {years} years]?[ Interest is added {compounds_per_year}.]
> What becomes of {principal}[ over {years} years] with {rate} percent a year?
> {years} years, {rate} percent, {principal} at the start: what is in the account?
log_expense: Record an expense.
  amount! num:1..900:2 | Amount
  category! enum:food,travel,rent,office=office supplies,fun=entertainment,health | Category
  date date | Day, YYYY-MM-DD
  note topic | Remark
! (log|record) {amount}[ for {category}][ on {date}][ with the note {note}]
> I spent {amount}[ on {category}][ on {date}].[ It was the {note}.]
> Put {amount} in the books[ under {category}][, dated {date}].
> Another {amount} gone[ for {category}]; write that down.
split_bill: Split a bill between people.
  total! num:10..900:2 | Amount of the bill
  people! int:2..15 | Number of people
  tip_percent num:0..25:1 | Tip in percent = 0
! split {total}[ between {people} people][ with a {tip_percent} percent tip]
> The bill is {total}[ and we are {people}]. What does each pay?[ Add {tip_percent} % tip.]
> {people} of us have to share {total}[ plus {tip_percent} percent].
> How much is it each if {people} friends pay {total}?
== health
log_workout: Record a workout.
  activity! enum:running=a run/running,cycling=cycling/a bike ride,swimming=a swim/swimming,yoga,rowing,hiking=a hike | Kind of sport
  minutes! int:5..240 | Duration in minutes
  distance_km num:0.5..90:1 | Distance in kilometres
  heart_rate int:80..190 | Average heart rate
! (log|record) {activity}[ of {minutes} minutes][ and {distance_km} km][, heart rate {heart_rate}]
> I did {activity}[ for {minutes} minutes][, {distance_km} kilometres].[ My pulse was {heart_rate}.]
> Just finished {activity}, {minutes} minutes[, {distance_km} km].
> {minutes} minutes of {activity}[ at {heart_rate} beats] go into my diary.
calculate_bmi: Body mass index from weight and height.
  weight_kg! num:40..150:1 | Weight in kilograms
  height_cm! num:140..210:0 | Height in centimetres
! (calculate|work out) my BMI[, {weight_kg} kg][, {height_cm} cm]
> I weigh {weight_kg} kg[ and am {height_cm} cm tall]. What's my body mass index?
> Am I overweight[ with {weight_kg} kilos][ at {height_cm} centimetres]?
> At {height_cm} cm and {weight_kg} kilograms, how does my BMI look?
book_doctor: Make an appointment with a doctor.
  specialty! enum:dentist=a dentist,dermatologist=a dermatologist/a skin doctor,cardiologist=a cardiologist/a heart specialist,gp=a general practitioner/a family doctor,eye=an eye doctor | Kind of doctor
  patient! name | Name of the patient
  date! date | Day, YYYY-MM-DD
  urgent bool | Whether it is urgent
! make an appointment with {specialty}[ for {patient}][ on {date}][{urgent?, it is urgent|, no hurry}]
> {patient} has to see {specialty}[ on {date}].[{urgent? It can't wait.| It isn't urgent.}]
> I need {specialty} for {patient}[ on {date}].
> Could {patient} come to {specialty}[ on {date}]? Please book it.
medication_schedule: Plan when a medicine is taken.
  medicine! word | Name of the medicine
  dose_mg! num:0.5..1000:1 | Dose in milligrams
  times! list:clock | Times of day, HH:MM
  with_food bool | Whether to take it with food
! schedule {dose_mg} mg of {medicine}[ at {times}][{with_food?, with food|, on an empty stomach}]
> The doctor prescribed {dose_mg} mg {medicine}[, to be taken at {times}].[{with_food? With meals.| Not with meals.}]
> I take {medicine}[ at {times}], {dose_mg} milligrams each time. Plan that.
> {medicine}, {dose_mg} mg, {times}: put it on my schedule.
log_sleep: Record a night's sleep.
  bedtime! clock | Time of going to bed, HH:MM
  wake_time! clock | Time of waking up, HH:MM
  quality int:1..10 | Quality from 1 to 10
! record that I slept from {bedtime}[ to {wake_time}][, quality {quality}]
> I went to bed at {bedtime}[ and got up at {wake_time}].[ I'd rate it {quality} of 10.]
> Lights out at {bedtime}, up at {wake_time}.[ Quality: {quality}.] Note that.
> My night lasted from {bedtime} until {wake_time}[, {quality} points].
water_intake: Record how much water was drunk.
  amount_ml! int:50..1500 | Amount in millilitres
  time clock | Time, HH:MM
! (log|note) {amount_ml} ml of water[ at {time}]
> I drank {amount_ml} millilitres[ at {time}].
> Another {amount_ml} ml down[, it was {time}].
> Count {amount_ml} ml towards my water goal[ ({time})].
"""
