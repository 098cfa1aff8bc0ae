"""Word lists and random strings: the raw material of requests, names and values.

Every list is divided once and for all into words for training and words held out, by a hash of the word itself, so
that no seed and no order of calls can let a held-out word slip into training. `Words` is one side of that division
(or both, for the fixed worlds).

Word lists alone teach a small model the words; what it has to learn is copying. So a part of all values are strings
that no list holds: syllables, capitals, digits, and, once a tokenizer exists, strings of tokens drawn uniformly from
its vocabulary (`set_token_pool`), which makes every token occur as a target.
"""
import zlib

HELD_OUT_ONE_IN = 8

FIRST = """Ada Alan Amira Anders Anna Anton Aisha Beatriz Ben Bianca Bruno Carla Chen Clara Daan Dario Diego Dora Edith
Elena Elias Emil Emma Enzo Erik Esra Eva Farid Femke Finn Flora Freya Gabriel Giulia Greta Hamid Hana Hannah Hugo Ida
Igor Ines Ingrid Isaac Ivan Jakob James Jana Jasper Joana Jonas Jorge Josef Julia Kaito Karin Kemal Kofi Lara Lars Laura
Lea Leon Lin Linnea Liam Lucia Luis Magnus Maja Malik Marco Maria Marta Mateo Max Mei Mila Mina Mirek Mohamed Nadia Naomi
Nils Nina Noah Nora Oda Olga Oliver Omar Oscar Otto Pablo Paula Petra Philip Priya Rafael Rania Ravi Rosa Ruben Ruth Sami
Samuel Sara Sean Selma Sofia Stefan Sven Tara Tariq Tessa Theo Thomas Tilda Tom Tomas Ulla Vera Victor Wanda Wei Willem
Yara Yusuf Zeynep Zoe Ximena Søren Zoë José Renée Łukasz Jürgen Björn Noël Inés Chloé Mária Örjan""".split()
LAST = """Abbott Adeyemi Ahmed Almeida Andersen Bakker Baptiste Barros Becker Bennett Berger Bianchi Bishop Blom Braun Brooks
Campos Carter Castro Chang Cohen Costa Cruz Dahl Dawson Delgado Demir Dubois Eriksen Evans Farkas Fischer Fontana Foster
Fraser Garcia Gomez Grant Gruber Haas Hansen Harris Hoffmann Holm Huang Ibrahim Ivanov Jansen Jensen Johansson Kaya Keller
Khan Kim Klein Kovacs Kowalski Kumar Larsen Laurent Lehmann Lindgren Lopez Lund Maier Marino Martins Mendes Meyer Mitchell
Moreau Mueller Nakamura Nguyen Novak Okafor Olsen Ortega Park Patel Pereira Petrov Quinn Ramos Reyes Ricci Rossi Rojas
Sato Schmidt Schneider Silva Singh Sokolov Suzuki Tanaka Torres Turner Vargas Virtanen Vogel Wagner Walsh Weber Weiss
Wong Wright Yamamoto Yilmaz Zhang Ziegler Núñez Gödel Öztürk Dvořák Sørensen Lefèvre""".split()
CITIES = """Aarhus Accra Adelaide Algiers Amsterdam Ankara Antwerp Athens Auckland Austin Baku Baltimore Bangkok Barcelona
Basel Beijing Belfast Belgrade Bergen Berlin Bogotá Bologna Bordeaux Boston Bratislava Brisbane Bruges Brussels Bucharest
Budapest Cairo Calgary Canberra Cardiff Casablanca Chicago Cologne Copenhagen Cork Dakar Dallas Delhi Denver Dortmund Dublin
Dubrovnik Edinburgh Eindhoven Florence Frankfurt Fukuoka Galway Gdańsk Geneva Genoa Ghent Glasgow Gothenburg Granada Graz
Hamburg Hanoi Havana Helsinki Houston Istanbul Jakarta Johannesburg Karachi Kathmandu Kraków Kuala_Lumpur Kyoto Lagos
Lausanne Leeds Leipzig Lima Lisbon Liverpool Ljubljana London Los_Angeles Luxembourg Lyon Madrid Málaga Malmö Manchester
Manila Marseille Melbourne Memphis Mexico_City Miami Milan Minneapolis Montevideo Montréal Moscow Mumbai Munich Nagoya
Nairobi Nantes Naples New_Orleans New_York Nice Nuremberg Odense Osaka Oslo Ottawa Oxford Palermo Paris Perth Philadelphia
Phoenix Porto Portland Prague Quito Reykjavik Riga Rio_de_Janeiro Rome Rotterdam Salzburg San_Diego San_Francisco Santiago
São_Paulo Sarajevo Seattle Seoul Seville Shanghai Singapore Skopje Sofia Stavanger Stockholm Strasbourg Stuttgart Sydney
Taipei Tallinn Tampere Tbilisi Tokyo Toronto Toulouse Trieste Trondheim Tunis Turin Uppsala Utrecht Valencia Vancouver
Venice Verona Vienna Vilnius Warsaw Wellington Winnipeg Wrocław Yerevan Zagreb Zürich""".replace("\n", " ").split()
COUNTRIES = """Argentina Australia Austria Belgium Brazil Bulgaria Canada Chile China Colombia Croatia Cuba Denmark Egypt
Estonia Ethiopia Finland France Georgia Germany Ghana Greece Hungary Iceland India Indonesia Ireland Israel Italy Japan
Kenya Latvia Lithuania Malaysia Mexico Morocco Nepal Netherlands New_Zealand Nigeria Norway Peru Philippines Poland
Portugal Romania Senegal Serbia Slovakia Slovenia South_Africa South_Korea Spain Sweden Switzerland Thailand Tunisia
Turkey Ukraine Uruguay Vietnam""".replace("\n", " ").split()
COLORS = """red orange yellow green blue purple violet pink brown black white gray silver gold turquoise teal navy maroon
beige ivory crimson amber lime olive magenta cyan indigo lavender""".split()
FOODS = """apples bananas bread butter carrots cheese chickpeas cinnamon coffee cucumber eggs flour garlic ginger honey
lemons lentils milk mushrooms mustard noodles oats olives onions oranges pasta peanuts pears pepper potatoes rice salt
spinach sugar tea tofu tomatoes vinegar walnuts yogurt lasagna curry risotto paella ramen goulash falafel pancakes
pizza burger soup salad dumplings tacos sushi omelette stew granola hummus pesto tofu_bowl fish_pie apple_cake""".split()
GOODS = """hammer drill saw screwdriver wrench chisel file clamp vise nails screws bolts washers hinges glue sandpaper paint
brush ladder rope cable battery charger lamp keyboard monitor mouse printer router headset camera tripod backpack tent
stove kettle toaster blender mixer pan bowl mug plate chair desk shelf sofa carpet curtain pillow blanket mattress mirror
clock vase jacket shirt boots gloves scarf umbrella wallet notebook pencil stapler binder envelope magnet spring bearing
gearbox motor pump valve hose filter sensor relay fuse switch resistor capacitor bracket panel tile brick plank""".split()
ANIMALS = """ant badger bear beaver bee butterfly camel cat crane crow deer dog dolphin donkey duck eagle elephant falcon
ferret fox frog goat goose hare hawk hedgehog heron horse jaguar koala lion lizard lynx mole moose mouse otter owl panda
parrot penguin pigeon rabbit raven salmon seal shark snail spider squirrel swan tiger toad turtle whale wolf zebra""".split()
ADJECTIVES = """annual blue bright broken calm clever cold crooked daily dark deep dusty early empty fast final first fragile
gentle golden green grey happy heavy hidden hollow hungry late lazy light little local lonely long lost loud lucky main
modern monthly narrow new noisy northern old open orange plain polite quick quiet rapid red round rusty secret sharp short
silent silver simple sleepy slow small soft southern spare steady steep strange strong sudden sunny tall thin tiny urgent
warm weekly western white wild wooden young""".split()
NOUNS = """account airport anchor archive arrow autumn balcony bakery basement beach bench bicycle boat bottle bridge bucket
budget camp canal candle castle cellar circus cloud coast compass concert corner cottage cradle dawn desert diary dinner
door dream engine evening factory fair farm feather fence festival field fire flag flood forest fountain garden gate glacier
glass harbour harvest hill history horizon hospital hotel island journey jungle kitchen lake lantern letter library light
lighthouse map market meadow memory meeting mill mirror moon morning mountain museum night ocean office orchard palace paper
park path piano picture pier planet platform pocket poem pond project queen quarter railway rain report ribbon river road
roof room sail school season shadow shelter ship shore signal silence snow song spring square stage station stone storm
story street summer sun team theatre tide tower town track train travel tree tunnel valley village voyage wall water wave
weather weekend wheel wind window winter wire wood workshop yard zoo""".split()
VERBS = """answer ask book bring build buy call carry catch change check choose clean climb close collect compare cook copy
count cover cut dance deliver describe draw drive enter explain explore feed fill find finish fix fold follow forget gather
give grow guide hang help hide hold invite join keep learn leave lift listen load lock look make mark measure meet mend mix
move name note open order paint pack pay pick plan plant play post practise prepare press print pull push reach read repair
replace report rest return review ride save scan search sell send serve share show sing sketch sort start stop store study
swim take teach test throw tidy train translate travel turn update visit wait walk wash watch water weigh write""".split()
COMPANIES = """Acorn Aldervale Altimar Arctos Aurelia Avenor Birchline Bluefin Borealis Brightwell Calder Cinderpath Cobalt
Corvid Dovetail Eastmoor Elmstead Fenwick Ferrum Fieldstone Foxglove Glasswing Granite Halcyon Hartmoor Hazelbrook Helio
Ironbark Jasmin Juniper Kestrel Kingsway Larkspur Lindenhof Lumen Marlow Meridian Millstone Northlight Novarra Oakridge
Orchid Palisade Pinecrest Quarry Ravensworth Redwood Saffron Sandpiper Silverline Solstice Stonebridge Tamarack Thistle
Tidewater Umbra Vanguard Verdant Westerly Willowbank Windrose Yarrow Zephyr""".split()
LANGUAGES = """Arabic Bengali Bulgarian Catalan Chinese Croatian Czech Danish Dutch English Estonian Finnish French German Greek
Hebrew Hindi Hungarian Icelandic Indonesian Irish Italian Japanese Korean Latvian Norwegian Persian Polish Portuguese
Romanian Russian Serbian Slovak Spanish Swahili Swedish Tamil Thai Turkish Ukrainian Urdu Vietnamese Welsh""".split()
STREETS = """Station Church Market Mill Garden Park Harbour Castle Bridge School River Forest Lake Hill Meadow Orchard Abbey
Chapel Windmill Linden Chestnut Maple Birch Willow Poplar Rose Victoria Museum Tower Quarry""".split()
ROOMS = """kitchen bathroom bedroom hallway garage basement attic office pantry laundry nursery library conservatory
guest_room living_room dining_room utility_room sun_room music_room""".split()
UNICODE = ["日本語", "東京", "中文資料", "数据", "Привет", "Москва", "καλημέρα", "Ελλάδα", "안녕하세요", "서울", "مرحبا", "שלום", "नमस्ते",
           "ไทย", "naïve café", "Æther", "œuvre", "façade", "smörgåsbord", "Übergröße", "piñata", "crème brûlée", "½ litre",
           "30 °C", "€ 12", "✓ done", "→ next", "🙂", "🚲", "ß-test", "Ærø", "Île-de-France", "Pāṇini", "Ångström"]
CURRENCIES = "USD EUR GBP JPY CHF SEK NOK DKK PLN CZK HUF CAD AUD NZD INR BRL MXN ZAR TRY KRW SGD THB".split()
MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

LISTS = {"first": FIRST, "last": LAST, "city": CITIES, "country": COUNTRIES, "color": COLORS, "food": FOODS, "good": GOODS,
         "animal": ANIMALS, "adjective": ADJECTIVES, "noun": NOUNS, "verb": VERBS, "company": COMPANIES,
         "language": LANGUAGES, "street": STREETS, "room": ROOMS, "unicode": UNICODE}

ONSETS = "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kr l m n p ph pl pr qu r s sc sh sk sl sm sn sp st str t th tr v w x y z".split()
VOWELS = "a e i o u ai ea ee ia io oa oo ou y".split()
CODAS = "b ck d ft g k l ll lm lt m mp n nd ng nk nt p r rd rk rm rn rt s sh sk ss st t th x z".split() + [""] * 12
ALNUM = "abcdefghijklmnopqrstuvwxyz0123456789"
HEX = "0123456789abcdef"

token_pool = []


def set_token_pool(pool):
    """Strings (a tokenizer's vocabulary) from which random words are put together, each equally likely."""
    token_pool[:] = pool


def held_out(word):
    """Whether a word belongs to the held-out side; the same on every machine and in every run."""
    return zlib.crc32(word.encode()) % HELD_OUT_ONE_IN == 0


def pick(rng, items):
    return items[int(rng.random() * len(items))]


def syllables(rng, low=1, high=3):
    """A pronounceable word that is in no list."""
    return "".join(pick(rng, ONSETS) + pick(rng, VOWELS) + pick(rng, CODAS)
                   for _ in range(low + int(rng.random() * (high - low + 1))))


def random_word(rng):
    """One random token-like string without spaces: letters only or mixed, in one of several shapes."""
    shape = rng.random()
    if shape < 0.45 and token_pool:
        word = "".join(pick(rng, token_pool) for _ in range(1 + int(rng.random() * 3)))
        return word.capitalize() if rng.random() < 0.2 else word
    if shape < 0.7:
        word = syllables(rng)
        return word.capitalize() if rng.random() < 0.4 else word
    if shape < 0.8:
        return "".join(pick(rng, ALNUM) for _ in range(3 + int(rng.random() * 8)))
    if shape < 0.9:
        return syllables(rng, 1, 1).upper() + "-" + str(int(rng.random() * 10000))
    return syllables(rng, 1, 2) + pick(rng, "-_.") + syllables(rng, 1, 2)


def random_phrase(rng):
    return " ".join(random_word(rng) for _ in range(1 + int(rng.random() * 4)))


class Words:
    """The word lists of one side of the division: "train", "held_out" or "all"."""

    def __init__(self, side="train"):
        self.side = side
        for name, words in LISTS.items():
            words = [w.replace("_", " ") for w in words]
            mine = [w for w in words if side == "all" or held_out(w) == (side == "held_out")]
            setattr(self, name, mine)
