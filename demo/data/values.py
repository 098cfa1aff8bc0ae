"""Values of parameters: for each kind, a JSON value, the ways to say it in a request, and its JSON schema type.

A kind is written as one word with optional details after a colon, as the tables in domains_*.py use it:

    city, name, title, ...     a string of that sort        int:1-9, num:0.5-20:1   numbers (digits after the point)
    enum:a,b=spoken/other      one of, with spoken forms    list:food               an array of another kind
    obj(street:street,n:int:1-9)   an object                rows(name:food,quantity:int:1-9)  an array of objects

What the request says determines the value exactly: numbers are said with the digits they have, a date is said in a form
from which YYYY-MM-DD follows, an enum by its name or by a spoken form that belongs to one member only.
"""
import functools

from words import (ALNUM, CURRENCIES, HEX, MONTHS, UNICODE, WEEKDAYS, pick, random_phrase, random_word, syllables)

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
# How often a free string is one that no list holds.
RANDOM_SHARE = 0.25


class Value:
    """A JSON value and the text that names it in a request; parts holds the texts of an object's members."""
    __slots__ = ("json", "text", "parts")

    def __init__(self, json, text=None, parts=None):
        self.json, self.parts = json, parts
        self.text = str(json) if text is None else text


def between(rng, low, high):
    return low + int(rng.random() * (high - low + 1))


def joined(texts, last=" and "):
    """a, b and c"""
    if len(texts) == 1:
        return texts[0]
    return ", ".join(texts[:-1]) + last + texts[-1]


def with_article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


# ---- strings; each takes (rng, words) and returns a string or a Value

def person(rng, w):
    return pick(rng, w.first) + " " + pick(rng, w.last) if rng.random() < 0.6 else pick(rng, w.first)


def thing(rng, w):
    r = rng.random()
    if r < 0.5:
        return pick(rng, w.good)
    return pick(rng, w.color) + " " + pick(rng, w.good) if r < 0.8 else pick(rng, w.adjective) + " " + pick(rng, w.noun)


def title(rng, w):
    r = rng.random()
    if r < 0.3:
        return "The %s %s" % (pick(rng, w.adjective).capitalize(), pick(rng, w.noun).capitalize())
    if r < 0.5:
        return "%s of the %s" % (pick(rng, w.noun).capitalize(), pick(rng, w.noun).capitalize())
    if r < 0.7:
        return "%s and %s" % (pick(rng, w.noun).capitalize(), pick(rng, w.noun).capitalize())
    if r < 0.85:
        return "%s %s" % (pick(rng, w.adjective).capitalize(), pick(rng, w.animal).capitalize())
    return "%s for %s" % (with_article(pick(rng, w.noun)).title(), pick(rng, w.first))


def topic(rng, w):
    r = rng.random()
    if r < 0.35:
        return pick(rng, w.adjective) + " " + pick(rng, w.noun)
    if r < 0.55:
        return pick(rng, w.noun) + " " + pick(rng, w.noun)
    if r < 0.75:
        return "%s of the %s" % (pick(rng, w.noun), pick(rng, w.noun))
    return "%s in %s" % (pick(rng, w.noun), pick(rng, w.city)) if r < 0.9 else pick(rng, w.noun)


def task(rng, w):
    """Something to do: "paint the north gate"."""
    r = rng.random()
    if r < 0.5:
        return "%s the %s" % (pick(rng, w.verb), pick(rng, w.noun))
    if r < 0.75:
        return "%s the %s %s" % (pick(rng, w.verb), pick(rng, w.adjective), pick(rng, w.noun))
    if r < 0.9:
        return "%s %s with %s" % (pick(rng, w.verb), pick(rng, w.food), pick(rng, w.first))
    return "%s %d %s" % (pick(rng, w.verb), between(rng, 2, 40), pick(rng, w.good))


def message(rng, w):
    """A short sentence somebody might send or write down."""
    r = rng.random()
    if r < 0.2:
        return "The %s is %s, please %s it." % (pick(rng, w.noun), pick(rng, w.adjective), pick(rng, w.verb))
    if r < 0.4:
        return "I will be %d minutes late" % between(rng, 3, 55)
    if r < 0.6:
        return "Can we %s %s at %s?" % (task(rng, w), pick(rng, WEEKDAYS), clock(rng, w).json)
    if r < 0.8:
        return "%s needs %d %s for the %s" % (pick(rng, w.first), between(rng, 2, 90), pick(rng, w.good), pick(rng, w.noun))
    return "Thanks for the %s, see you in %s!" % (pick(rng, w.noun), pick(rng, w.city))


def email(rng, w):
    user = pick(rng, w.first).lower() if rng.random() < 0.6 else syllables(rng)
    if rng.random() < 0.5:
        user += pick(rng, "._") + (pick(rng, w.last).lower() if rng.random() < 0.6 else str(between(rng, 1, 99)))
    host = pick(rng, w.company).lower() if rng.random() < 0.6 else syllables(rng)
    return "%s@%s.%s" % (user, host, pick(rng, ("com", "org", "net", "example", "io", "de", "fr", "co.uk")))


def url(rng, w):
    host = pick(rng, w.company).lower() if rng.random() < 0.5 else syllables(rng, 2, 3)
    path = "/".join(pick(rng, w.noun) if rng.random() < 0.6 else random_word(rng) for _ in range(between(rng, 0, 2)))
    return "https://%s%s.%s/%s" % (pick(rng, ("", "www.", "api.")), host, pick(rng, ("com", "org", "net", "io")), path)


def filename(rng, w):
    stem = pick(rng, w.noun) if rng.random() < 0.6 else random_word(rng)
    if rng.random() < 0.4:
        stem += pick(rng, "_-") + str(between(rng, 1, 2030))
    return stem + "." + pick(rng, ("txt", "csv", "pdf", "json", "md", "png", "jpg", "log", "xlsx", "py", "c", "stl", "gcode"))


def path(rng, w):
    parts = [pick(rng, w.noun) if rng.random() < 0.7 else random_word(rng) for _ in range(between(rng, 1, 3))]
    return pick(rng, ("/", "/home/%s/" % pick(rng, w.first).lower(), "/srv/", "~/", "./")) + "/".join(parts + [filename(rng, w)])


def folder(rng, w):
    return path(rng, w).rpartition("/")[0] or "/"


def identifier(rng, _):
    r = rng.random()
    if r < 0.25:
        return "%s-%d" % ("".join(pick(rng, "ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(between(rng, 2, 4))), between(rng, 10, 99999))
    if r < 0.5:
        return "".join(pick(rng, ALNUM) for _ in range(between(rng, 5, 12)))
    if r < 0.7:
        return "".join(pick(rng, HEX) for _ in range(between(rng, 6, 16)))
    if r < 0.85:
        return "%s_%s" % (syllables(rng, 1, 2), "".join(pick(rng, ALNUM) for _ in range(between(rng, 3, 8))))
    return str(between(rng, 10000, 99999999))


def code(rng, _):
    return "".join(pick(rng, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(between(rng, 2, 5)))


def phone(rng, _):
    digits = "".join(str(int(rng.random() * 10)) for _ in range(9))
    return pick(rng, ("+%d %s %s", "+%d%s%s", "%d-%s-%s")) % (between(rng, 20, 99), digits[:3], digits[3:])


def address(rng, w):
    return "%d %s %s" % (between(rng, 1, 240), pick(rng, w.street), pick(rng, ("Street", "Road", "Lane", "Avenue")))


def date(rng, _):
    year, month = between(rng, 2019, 2031), between(rng, 1, 12)
    day = between(rng, 1, MONTH_DAYS[month - 1])
    iso = "%04d-%02d-%02d" % (year, month, day)
    r = rng.random()
    if r < 0.5:
        return Value(iso)
    if r < 0.75:
        return Value(iso, "%s %d, %d" % (MONTHS[month - 1], day, year))
    return Value(iso, "%d %s %d" % (day, MONTHS[month - 1], year))


def clock(rng, _):
    hour, minute = between(rng, 0, 23), pick(rng, (0, 0, 5, 10, 15, 20, 30, 30, 40, 45, 50, between(rng, 0, 59)))
    value = "%02d:%02d" % (hour, minute)
    r = rng.random()
    if r < 0.6:
        return Value(value)
    half, twelve = ("am", "pm")[hour >= 12], (hour + 11) % 12 + 1
    return Value(value, "%d %s" % (twelve, half) if minute == 0 else "%d:%02d %s" % (twelve, minute, half))


def moment(rng, w):
    day, at = date(rng, w), clock(rng, w)
    return Value("%sT%s" % (day.json, at.json), "%s at %s" % (day.text, at.text))


def word(rng, w):
    return random_word(rng) if rng.random() < 0.5 else pick(rng, w.noun)


def expression(rng, _):
    terms = [str(between(rng, 1, 999)) for _ in range(between(rng, 2, 4))]
    out = terms[0]
    for term in terms[1:]:
        out += pick(rng, (" + ", " - ", " * ", " / ")) + term
    return out


def recipe(rng, w):
    return "%s with %s" % (pick(rng, w.food), pick(rng, w.food)) if rng.random() < 0.6 else pick(rng, w.food)


def tag(rng, w):
    return pick(rng, w.noun) if rng.random() < 0.6 else syllables(rng)


def hashtag(rng, w):
    return "#" + tag(rng, w)


# kind -> (function, whether a random string may stand in its place)
STRINGS = {
    "name": (person, True), "first": (lambda r, w: pick(r, w.first), True), "city": (lambda r, w: pick(r, w.city), True),
    "country": (lambda r, w: pick(r, w.country), True), "color": (lambda r, w: pick(r, w.color), False),
    "food": (lambda r, w: pick(r, w.food), True), "dish": (recipe, True), "good": (thing, True),
    "animal": (lambda r, w: pick(r, w.animal), True), "company": (lambda r, w: pick(r, w.company), True),
    "language": (lambda r, w: pick(r, w.language), True), "room": (lambda r, w: pick(r, w.room), True),
    "title": (title, True), "topic": (topic, True), "task": (task, True), "message": (message, True),
    "email": (email, False), "url": (url, False), "filename": (filename, False), "path": (path, False),
    "folder": (folder, False), "id": (identifier, False), "code": (code, False), "phone": (phone, False),
    "address": (address, False), "date": (date, False), "clock": (clock, False), "moment": (moment, False),
    "weekday": (lambda r, w: pick(r, WEEKDAYS), False), "month": (lambda r, w: pick(r, MONTHS), False),
    "currency": (lambda r, w: pick(r, CURRENCIES), False), "word": (word, True), "expr": (expression, False),
    "tag": (tag, True), "hashtag": (hashtag, False), "unicode": (lambda r, w: pick(r, w.unicode or UNICODE), False),
}


class Kind:
    """One kind, parsed: make(rng, words) -> Value, and schema() -> JSON schema without a description."""

    def __init__(self, text):
        self.text = text
        self.base, _, rest = text.partition(":")
        self.members = None
        if text.startswith(("obj(", "rows(")):
            self.base, _, inner = text[:-1].partition("(")
            self.members = [(m.split(":", 1)[0], kind(m.split(":", 1)[1])) for m in inner.split(",")]
        elif self.base == "int":
            low, _, high = rest.partition("..")
            self.low, self.high = int(low), int(high)
        elif self.base == "num":
            span, _, digits = rest.partition(":")
            low, _, high = span.partition("..")
            self.low, self.high, self.digits = float(low), float(high), int(digits or 1)
        elif self.base == "enum":
            self.choices = []
            for choice in rest.split(","):
                name, _, spoken = choice.partition("=")
                self.choices.append((name, tuple(spoken.split("/")) if spoken else (name.replace("_", " "),)))
        elif self.base == "list":
            self.item = kind(rest)
        elif self.base != "bool" and self.base not in STRINGS:
            raise ValueError("unknown kind '%s'" % text)

    @property
    def free(self):
        """Whether values are strings of any form, so that several of them can be told apart in a sentence."""
        return self.base in STRINGS

    def schema(self):
        if self.base == "rows":
            return {"type": "array", "items": object_schema(self.members)}
        if self.base == "obj":
            return object_schema(self.members)
        if self.base == "int":
            return {"type": "integer"}
        if self.base == "num":
            return {"type": "number"}
        if self.base == "bool":
            return {"type": "boolean"}
        if self.base == "enum":
            return {"type": "string", "enum": [name for name, _ in self.choices]}
        if self.base == "list":
            return {"type": "array", "items": self.item.schema()}
        return {"type": "string"}

    def make(self, rng, words):
        base = self.base
        if base in STRINGS:
            function, random_too = STRINGS[base]
            if random_too and rng.random() < RANDOM_SHARE:
                return Value(random_word(rng) if rng.random() < 0.5 else random_phrase(rng))
            value = function(rng, words)
            return value if isinstance(value, Value) else Value(value)
        if base == "int":
            n = between(rng, self.low, self.high)
            return Value(n, NUMBER_WORDS[n] if 1 < n <= 12 and rng.random() < 0.12 else str(n))
        if base == "num":
            return self.number(rng)
        if base == "enum":
            name, spoken = pick(rng, self.choices)
            return Value(name, pick(rng, spoken))
        if base == "bool":
            return Value(rng.random() < 0.5)
        if base == "list":
            return self.sequence(rng, words)
        if base == "obj":
            return self.record(rng, words)
        rows = [self.record(rng, words) for _ in range(between(rng, 1, 3))]
        return Value([r.json for r in rows], joined([" ".join(reversed([p.text for p in r.parts.values()])) for r in rows]))

    def number(self, rng):
        digits = between(rng, 0, self.digits)
        if digits == 0:
            n = between(rng, int(self.low), int(self.high))
            return Value(n)
        n = round(self.low + rng.random() * (self.high - self.low), digits)
        return Value(n)

    def sequence(self, rng, words):
        """2 to 5 different items, seldom 1; numbers are said as digits."""
        count = between(rng, 2, 5) if rng.random() < 0.92 else 1
        items = {}
        for _ in range(count):
            item = self.item.make(rng, words)
            items[str(item.json)] = item
        items = list(items.values())
        if self.item.base in ("int", "num"):
            texts = [str(i.json) for i in items]
            return Value([i.json for i in items], joined(texts, pick(rng, (" and ", ", "))))
        return Value([i.json for i in items], joined([i.text for i in items]))

    def record(self, rng, words):
        parts = {name: member.make(rng, words) for name, member in self.members}
        return Value({n: p.json for n, p in parts.items()}, ", ".join(p.text for p in parts.values()), parts)


def object_schema(members):
    return {"type": "object", "properties": {n: k.schema() for n, k in members}, "required": [n for n, _ in members]}


@functools.lru_cache(maxsize=None)
def kind(text):
    return Kind(text)


def fits(value, schema):
    """Whether a JSON value satisfies the part of JSON schema that this generator uses."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind_name = schema.get("type")
    if kind_name == "string":
        return isinstance(value, str)
    if kind_name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind_name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind_name == "boolean":
        return isinstance(value, bool)
    if kind_name == "array":
        return isinstance(value, list) and all(fits(v, schema.get("items", {})) for v in value)
    if kind_name == "object":
        known = schema.get("properties", {})
        return (isinstance(value, dict) and all(n in value for n in schema.get("required", []))
                and all(n in known and fits(v, known[n]) for n, v in value.items()))
    return kind_name is None
