"""Tools and their phrasings: the tables parsed, tools made up at random, and both dressed up differently every time.

A `Tool` is an idea: what it does, its parameters and the ways people ask for it. An `Instance` is one dress of it: name
and parameter names in some style (or replaced by random strings, so that only the descriptions tell), descriptions
varied, optional parameters dropped, the schema as a client would send it. Training on many dresses is what makes a model
read the schema instead of remembering it.
"""
import re
import zlib

import domains_daily
import domains_science
import domains_work
from values import Kind, kind, with_article
from words import pick, random_word, syllables

HELD_OUT_TOOL_ONE_IN = 6
# Tools one of which could do, at a pinch, what another is asked for: never together where no tool must fit.
SIMILAR = [set(group.split()) for group in (
    "get_weather get_forecast", "send_email send_message post_update", "create_event set_reminder set_alarm move_event book_room",
    "distance_between get_directions", "search_products compare_prices add_to_cart", "book_table find_restaurants",
    "translate_text detect_language define_word", "search_news historical_event find_law country_facts summarize_url",
    "get_recipe plan_meals nutrition_facts", "calculate statistics grade_average split_bill unit_conversion fuel_cost",
    "read_file find_files query_logs", "set_reminder medication_schedule", "book_tickets register_race", "loan_payment compound_interest",
    "player_stats team_results", "property_search book_hotel", "planet_position sunrise_sunset", "get_book search_movies play_music",
    "track_parcel ship_package", "percentage_change roi compound_interest", "book_tickets concert_search festival_calendar", "triangle_area circle_properties sphere_volume",
    "historical_event king_of", "read_file find_files find_function", "create_event volunteer_shift set_reminder birthday_reminder cron_job", "restart_service deploy scale_deployment", "write_file copy_file", "convert_currency unit_conversion")]


class Param:
    __slots__ = ("name", "kind", "required", "description", "default")

    def __init__(self, name, kind_, required, description, default=None):
        self.name, self.kind, self.required = name, kind_, required
        self.description, self.default = description, default


class Phrasing:
    """nodes of one way to ask; `always` are the parameters outside brackets."""
    __slots__ = ("imperative", "nodes", "always", "optional")

    def __init__(self, imperative, nodes):
        self.imperative, self.nodes = imperative, nodes
        self.always, self.optional = set(), set()
        collect(nodes, self.always, self.optional)


class Tool:
    def __init__(self, name, description, params, phrasings, domain):
        self.name, self.description, self.params, self.domain = name, description, params, domain
        self.by_name = {p.name: p for p in params}
        self.required = {p.name for p in params if p.required}
        self.phrasings = phrasings
        for phrasing in phrasings:
            unknown = (phrasing.always | phrasing.optional) - set(self.by_name)
            missing = self.required - phrasing.always - phrasing.optional
            if unknown or missing:
                raise ValueError("%s: phrasing %r: unknown %s, missing %s" % (name, phrasing.nodes, unknown, missing))


# ---- the notation of phrasings -> nodes:  str | ("slot", p, member) | ("bool", p, yes, no) | ("alt", choices) | ("opt", names, nodes)

def parse(text):
    nodes, rest = parse_until(text, 0, "")
    assert rest == len(text), text
    return nodes


def parse_until(text, at, stops):
    nodes, literal = [], ""
    while at < len(text) and text[at] not in stops:
        c = text[at]
        if c not in "{[(":
            literal += c
            at += 1
            continue
        if c == "(" and "|" not in text[at:closing(text, at)]:  # ordinary parentheses
            literal += c
            at += 1
            continue
        if literal:
            nodes.append(literal)
            literal = ""
        if c == "{":
            end = text.index("}", at)
            nodes.append(slot(text[at + 1:end]))
            at = end + 1
        elif c == "[":
            inner, end = parse_until(text, at + 1, "]")
            names = set()
            collect(inner, names, names)
            nodes.append(("opt", frozenset(names), inner))
            at = end + 1
        else:
            choices = []
            while text[at] != ")":
                inner, at = parse_until(text, at + 1, "|)")
                choices.append(inner)
            nodes.append(("alt", choices))
            at += 1
    return nodes + [literal] if literal else nodes, at


def closing(text, at):
    """Where the parenthesis at `at` ends."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    raise ValueError("no closing parenthesis: " + text)


def slot(text):
    if "?" in text:
        name, _, both = text.partition("?")
        yes, _, no = both.partition("|")
        return ("bool", name, yes, no)
    name, _, member = text.partition(".")
    return ("slot", name, member)


def collect(nodes, always, optional):
    for node in nodes:
        if isinstance(node, str):
            continue
        if node[0] in ("slot", "bool"):
            always.add(node[1])
        elif node[0] == "opt":
            collect(node[2], optional, optional)
        else:
            for choice in node[1]:
                collect(choice, always, optional)


def say(nodes, values, rng):
    """The request in words; values: parameter -> Value. Brackets around a parameter that has no value are left out."""
    out = []
    for node in nodes:
        if isinstance(node, str):
            out.append(node)
        elif node[0] == "slot":
            value = values[node[1]]
            out.append(value.parts[node[2]].text if node[2] else value.text)
        elif node[0] == "bool":
            out.append(node[2] if values[node[1]].json else node[3])
        elif node[0] == "alt":
            out.append(say(pick(rng, node[1]), values, rng))
        elif all(name in values for name in node[1]):
            out.append(say(node[2], values, rng))
    return "".join(out)


# ---- the tables

def parse_table(table):
    tools, domain, head = [], "", None

    def finish():
        if head:
            tools.append(Tool(head[0], head[1], head[2], [Phrasing(i, parse(t)) for i, t in head[3]], domain))

    for line in table.strip().split("\n"):
        if line.startswith("== "):
            finish()
            domain, head = line[3:], None
        elif line.startswith("  "):
            head_text, _, description = line.partition(" | ")
            name, kind_text = head_text.split(None, 1)
            description, _, default = description.partition(" = ")
            kind_ = kind(kind_text)
            if default:
                default = int(default) if kind_.base == "int" else float(default) if kind_.base == "num" else default
            head[2].append(Param(name.rstrip("!"), kind_, name.endswith("!"), description, default if default != "" else None))
        elif line[0] in "!>":
            head[3].append((line[0] == "!", line[2:]))
        else:
            finish()
            name, _, description = line.partition(": ")
            head = (name, description, [], [])
    finish()
    return tools


TABLE_TOOLS = parse_table(domains_daily.TABLE) + parse_table(domains_work.TABLE) + parse_table(domains_science.TABLE)


def tool_held_out(tool):
    return zlib.crc32(tool.name.encode()) % HELD_OUT_TOOL_ONE_IN == 0


def phrasings_of(tool, held_out):
    """The last phrasing of each tool is kept from training."""
    return tool.phrasings[-1:] if held_out else tool.phrasings[:-1]


def similar(a, b):
    return a is b or any(a.name in group and b.name in group for group in SIMILAR)


# ---- tools made up at random

# names, kind, descriptions, ways to say it (%s is the value); none of them needs the parameter's name
NATURAL = [
    (("person", "user", "owner", "client_name"), "name", ("Name of the person", "Who it is for"), (" for %s", " on behalf of %s", " as %s asked")),
    (("city", "place", "town", "location"), "city", ("City", "Where it happens"), (" in %s", " near %s", ". It's in %s")),
    (("date", "day", "on_date"), "date", ("Date, YYYY-MM-DD", "Day in the form YYYY-MM-DD"), (" on %s", ", the date is %s", " by %s")),
    (("time", "start_time", "at"), "clock", ("Time, HH:MM", "Time of day in the form HH:MM"), (" at %s", ", starting at %s", " around %s")),
    (("count", "quantity", "amount", "times"), "int:1..500", ("How many", "Number of pieces"), (" %s times", ", %s pieces", ", %s of them")),
    (("price", "budget", "cost", "max_price"), "num:1..9000:2", ("Price in euros", "Budget in euros"), (" for %s euros", ", costing %s euros", " with a budget of %s euros")),
    (("email", "mail_to", "contact"), "email", ("Email address", "Address to notify"), (" and mail %s", ", then notify %s", " (tell %s)")),
    (("note", "comment", "remark"), "message", ("Remark", "Free text"), (' and note "%s"', ', with the remark "%s"')),
    (("duration", "minutes", "length_min"), "int:1..300", ("Duration in minutes", "Minutes"), (" for %s minutes", ", it takes %s minutes", " lasting %s minutes")),
    (("weight", "weight_kg", "mass"), "num:0.1..90:2", ("Weight in kilograms", "Kilograms"), (", %s kg", " weighing %s kilograms", " of %s kg")),
    (("file", "path", "target_file"), "path", ("Path of the file", "File to use"), (" from %s", " using the file %s", " with %s")),
    (("url", "link", "address"), "url", ("Address on the web", "Link"), (" found at %s", " from %s", ", see %s")),
    (("color", "paint", "tint"), "color", ("Colour", "Colour to use"), (" in %s", ", coloured %s", " and make it %s")),
    (("company", "supplier", "brand"), "company", ("Company", "Name of the supplier"), (" by %s", " made by %s", " with the company %s")),
    (("language", "lang"), "language", ("Language", "Language to use"), (" in %s", " written in %s", " for speakers of %s")),
    (("percent", "level", "share"), "int:0..100", ("Percentage", "Level in percent"), (" at %s percent", " to %s %%", " by %s percent")),
    (("temperature", "degrees"), "num:-30..250:1", ("Temperature in degrees Celsius", "Degrees Celsius"), (" at %s degrees", " at %s °C")),
    (("distance", "distance_km", "range"), "num:0.5..900:1", ("Distance in kilometres", "Kilometres"), (" within %s km", " over %s kilometres")),
    (("tags", "labels", "keywords"), "list:tag", ("Labels", "Keywords"), (" tagged %s", " with the labels %s", " under the keywords %s")),
    (("people", "members", "guests"), "list:name", ("People who take part", "Names"), (" together with %s", " with %s", " and invite %s")),
    (("numbers", "values", "samples"), "list:num:0..900:1", ("Numbers", "Measured values"), (" using the numbers %s", " from %s", " over the values %s")),
    (("id", "reference", "number", "code"), "id", ("Number of the record", "Identifier"), (" number %s", " %s", " with the reference %s", " (%s)")),
    (("address", "destination", "where"), "obj(street:address,city:city)", ("Address", "Where to"), (" at %s", " to %s")),
    (("query", "subject", "topic"), "topic", ("What it is about", "Subject"), (" about %s", " concerning %s", " on the subject of %s")),
]
GENERIC_KINDS = ("word", "word", "word", "id", "topic", "int:1..9999", "int:0..100", "num:0..900:2", "list:word", "list:int:1..900",
                 "code", "title", "unicode", "expr", "filename", "bool", "ENUM", "ENUM", "ENUM")
GENERIC_SAY = (" with the {n} %s", ", {n} %s", ". The {n} is %s", " where {n} is %s", " and set the {n} to %s", " ({n}: %s)",
               " with %s as {n}", ", {n} = %s", " whose {n} is %s", " using %s for the {n}")
GENERIC_SAY_HELD_OUT = ("; as to the {n}, take %s", ", the {n} being %s", " [{n} %s]")
TASKS = ("! %(v)s the %(o)s", "! %(v)s %(a)s", "> I need to %(v)s the %(o)s", "> It's time to %(v)s the %(o)s", "> We have to %(v)s our %(o)s",
         "> Somebody must %(v)s the %(o)s", "> I want to %(v)s %(a)s", "> Let me %(v)s the %(o)s")
TASKS_HELD_OUT = ("> The %(o)s is waiting: %(v)s it", "> How about this: %(v)s the %(o)s", "> The idea is to %(v)s %(a)s")
DESCRIPTIONS = ("%(V)s %(a)s.", "%(V)s the %(o)s", "Use this to %(v)s %(a)s.", "Function to %(v)s the %(o)s.", "%(V)s one %(o)s of the system.")


def made_up_tool(rng, words, held_out=False):
    """A tool nobody wrote: verb and object at random, parameters partly from NATURAL, partly with random names."""
    verb = pick(rng, words.verb) if rng.random() < 0.8 else syllables(rng, 1, 2)
    r = rng.random()
    noun = (pick(rng, words.noun) if r < 0.35 else pick(rng, words.adjective) + " " + pick(rng, words.noun) if r < 0.6
            else syllables(rng) if r < 0.8 else pick(rng, words.good) + " " + pick(rng, words.noun))
    names = {"v": verb, "V": verb.capitalize(), "o": noun, "a": with_article(noun)}
    params, pieces = [], []
    used = set()
    for index in range(1 + int(rng.random() * 5)):
        required = index == 0 or rng.random() < 0.4
        param, piece = natural_param(rng, required) if rng.random() < 0.5 else generic_param(rng, words, required, held_out)
        if param.name not in used:
            used.add(param.name)
            params.append(param)
            pieces.append(piece)
    start = pick(rng, TASKS_HELD_OUT if held_out else TASKS) % names
    order = list(pieces)
    rng.shuffle(order)
    nodes = [start[2:]] + order
    if start[0] == ">":
        nodes.append(".")
    name = "_".join((verb + " " + noun).split())
    return Tool(name, pick(rng, DESCRIPTIONS) % names, params, [Phrasing(start[0] == "!", nodes)], "made up")


def natural_param(rng, required):
    names, kind_text, descriptions, sayings = pick(rng, NATURAL)
    name, saying = pick(rng, names), pick(rng, sayings)
    before, _, after = saying.partition("%s")
    piece = [before, ("slot", name, ""), after.replace("%%", "%")]
    return Param(name, kind(kind_text), required, pick(rng, descriptions)), ("opt", frozenset((name,)), piece)


def generic_param(rng, words, required, held_out):
    r = rng.random()
    spoken = (random_word(rng).lower() if r < 0.35 else pick(rng, words.noun) if r < 0.7
              else pick(rng, words.adjective) + " " + pick(rng, words.noun))
    spoken = re.sub(r"[^\w ]", "", spoken) or "part"
    name = spoken.replace(" ", "_")
    kind_text = pick(rng, GENERIC_KINDS)
    if kind_text == "ENUM":
        choices = {re.sub(r"[^\w]", "", random_word(rng) if rng.random() < 0.5 else pick(rng, words.adjective)) or "x"
                   for _ in range(2 + int(rng.random() * 4))}
        parameter_kind = Kind("enum:" + ",".join(sorted(choices)))
    else:
        parameter_kind = kind(kind_text)
    description = pick(rng, ("The {n}", "{n} to use", "Value of the {n}", "Sets the {n}.", "The {n} of the request")).replace("{n}", spoken)
    if parameter_kind.base == "bool":
        piece = [("bool", name, ", with %s" % spoken, ", without %s" % spoken)]
        return Param(name, parameter_kind, required, "Whether to use %s" % spoken), ("opt", frozenset((name,)), piece)
    saying = pick(rng, GENERIC_SAY_HELD_OUT if held_out else GENERIC_SAY).replace("{n}", spoken)
    before, _, after = saying.partition("%s")
    return Param(name, parameter_kind, required, description), ("opt", frozenset((name,)), [before, ("slot", name, ""), after])


# ---- dresses

SYNONYMS = {"city": ("town", "location", "place"), "location": ("place", "area", "where"), "date": ("day", "on", "when"),
            "text": ("content", "body", "input"), "name": ("title", "label"), "query": ("q", "search_term", "keywords"),
            "amount": ("value", "sum"), "time": ("at", "clock_time"), "start": ("start_time", "begin"), "days": ("num_days", "day_count"),
            "room": ("room_name", "area"), "title": ("name", "heading"), "recipient": ("to", "receiver"), "origin": ("from", "source", "departure"),
            "destination": ("to", "target", "arrival"), "country": ("nation", "state"), "number": ("n", "value"), "unit": ("units", "scale"),
            "folder": ("directory", "dir"), "path": ("file_path", "file"), "address": ("addr", "location"), "quantity": ("count", "qty"),
            "max_price": ("price_limit", "budget"), "language": ("lang", "language_name"), "reason": ("cause", "why"), "topic": ("subject", "theme")}
PREFIXES = ("get", "do", "api", "tool", "svc", "my", "v2", "run")


def camel(name):
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


class Instance:
    """One dress of a tool: `schema` is the OpenAI tool, `names` maps parameters to the names they have in it."""
    __slots__ = ("tool", "name", "names", "schema", "parameters")

    def __init__(self, tool, rng, keep=()):
        self.tool = tool
        params = [p for p in tool.params if p.required or p.name in keep or rng.random() < 0.7]
        if rng.random() < 0.25:
            rng.shuffle(params)
        style = rng.random()
        self.name = dressed_name(tool, rng, style)
        self.names = {}
        for p in params:
            self.names[p.name] = dressed_param(p.name, rng, style, self.names.values())
        self.parameters = params
        self.schema = {"type": "function", "function": {
            "name": self.name, "description": dressed_description(tool.description, rng), "parameters": self.object(params, rng)}}

    def object(self, params, rng):
        examples = rng.random() < 0.1
        plain = rng.random() < 0.06
        properties = {}
        for p in params:
            entry = p.kind.schema()
            if not plain:
                entry["description"] = self.describe(p, rng, examples)
            if p.default is not None and rng.random() < 0.6:
                entry["default"] = p.default
            properties[self.names[p.name]] = entry
        required = [self.names[p.name] for p in params if p.required]
        return {"type": "object", "properties": properties, "required": required}

    def describe(self, p, rng, examples):
        text = p.description
        if p.kind.base == "num" and rng.random() < 0.1:
            text += ". This is a float type value."
        if p.default is not None and rng.random() < 0.4:
            text += ". Default is %s." % p.default
        elif examples and p.kind.base == "enum":
            text += ", one of " + ", ".join(c for c, _ in p.kind.choices)
        elif not p.required and rng.random() < 0.15:
            text = "Optional: " + text[0].lower() + text[1:]
        elif rng.random() < 0.1:
            text = "The " + text[0].lower() + text[1:]
        return text


def dressed_name(tool, rng, style):
    name = tool.name
    if style < 0.5:
        return name
    if style < 0.6:
        return camel(name)
    if style < 0.7:
        return tool.domain.split()[0] + "_" + name
    if style < 0.78:
        verb, _, rest = name.partition("_")
        return (rest + "_" + verb).strip("_")
    if style < 0.88:
        return pick(rng, PREFIXES) + "_" + name
    return re.sub(r"[^A-Za-z0-9_-]", "", random_word(rng) + pick(rng, "_-") + random_word(rng)) or "tool_x"


def dressed_param(name, rng, style, taken):
    r = rng.random()
    new = name
    if 0.5 <= style < 0.6:
        new = camel(name)
    elif r < 0.2 and name in SYNONYMS:
        new = pick(rng, SYNONYMS[name])
    elif r > 0.95 or style > 0.95:
        new = re.sub(r"[^A-Za-z0-9_]", "", random_word(rng)) or "p"
    while new in taken:
        new += "_2"
    return new


def dressed_description(text, rng):
    r = rng.random()
    if r < 0.7:
        return text
    if r < 0.8:
        return text.rstrip(".")
    if r < 0.9:
        return "This function can be used to " + text[0].lower() + text[1:]
    return "Tool: " + text
