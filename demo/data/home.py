"""Samples of kind (b): conversations of 20 to 60 assistant turns with the home and workshop assistant of world.py.

A conversation is a chain of scenes. A scene says what the user wants, makes the calls that a careful assistant makes,
lets the world answer and reports the answer. What the assistant says and does is one rule everywhere:

  * several independent things asked at once are called at once; what depends on a result waits for it;
  * an error is told as the world put it; an error that has a known remedy (the arm is not homed) is remedied first;
  * a value that is missing is asked for; a thing that no tool does is refused; what the conversation already holds is
    answered without a call.

Each list of phrasings keeps its last one from training.
"""
import datetime
import random

from calls import LEAD, LEAD_HELD_OUT, REFUSAL_MANY, SMALL_TALK, TRAIL, TRAIL_HELD_OUT, WRAP, WRAP_HELD_OUT, assistant_calls, call
from chat_text import to_json
from values import clock, joined, message
from words import COLORS, pick, random_word
from world import TOOLS, World


def number(value):
    return str(int(value)) if float(value).is_integer() else str(value)


def report(name, a, r):
    """The sentence in which the assistant reports one answer r to a call with arguments a."""
    if "error" in r:
        return "That did not work: %s." % r["error"]
    return REPORTS[name](a, r)


def lamp(r):
    return "The lamp in the %s is off." % r["room"] if r["brightness"] == 0 else "The lamp in the %s is at %d %%, %s." % (r["room"], r["brightness"], r["color"])


REPORTS = {
    "light_set": lambda a, r: lamp(r),
    "light_status": lambda a, r: lamp(r),
    "heating_set": lambda a, r: "The %s is set to %s °C." % (r["room"], number(r["target"])),
    "heating_status": lambda a, r: "It is %s °C in the %s, the target is %s °C." % (number(r["celsius"]), r["room"], number(r["target"])),
    "door_lock": lambda a, r: "The %s door is %s." % (r["door"], "locked" if r["locked"] else "unlocked"),
    "timer_start": lambda a, r: "The timer %s runs for %s minutes." % (r["name"], number(r["minutes"])),
    "timer_list": lambda a, r: "Running: %s." % joined(["%s (%s minutes)" % (t["name"], number(t["minutes"])) for t in r["timers"]]) if r["timers"] else "No timer is running.",
    "timer_cancel": lambda a, r: "The timer %s is stopped." % r["cancelled"],
    "calendar_add": lambda a, r: "%s is in the calendar on %s at %s." % (a["title"], a["date"], a["time"]),
    "calendar_list": lambda a, r: "On %s: %s." % (a["date"], joined(["%s %s" % (e["time"], e["title"]) for e in r["events"]])) if r["events"] else "There is nothing on %s." % a["date"],
    "calendar_move": lambda a, r: "It is moved to %s at %s." % (r["date"], r["time"]),
    "calendar_remove": lambda a, r: "%s is removed." % r["removed"],
    "stock_find": lambda a, r: "There are %d %s on shelf %s." % (r["count"], r["item"], r["shelf"]),
    "stock_take": lambda a, r: "%d %s taken, %d left." % (a["count"], r["item"], r["left"]),
    "stock_add": lambda a, r: "There are %d %s on shelf %s now." % (r["count"], r["item"], r["shelf"]),
    "order_create": lambda a, r: "Ordered as %s, it arrives on %s." % (r["order_id"], r["arrives"]),
    "order_status": lambda a, r: "Order %s is %s and arrives on %s." % (r["order_id"], r["state"], r["arrives"]),
    "file_list": lambda a, r: "%s holds %s." % (a["folder"], joined(r["files"])),
    "file_read": lambda a, r: "It says: %s" % r["text"],
    "file_write": lambda a, r: "%s is written." % r["path"],
    "sensor_read": lambda a, r: "%s reads %s %s." % (r["sensor"], r["value"], r["unit"]),
    "sensor_history": lambda a, r: "Over %d hours %s was between %s and %s %s, %s on average." % (r["hours"], r["sensor"], r["lowest"], r["highest"], r["unit"], r["average"]),
    "arm_home": lambda a, r: "The arm is homed.",
    "arm_move": lambda a, r: "The arm is at %d, %d, %d." % (r["x"], r["y"], r["z"]),
    "arm_grip": lambda a, r: "The gripper is %s." % r["gripper"],
    "arm_status": lambda a, r: "The arm is at %d, %d, %d and the gripper is %s." % (r["x"], r["y"], r["z"], r["gripper"]),
    "printer_start": lambda a, r: "Printing %s, it takes %d minutes." % (r["path"], r["minutes"]),
    "printer_status": lambda a, r: "The printer is idle." if r["state"] == "idle" else "The printer is at %d %% of %s." % (r["percent"], r["path"]),
    "message_send": lambda a, r: "The message to %s is sent." % r["to"],
}


class Talk:
    """A conversation being made; `turns` counts assistant messages."""

    def __init__(self, seed, split="train"):
        held_words = split == "unseen"
        self.world = World(seed, "held_out" if held_words else "train")
        self.rng = random.Random("talk %s" % seed)
        self.held = split in ("unseen", "phrasings")
        self.messages = [{"role": "system", "content": self.world.system_prompt()}]
        self.turns = 0
        self.last_reading = None

    # ---- what the scenes are written with

    def user(self, options, **values):
        """One of the phrasings; "! ..." is an imperative and gets wrapped."""
        rng = self.rng
        text = options[-1] if self.held else options[int(rng.random() * (len(options) - 1))]
        imperative = text.startswith("! ")
        text = text[2:] if imperative else text
        open_end = text.endswith("}")  # a value at the end: thanks behind it could be taken for a part of it
        text = text.format(**values)
        if imperative:
            wrap = pick(rng, WRAP_HELD_OUT if self.held else WRAP)
            text = wrap.replace("{C}", text[0].upper() + text[1:]).replace("{c}", text)
        r = rng.random()
        if r < 0.06:
            text = pick(rng, LEAD_HELD_OUT if self.held else LEAD) + text
        elif r < 0.1 and not open_end:
            text += pick(rng, TRAIL_HELD_OUT if self.held else TRAIL)
        self.messages.append({"role": "user", "content": text})

    def say(self, text):
        self.messages.append({"role": "assistant", "content": text})
        self.turns += 1

    def call(self, *calls):
        """Calls of one assistant turn and their answers."""
        self.messages.append(assistant_calls([call(n, a) for n, a in calls]))
        self.turns += 1
        results = []
        for name, arguments in calls:
            result = self.world.call(name, arguments)
            self.messages.append({"role": "tool", "content": to_json(result)})
            results.append(result)
        return results

    def do(self, *calls):
        """Calls, then the report in words."""
        results = self.call(*calls)
        self.say(" ".join(report(n, a, r) for (n, a), r in zip(calls, results)))
        return results

    def room(self):
        return pick(self.rng, list(self.world.lights))

    def between(self, low, high):
        return low + int(self.rng.random() * (high - low + 1))

    def when(self):
        """(spoken day, ISO date)"""
        rng, today = self.rng, self.world.today
        r = rng.random()
        if r < 0.3:
            return "today", today.isoformat()
        if r < 0.6:
            return "tomorrow", (today + datetime.timedelta(days=1)).isoformat()
        if r < 0.75:
            return "the day after tomorrow", (today + datetime.timedelta(days=2)).isoformat()
        day = self.world.day(self.between(0, 20))
        return "on " + day, day

    def time(self):
        value = clock(self.rng, self.world.words)
        return value.text, value.json

    def event_on(self):
        """A day that has events, mostly."""
        events = list(self.world.events.values())
        return pick(self.rng, events)["date"] if events else self.world.day(1)


# ---- scenes

def lights(t):
    rng, room = t.rng, t.room()
    level = pick(rng, (0, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 100, t.between(1, 99)))
    arguments = {"room": room, "brightness": level}
    if level == 0:
        t.user(("! switch off the light in the {room}", "Nobody is in the {room}, lights out there.", "It's too bright in the {room}; off with the lamp.",
                "! turn the {room} lamp off", "No light needed in the {room} any more."), room=room)
    elif rng.random() < 0.35:
        arguments["color"] = pick(rng, COLORS)
        t.user(("! make the light in the {room} {color} at {level} percent", "I want {color} light in the {room}, {level} %.", "! set the {room} lamp to {level} percent {color}",
                "{color} at {level} percent would suit the {room}.", "Paint the {room} with {color} light of {level} percent."), room=room, level=level, color=arguments["color"])
    else:
        t.user(("! set the light in the {room} to {level} percent", "It's dark in the {room}, {level} percent please.", "I'd like {level} % light in the {room}.",
                "! dim the {room} to {level} percent", "The {room} lamp should be at {level}.", "How about {level} percent of light for the {room}?"), room=room, level=level)
    t.do(("light_set", arguments))
    r = rng.random()
    if r < 0.3:
        other = t.room()
        t.user(("And the same in the {room}.", "Now the {room} too.", "Do that in the {room} as well.", "The {room} likewise, please."), room=other)
        t.do(("light_set", dict(arguments, room=other)))
    elif r < 0.5:
        other = t.room()
        t.user(("No, I meant the {room}.", "Sorry, wrong room: I meant the {room}.", "Not there, in the {room}!", "Oops, it's the {room} that I was talking about."), room=other)
        t.do(("light_set", dict(arguments, room=other)))
    elif r < 0.65:
        new = t.between(1, 100)
        t.user(("A bit different: {level} percent.", "Make that {level}.", "{level} would be better.", "Let's rather have {level} percent."), level=new)
        t.do(("light_set", dict(arguments, brightness=new)))


def light_question(t):
    room = t.room()
    t.user(("Is the light on in the {room}?", "Did I leave the lamp on in the {room}?", "How bright is the lamp in the {room}?", "! check the {room} lamp",
            "What does the lamp in the {room} do right now?"), room=room)
    r = t.do(("light_status", {"room": room}))[0]
    if r["brightness"] and t.rng.random() < 0.6:
        t.user(("Then switch it off.", "Off with it.", "Turn it off, please.", "Make it dark, then."))
        t.do(("light_set", {"room": room, "brightness": 0}))


def several_lights(t):
    rooms = t.rng.sample(list(t.world.lights), 2 + int(t.rng.random() * 2))
    level = pick(t.rng, (0, 0, 20, 50, 100))
    if level:
        t.user(("! set the lamps in the {rooms} to {level} percent", "I want {level} percent of light in the {rooms}.", "{level} percent for the {rooms}, please.",
                "Let the {rooms} all have {level} percent of light."), rooms=joined(rooms), level=level)
    else:
        t.user(("! turn off the lights in the {rooms}", "Lights out in the {rooms}.", "Nobody needs light in the {rooms}.", "Make the {rooms} dark."), rooms=joined(rooms))
    t.do(*[("light_set", {"room": r, "brightness": level}) for r in rooms])


def wrong_room(t):
    wrong = pick(t.rng, ("castle", "ballroom", "hangar", "cockpit", "vault", "studio", "chapel", random_word(t.rng)))
    level = t.between(1, 100)
    t.user(("! set the lamp in the {room} to {level} percent", "{level} percent of light in the {room}, please.", "Light up the {room} with {level} percent."), room=wrong, level=level)
    t.do(("light_set", {"room": wrong, "brightness": level}))
    right = t.room()
    t.user(("Then the {room}.", "I mean the {room}.", "Sorry, the {room}.", "Take the {room} instead, then."), room=right)
    t.do(("light_set", {"room": right, "brightness": level}))


def heating(t):
    room, celsius = t.room(), t.between(14, 25)
    if t.rng.random() < 0.4:
        celsius += 0.5
    t.user(("! heat the {room} to {c} degrees", "I'm cold in the {room}, make it {c} °C.", "The {room} should have {c} degrees.", "! set the heating in the {room} to {c}",
            "I'd be happy with {c} degrees in the {room}."), room=room, c=number(celsius))
    t.do(("heating_set", {"room": room, "celsius": celsius}))
    if t.rng.random() < 0.35:
        new = t.between(14, 25)
        t.user(("No, {c}.", "Rather {c} degrees.", "Too much? Make it {c}.", "On second thought {c} degrees."), c=new)
        t.do(("heating_set", {"room": room, "celsius": new}))


def heating_too_far(t):
    room, celsius = t.room(), pick(t.rng, (31, 35, 40, 2, 0, 45))
    t.user(("! set the {room} to {c} degrees", "Make the {room} {c} degrees.", "{c} degrees in the {room}, now!"), room=room, c=celsius)
    t.do(("heating_set", {"room": room, "celsius": celsius}))
    new = t.between(6, 29)
    t.user(("Then {c}.", "All right, {c} degrees.", "{c} then.", "So be it: {c}."), c=new)
    t.do(("heating_set", {"room": room, "celsius": new}))


def warmer(t):
    """A change relative to the target: read it, then set."""
    room, by = t.room(), t.between(1, 3)
    up = t.rng.random() < 0.6
    options = (("Make the {room} {by} degrees warmer.", "Turn the heating in the {room} up by {by} degrees.", "{by} degrees more in the {room}, please.", "The {room} could use {by} more degrees.")
               if up else ("Make the {room} {by} degrees cooler.", "Turn the heating in the {room} down by {by} degrees.", "{by} degrees less in the {room}, please.",
                           "The {room} has {by} degrees too many."))
    t.user(options, room=room, by=by)
    target = t.call(("heating_status", {"room": room}))[0]["target"]
    t.do(("heating_set", {"room": room, "celsius": target + by if up else target - by}))


def climate_question(t):
    room = t.room()
    t.user(("How warm is it in the {room}?", "What's the temperature in the {room}?", "Is it cold in the {room}?", "! read the heating of the {room}",
            "Do I need a sweater in the {room}?"), room=room)
    t.do(("heating_status", {"room": room}))


def doors(t):
    door, lock = pick(t.rng, list(t.world.doors)), t.rng.random() < 0.65
    if lock:
        t.user(("! lock the {door} door", "Nobody should get in by the {door} door.", "The {door} door should be locked.", "Is the {door} door shut? Lock it.", "Bolt the {door} door."), door=door)
    else:
        t.user(("! unlock the {door} door", "I can't get in, open the {door} door.", "The postman is at the {door} door, unlock it.", "! open the lock of the {door} door", "Let me in at the {door} door."), door=door)
    t.do(("door_lock", {"door": door, "locked": lock}))


def leaving(t):
    """Several different things at once."""
    door, room, celsius = pick(t.rng, list(t.world.doors)), t.room(), t.between(12, 17)
    dark = t.room()
    t.user(("I'm leaving: lock the {door} door, turn off the light in the {dark} and heat the {room} to {c} degrees.",
            "Good night! Lights out in the {dark}, {c} degrees in the {room}, and lock the {door} door.",
            "! switch off the {dark} lamp, lock the {door} door and set the {room} to {c} °C",
            "Off to bed. The {door} door must be locked, the {dark} dark and the {room} at {c} degrees."), door=door, dark=dark, room=room, c=celsius)
    calls = {"door": ("door_lock", {"door": door, "locked": True}), "dark": ("light_set", {"room": dark, "brightness": 0}),
             "room": ("heating_set", {"room": room, "celsius": celsius})}
    text = t.messages[-1]["content"]
    order = sorted(calls, key=lambda k: text.find({"door": "the %s door" % door, "dark": dark + " lamp" if "lamp" in text else "the " + dark,
                                                   "room": "%d °C" % celsius if "°C" in text else "%d degrees" % celsius}[k]))
    t.do(*[calls[k] for k in order])


def timers(t):
    name, minutes = t.world.a_topic(), pick(t.rng, (3, 5, 8, 10, 12, 15, 20, 25, 30, 45, 60, 90, t.between(1, 240)))
    if t.rng.random() < 0.25:
        t.user(("! start a timer called {name}", "I need a timer for {name}.", "Count down for {name}.", "A timer named {name}, please."), name=name)
        t.say("Could you tell me the minutes?")
        t.user(("{m}", "{m} minutes", "Let it run for {m} minutes.", "It takes {m}."), m=minutes)
    else:
        t.user(("! start a timer {name} for {m} minutes", "Wake me in {m} minutes, call it {name}.", "{name} takes {m} minutes, time it.", "! set a {m} minute timer for {name}",
                "In {m} minutes the {name} is due, count that."), name=name, m=minutes)
    result = t.do(("timer_start", {"name": name, "minutes": minutes}))[0]
    r = t.rng.random()
    if r < 0.3 and "error" not in result:
        t.user(("Forget that timer.", "Cancel it.", "Stop that timer again.", "I don't need it after all."))
        t.do(("timer_cancel", {"name": name}))
    elif r < 0.5:
        t.user(("Which timers are running?", "What timers do I have?", "! list my timers", "Is anything counting down?"))
        t.do(("timer_list", {}))


def timer_stop(t):
    running = list(t.world.timers)
    if not running:
        t.user(("Which timers are running?", "Any timers?", "! show the timers", "Is something ticking?"))
        t.do(("timer_list", {}))
        return
    name = pick(t.rng, running)
    t.user(("! stop the timer {name}", "The {name} is done, stop its timer.", "! cancel {name}", "No more counting for {name}."), name=name)
    t.do(("timer_cancel", {"name": name}))


def calendar_add(t):
    title, (day, date), (spoken, at) = t.world.a_topic(), t.when(), t.time()
    arguments = {"title": title, "date": date, "time": at}
    if t.rng.random() < 0.3:
        arguments["minutes"] = pick(t.rng, (15, 30, 45, 90, 120))
        t.user(("! put {title} into the calendar {day} at {time} for {m} minutes", "{title} is {day} at {time}, {m} minutes.", "I have {title} {day} at {time}, it takes {m} minutes.",
                "Block {m} minutes {day} from {time} for {title}."), title=title, day=day, time=spoken, m=arguments["minutes"])
    else:
        t.user(("! put {title} into the calendar {day} at {time}", "I have {title} {day} at {time}, note it.", "{title} {day}, {time}: put it down.", "Remember {title} {day} at {time}.",
                "Save the date: {title}, {day}, {time}."), title=title, day=day, time=spoken)
    result = t.do(("calendar_add", arguments))[0]
    if "error" in result or t.rng.random() < 0.25:
        spoken, at = t.time()
        if "error" in result:
            t.user(("Then at {time}.", "Take {time} instead.", "{time} then.", "How about {time}?"), time=spoken)
            t.do(("calendar_add", dict(arguments, time=at)))
        else:
            t.user(("No, at {time}.", "Move it to {time}.", "It's at {time}, I was wrong.", "Shift that to {time}."), time=spoken)
            t.do(("calendar_move", {"event_id": result["event_id"], "date": date, "time": at}))


def calendar_clash(t):
    events = list(t.world.events.values())
    if not events:
        return calendar_add(t)
    event, title = pick(t.rng, events), t.world.a_topic()
    arguments = {"title": title, "date": event["date"], "time": event["time"]}
    t.user(("! add {title} on {date} at {time}", "{title} on {date}, {time}, please.", "Note {title} for {date} at {time}."), **arguments)
    t.do(("calendar_add", arguments))
    spoken, at = t.time()
    t.user(("Then at {time}.", "All right, {time}.", "Make it {time} instead.", "{time} will do, too."), time=spoken)
    t.do(("calendar_add", dict(arguments, time=at)))


def calendar_day(t):
    date = t.event_on()
    t.user(("What's on {date}?", "Do I have anything on {date}?", "! list my events on {date}", "How does {date} look?", "Anything planned for {date}?"), date=date)
    events = t.do(("calendar_list", {"date": date}))[0]["events"]
    if events and t.rng.random() < 0.6:
        event = pick(t.rng, events)
        if t.rng.random() < 0.5:
            spoken, at = t.time()
            t.user(("Move {title} to {time}.", "{title} should be at {time}.", "{title} starts at {time} instead.", "Put off {title} until {time}."), title=event["title"], time=spoken)
            t.do(("calendar_move", {"event_id": event["event_id"], "date": date, "time": at}))
        else:
            t.user(("Cancel {title}.", "{title} is off, remove it.", "Delete {title}.", "I won't go to {title}."), title=event["title"])
            t.do(("calendar_remove", {"event_id": event["event_id"]}))


def calendar_chain(t):
    """Move an event of which only the title and the day are known: look up its number first."""
    if not t.world.events:
        return calendar_day(t)
    event = pick(t.rng, list(t.world.events.values()))
    (day, date), (spoken, at) = t.when(), t.time()
    t.user(("! move {title} from {old} to {day} at {time}", "{title} on {old} can't happen, it's {day} at {time} now.", "Reschedule {title} ({old}): {day}, {time}.",
            "Instead of {old}, {title} will be {day} at {time}."), title=event["title"], old=event["date"], day=day, time=spoken)
    found = t.call(("calendar_list", {"date": event["date"]}))[0]["events"]
    number_ = next(e["event_id"] for e in found if e["title"] == event["title"])
    t.do(("calendar_move", {"event_id": number_, "date": date, "time": at}))


def stock_question(t):
    item = pick(t.rng, list(t.world.stock))
    t.user(("How many {item} do we have?", "Where are the {item}?", "Do we still have {item}?", "! look up {item} in the store", "On which shelf is the {item}?"), item=item)
    found = t.do(("stock_find", {"item": item}))[0]
    if found["count"] > 1 and t.rng.random() < 0.5:
        count = t.between(1, found["count"])
        t.user(("I take {n}.", "Take out {n} of them.", "Give me {n}.", "{n} of those, please."), n=count)
        t.do(("stock_take", {"item": item, "count": count}))


def stock_take(t):
    item = pick(t.rng, list(t.world.stock))
    have = t.world.stock[item]["count"]
    short = t.rng.random() < 0.35 or have == 0
    count = have + t.between(1, 60) if short else t.between(1, have)
    t.user(("! take {n} {item} out of the store", "I need {n} {item}.", "I'm using {n} {item} for the job.", "{n} {item} please.", "Book out {n} {item}."), n=count, item=item)
    if not short:
        t.do(("stock_take", {"item": item, "count": count}))
        return
    t.do(("stock_take", {"item": item, "count": count}))
    supplier = pick(t.rng, t.world.words.company)
    if have and t.rng.random() < 0.6:
        t.user(("Then take those and order the rest from {s}.", "Take what is there, {s} shall send the rest.", "Take all of them and get the others from {s}.",
                "Use up what we have; the remainder comes from {s}."), s=supplier)
        t.do(("stock_take", {"item": item, "count": have}), ("order_create", {"supplier": supplier, "items": [{"item": item, "count": count - have}]}))
    else:
        t.user(("Then order {n} from {s}.", "{s} should send {n} of them.", "Order {n} at {s}.", "Get {n} from {s}, then."), n=count, s=supplier)
        t.do(("order_create", {"supplier": supplier, "items": [{"item": item, "count": count}]}))


def stock_add(t):
    count = t.between(1, 200)
    if t.rng.random() < 0.6:
        item = pick(t.rng, list(t.world.stock))
        t.user(("! add {n} {item} to the store", "{n} {item} came in.", "I put {n} {item} back.", "We got {n} more {item}.", "Book in {n} {item}."), n=count, item=item)
        t.do(("stock_add", {"item": item, "count": count}))
        return
    item, shelf = t.world.a_part(), t.world.a_shelf()
    if item in t.world.stock:
        return stock_question(t)
    t.user(("! add {n} {item} to the store", "{n} {item} came in.", "There are {n} {item} to be stored.", "Book in {n} {item}."), n=count, item=item)
    t.do(("stock_add", {"item": item, "count": count}))
    t.user(("On {shelf}.", "Shelf {shelf}.", "Put them on {shelf}.", "They go to {shelf}."), shelf=shelf)
    t.do(("stock_add", {"item": item, "count": count, "shelf": shelf}))


def unknown_part(t):
    item = t.world.a_part()
    if item in t.world.stock:
        return stock_question(t)
    t.user(("How many {item} do we have?", "Where do we keep the {item}?", "Is there any {item} left?"), item=item)
    t.do(("stock_find", {"item": item}))


def two_parts(t):
    items = t.rng.sample(list(t.world.stock), 2 + int(t.rng.random() * 2))
    t.user(("How many {items} do we have?", "! look up {items}", "Do we have {items}?", "What about {items}, how many are there?"), items=joined(items))
    t.do(*[("stock_find", {"item": i}) for i in items])


def order(t):
    supplier = pick(t.rng, t.world.words.company) if t.rng.random() < 0.8 else random_word(t.rng)
    items = [{"item": pick(t.rng, list(t.world.stock)) if t.rng.random() < 0.5 else t.world.a_part(), "count": t.between(1, 300)}
             for _ in range(t.between(1, 3))]
    spoken = joined(["%d %s" % (i["count"], i["item"]) for i in items])
    t.user(("! order {items} from {s}", "We need {items}, {s} has them.", "Get {items} at {s}.", "{s} should send us {items}.", "Place an order with {s}: {items}."), items=spoken, s=supplier)
    number_ = t.do(("order_create", {"supplier": supplier, "items": items}))[0]["order_id"]
    if t.rng.random() < 0.4:
        t.user(("What's the state of that order?", "Is it on its way?", "! check that order", "How far is it?"))
        t.do(("order_status", {"order_id": number_}))


def order_question(t):
    if not t.world.orders:
        return order(t)
    number_ = pick(t.rng, list(t.world.orders))
    t.user(("What about order {n}?", "Where is {n}?", "! check order {n}", "When does {n} come?", "Any news of {n}?"), n=number_)
    t.do(("order_status", {"order_id": number_}))


def files(t):
    folder = pick(t.rng, sorted({p.rpartition("/")[0] for p in t.world.files}))
    t.user(("What's in {folder}?", "! list {folder}", "Which files are in {folder}?", "Show me {folder}.", "What do we keep under {folder}?"), folder=folder)
    names = t.do(("file_list", {"folder": folder}))[0]["files"]
    if t.rng.random() < 0.7:
        name = pick(t.rng, names)
        t.user(("Read {name}.", "Open {name}.", "What does {name} say?", "Let me hear {name}."), name=name)
        t.do(("file_read", {"path": folder + "/" + name}))


def file_read(t):
    path = pick(t.rng, list(t.world.files)) if t.rng.random() < 0.8 else "/notes/%s.txt" % t.world.a_stem()
    t.user(("! read {path}", "What's written in {path}?", "Open {path} for me.", "Show me {path}.", "I want to know what {path} holds."), path=path)
    t.do(("file_read", {"path": path}))


def file_write(t):
    text = message(t.rng, t.world.words) if t.rng.random() < 0.6 else "%s %s" % (random_word(t.rng), t.world.a_text())
    append = t.rng.random() < 0.4
    texts = [p for p in t.world.files if not p.startswith("/prints/")]
    path = pick(t.rng, texts) if append else "/notes/%s.txt" % t.world.a_stem()
    arguments = {"path": path, "text": text}
    if append:
        arguments["append"] = True
        t.user(('! add the line "{text}" to {path}', "Append to {path}: {text}", "{path} needs one more line: {text}", "At the end of {path}, write: {text}"), path=path, text=text)
    else:
        t.user(('! write "{text}" to {path}', "Save in {path}: {text}", "Make a file {path} with the text: {text}", "{path} should contain this: {text}"), path=path, text=text)
    t.do(("file_write", arguments))
    if t.rng.random() < 0.3:
        t.user(("Read it to me.", "What does it say now?", "Show me the file.", "Let me check it."))
        t.do(("file_read", {"path": path}))


def file_to_heating(t):
    """A number out of a file goes into the next call."""
    room, path = t.room(), pick(t.rng, list(t.world.presets))
    celsius = t.world.presets[path]
    if t.world.files[path] != t.world.presets_text[path]:
        return file_read(t)  # somebody wrote to it
    t.user(("Heat the {room} to the temperature in {path}.", "The right temperature for the {room} is in {path}, set it.", "{path} says how warm the {room} should be. Do it.",
            "Look into {path} and heat the {room} accordingly."), room=room, path=path)
    t.call(("file_read", {"path": path}))
    t.do(("heating_set", {"room": room, "celsius": celsius}))


def file_to_message(t):
    """The text of a file goes to somebody."""
    path, to = pick(t.rng, [p for p in t.world.files if not p.startswith("/prints/")]), pick(t.rng, t.world.people)
    t.user(("Send the content of {path} to {to}.", "{to} wants to know what {path} says, send it.", "Read {path} and send it to {to}.", "Forward what is in {path} to {to}."), path=path, to=to)
    text = t.call(("file_read", {"path": path}))[0]["text"]
    t.do(("message_send", {"to": to, "text": text}))


def sensor(t):
    name = pick(t.rng, list(t.world.sensors))
    t.user(("What does {s} read?", "! read the sensor {s}", "How is {s}?", "Give me the value of {s}.", "{s}, what's the number?"), s=name)
    t.last_reading = t.do(("sensor_read", {"sensor": name}))[0]
    if t.rng.random() < 0.4:
        hours = pick(t.rng, (2, 6, 12, 24, 48, t.between(1, 72)))
        t.user(("And over the last {h} hours?", "How was it in the past {h} hours?", "Show me {h} hours of it.", "What about {h} hours back?"), h=hours)
        t.do(("sensor_history", {"sensor": name, "hours": hours}))


def sensors(t):
    names = t.rng.sample(list(t.world.sensors), 2 + int(t.rng.random() * 2))
    t.user(("! read {s}", "What do {s} say?", "I need the values of {s}.", "Let me know {s}."), s=joined(names))
    t.do(*[("sensor_read", {"sensor": n}) for n in names])


def sensor_history(t):
    name, hours = pick(t.rng, list(t.world.sensors)), pick(t.rng, (1, 3, 6, 12, 24, 36, 72, t.between(1, 72)))
    t.user(("How was {s} over the last {h} hours?", "! show {h} hours of {s}", "What were the extremes of {s} in the past {h} hours?", "Summarize {s} for {h} hours."), s=name, h=hours)
    t.do(("sensor_history", {"sensor": name, "hours": hours}))


def sensor_to_message(t):
    name, to = pick(t.rng, list(t.world.sensors)), pick(t.rng, t.world.people)
    t.user(("Read {s} and send the value to {to}.", "{to} asks for {s}, send the reading.", "Tell {to} what {s} reads.", "Let {to} know about {s}."), s=name, to=to)
    r = t.call(("sensor_read", {"sensor": name}))[0]
    t.last_reading = r
    t.do(("message_send", {"to": to, "text": "%s reads %s %s" % (name, r["value"], r["unit"])}))


def recall(t):
    """Answered from the conversation, without a call."""
    r = t.last_reading
    if r is None:
        return sensor(t)
    t.user(("What did {s} read before?", "Remind me, what was {s}?", "What was the last value of {s} again?", "{s} was what again?"), s=r["sensor"])
    t.say("%s read %s %s." % (r["sensor"], r["value"], r["unit"]))


def move_arm(t, arguments):
    """Home the arm first when it refuses, then try again."""
    result = t.call(("arm_move", arguments))[0]
    if result.get("error") == "arm is not homed":
        t.call(("arm_home", {}))
        result = t.call(("arm_move", arguments))[0]
    return result


def arm(t):
    x, y, z = t.between(-400, 400), t.between(-400, 400), t.between(0, 300)
    arguments = {"x": x, "y": y, "z": z}
    if t.rng.random() < 0.3:
        arguments["speed"] = t.between(1, 100)
        t.user(("! move the arm to {x}, {y}, {z} at {speed} percent", "Arm to x {x}, y {y}, z {z}, speed {speed}.", "With {speed} percent speed, bring the arm to {x}/{y}/{z}."), **arguments)
    else:
        t.user(("! move the arm to {x}, {y}, {z}", "Arm to x {x}, y {y}, z {z}.", "I need the arm at {x}, {y} and height {z}.", "Drive the robot to {x}/{y}/{z}."), **arguments)
    result = move_arm(t, arguments)
    t.say(report("arm_move", arguments, result))
    if t.rng.random() < 0.3:
        lower = t.between(0, 300)
        t.user(("Now to height {z}, same place.", "Same spot, but z {z}.", "Only change the height to {z}.", "Go to {z} in height from there."), z=lower)
        arguments = dict(arguments, z=lower)
        t.do(("arm_move", arguments))


def arm_too_far(t):
    arguments = {"x": t.between(-400, 400), "y": t.between(-400, 400), "z": t.between(0, 300)}
    axis = pick(t.rng, "xyz")
    arguments[axis] = pick(t.rng, (401, 450, 500, 620, 800, 999))
    t.user(("! move the arm to {x}, {y}, {z}", "Arm to x {x}, y {y}, z {z}.", "The arm should go to {x}/{y}/{z}."), **arguments)
    result = move_arm(t, arguments)
    t.say(report("arm_move", arguments, result))
    arguments[axis] = t.between(0, 300)
    t.user(("Then {axis} {value}.", "Take {value} for {axis}.", "Use {axis} = {value}.", "{axis} shall be {value}, then."), axis=axis, value=arguments[axis])
    t.do(("arm_move", dict(arguments)))


def pick_and_place(t):
    """Four steps, each after the answer to the one before."""
    a = {"x": t.between(-400, 400), "y": t.between(-400, 400), "z": t.between(0, 300)}
    b = {"x": t.between(-400, 400), "y": t.between(-400, 400), "z": t.between(0, 300)}
    t.user(("! pick up the part at {a} and put it down at {b}", "Take the piece from {a} to {b}.", "There's a part at {a}, it belongs to {b}.", "Carry what lies at {a} over to {b}."),
           a="%d, %d, %d" % tuple(a.values()), b="%d, %d, %d" % tuple(b.values()))
    move_arm(t, a)
    t.call(("arm_grip", {"action": "close"}))
    t.call(("arm_move", b))
    t.call(("arm_grip", {"action": "open"}))
    t.say("The part is at %d, %d, %d." % tuple(b.values()))


def gripper(t):
    action = pick(t.rng, ("open", "close"))
    arguments = {"action": action}
    if action == "close" and t.rng.random() < 0.4:
        arguments["force"] = t.between(5, 100)
        t.user(("! close the gripper with {f} percent force", "Grip with {f} percent.", "Hold it tight, {f} % force.", "Squeeze with {f} percent."), f=arguments["force"])
    else:
        t.user(("! %s the gripper" % action, "Gripper: %s." % action, "I want the gripper to %s." % action, "Let the gripper %s." % action))
    t.do(("arm_grip", arguments))


def arm_question(t):
    t.user(("Where is the arm?", "What's the arm doing?", "! read the arm", "Is the gripper open?", "At which position is the robot?"))
    t.do(("arm_status", {}))


def printing(t):
    path = t.world.some_print()
    material = pick(t.rng, ("PLA", "PETG", "ABS", "TPU"))
    arguments = {"path": path, "material": material}
    if t.rng.random() < 0.3:
        arguments["copies"] = t.between(2, 20)
        t.user(("! print {path} in {m}, {n} copies", "{n} times {path} in {m}, please.", "I need {n} prints of {path}, material {m}.", "Make {n} of {path} from {m}."), path=path, m=material, n=arguments["copies"])
    elif t.rng.random() < 0.25:
        t.user(("! print {path}", "Start printing {path}.", "{path} should be printed.", "I'd like to have {path} in my hands."), path=path)
        t.say("Could you tell me the material?")
        t.user(("{m}", "{m}, please.", "Take {m}.", "In {m}."), m=material)
    else:
        t.user(("! print {path} in {m}", "Start {path} with {m}.", "I want {path} made of {m}.", "Print job: {path}, {m}."), path=path, m=material)
    result = t.do(("printer_start", arguments))[0]
    if "error" in result:
        t.user(("It's done now, try again.", "Try again.", "I took the part out, start now.", "The printer is free, go."))
        t.do(("printer_start", arguments))


def printer_question(t):
    t.user(("How far is the printer?", "What's the printer doing?", "! check the printer", "Is the print finished?", "Is something being printed?"))
    t.do(("printer_status", {}))


def send(t):
    to, text = pick(t.rng, t.world.people), message(t.rng, t.world.words)
    if t.rng.random() < 0.2:
        wrong = random_word(t.rng)
        t.user(('! tell {to} "{text}"', "Message to {to}: {text}", "Let {to} know: {text}"), to=wrong, text=text)
        t.do(("message_send", {"to": wrong, "text": text}))
        t.user(("To {to}, then.", "I meant {to}.", "Send it to {to}.", "Then {to} should get it."), to=to)
    else:
        t.user(('! tell {to} "{text}"', "Message to {to}: {text}", "Let {to} know: {text}", "{to} should read this: {text}"), to=to, text=text)
    t.do(("message_send", {"to": to, "text": text}))


def impossible(t):
    w = t.world.words
    t.user(("Water the {a}.", "Play some music about {a}.", "What's the weather in {c}?", "Book a flight to {c}.", "Feed the {b}.", "Order a pizza with {f}.", "Translate {a} into {l}.",
            "Vacuum the {r}.", "Call a taxi to {c}.", "Tell me a joke about {a}.", "How do I cook {f}?", "Who won the match in {c}?"),
           a=pick(t.rng, w.noun), b=pick(t.rng, w.animal), c=pick(t.rng, w.city), f=pick(t.rng, w.food), l=pick(t.rng, w.language), r=t.room())
    t.say(REFUSAL_MANY)


def small_talk(t):
    inputs, answer = pick(t.rng, SMALL_TALK[:3])
    t.messages.append({"role": "user", "content": pick(t.rng, inputs)})
    t.say(answer)


SCENES = ((lights, 5), (light_question, 2), (several_lights, 2), (wrong_room, 1), (heating, 3), (heating_too_far, 1), (warmer, 2), (climate_question, 2), (doors, 2),
          (leaving, 2), (timers, 3), (timer_stop, 1), (calendar_add, 3), (calendar_clash, 1), (calendar_day, 3), (calendar_chain, 2), (stock_question, 3), (stock_take, 3),
          (stock_add, 2), (unknown_part, 1), (two_parts, 2), (order, 2), (order_question, 1), (files, 2), (file_read, 2), (file_write, 3), (file_to_heating, 1),
          (file_to_message, 2), (sensor, 3), (sensors, 2), (sensor_history, 1), (sensor_to_message, 1), (recall, 1), (arm, 3), (arm_too_far, 1), (pick_and_place, 2),
          (gripper, 1), (arm_question, 1), (printing, 2), (printer_question, 1), (send, 2), (impossible, 2), (small_talk, 1))
BAG = [scene for scene, weight in SCENES for _ in range(weight)]


def conversation(seed, split="train", turns=None):
    """One conversation; turns: about how many assistant turns (20 to 60 when not given)."""
    talk = Talk(seed, split)
    turns = turns or talk.between(20, 55)
    while talk.turns < turns:
        pick(talk.rng, BAG)(talk)
    return {"kind": "home", "seed": seed, "tools": TOOLS, "messages": talk.messages}
