"""The simulated home and workshop: 29 fixed tools over a small world that answers every call.

`World(seed)` has rooms, lamps, heating, doors, timers, a calendar, a store, orders, files, sensors, a robot arm, a 3D
printer and people. `call(name, arguments)` does what the call says and returns a JSON object, always: a wrong call gets
{"error": reason}, as a real device would answer. Nothing depends on the clock or on anything outside the seed, so two
worlds that saw the same calls are equal (`state()`), which is how a task counts as solved.
"""
import copy
import datetime
import random

from domains import parse_table
from values import fits
from words import Words, pick, random_word

TABLE = """
light_set: Set the lamp of a room.
  room! room | Name of the room
  brightness! int:0..100 | Brightness in percent, 0 is off
  color color | Colour of the light
light_status: Read the lamp of a room.
  room! room | Name of the room
heating_set: Set the target temperature of a room.
  room! room | Name of the room
  celsius! num:5..30:1 | Target in degrees Celsius, 5 to 30
heating_status: Read the temperature and the target of a room.
  room! room | Name of the room
door_lock: Lock or unlock a door.
  door! word | Name of the door
  locked! bool | true locks, false unlocks
timer_start: Start a timer.
  name! topic | Name of the timer
  minutes! num:1..300:1 | Duration in minutes
timer_list: List the running timers.
timer_cancel: Stop a timer.
  name! topic | Name of the timer
calendar_add: Add an event to the calendar.
  title! topic | Title
  date! date | Day, YYYY-MM-DD
  time! clock | Start, HH:MM
  minutes int:5..600 | Length in minutes
calendar_list: List the events of a day.
  date! date | Day, YYYY-MM-DD
calendar_move: Move an event.
  event_id! id | Number of the event
  date! date | New day, YYYY-MM-DD
  time! clock | New start, HH:MM
calendar_remove: Remove an event.
  event_id! id | Number of the event
stock_find: Find a part in the store: how many, on which shelf.
  item! good | Name of the part
stock_take: Take pieces of a part out of the store.
  item! good | Name of the part
  count! int:1..500 | Number of pieces
stock_add: Put pieces of a part into the store.
  item! good | Name of the part
  count! int:1..500 | Number of pieces
  shelf code | Shelf for a new part
order_create: Order parts.
  supplier! company | Supplier
  items! rows(item:good,count:int:1..500) | What to order
order_status: Read the state of an order.
  order_id! id | Number of the order
file_list: List the files of a folder.
  folder! folder | Folder
file_read: Read a text file.
  path! path | Path of the file
file_write: Write a text file.
  path! path | Path of the file
  text! message | Text to write
  append bool | true adds to what is there
sensor_read: Read a sensor.
  sensor! word | Name of the sensor
sensor_history: Lowest, highest and average value of a sensor over the last hours.
  sensor! word | Name of the sensor
  hours! int:1..72 | Number of hours
arm_home: Find the reference position of the robot arm; needed before it moves.
arm_move: Move the robot arm.
  x! int:-400..400 | Position in mm, -400 to 400
  y! int:-400..400 | Position in mm, -400 to 400
  z! int:0..300 | Height in mm, 0 to 300
  speed int:1..100 | Speed in percent
arm_grip: Open or close the gripper.
  action! enum:open,close | What to do
  force int:1..100 | Force in percent
arm_status: Read position and gripper of the robot arm.
printer_start: Start a 3D print.
  path! path | File to print
  material! enum:PLA,PETG,ABS,TPU | Material
  copies int:1..20 | Number of copies
printer_status: Read the state of the 3D printer.
message_send: Send a message to a person of the household.
  to! name | Name of the person
  text! message | Text
"""


def schema_of(tool):
    properties = {}
    for p in tool.params:
        properties[p.name] = dict(p.kind.schema(), description=p.description)
    return {"type": "function", "function": {
        "name": tool.name, "description": tool.description,
        "parameters": {"type": "object", "properties": properties, "required": [p.name for p in tool.params if p.required]}}}


TOOLS = [schema_of(tool) for tool in parse_table(TABLE)]
PARAMETERS = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}
UNITS = {"temperature": "°C", "humidity": "%", "co2": "ppm", "power": "W", "pressure": "hPa", "noise": "dB", "water": "l"}
RANGES = {"temperature": (2, 34), "humidity": (20, 90), "co2": (380, 1900), "power": (0, 3200), "pressure": (970, 1040),
          "noise": (20, 95), "water": (0, 400)}


class Refused(Exception):
    """A call that the world answers with an error."""


class World:
    def __init__(self, seed, side="train"):
        self.seed, self.draws = seed, {}
        self.rng = rng = random.Random("world %s" % seed)
        self.words = w = Words(side)
        self.today = datetime.date(2026 + int(rng.random() * 4), 1 + int(rng.random() * 12), 1 + int(rng.random() * 26))
        rooms = ["workshop"] + rng.sample(Words("all").room, 5 + int(rng.random() * 3))
        self.lights = {r: {"brightness": pick(rng, (0, 0, 30, 60, 100)), "color": "white"} for r in rooms}
        self.heating = {r: {"celsius": round(15 + rng.random() * 8, 1), "target": 16 + int(rng.random() * 7)} for r in rooms}
        self.doors = {d: rng.random() < 0.5 for d in rng.sample(("front", "back", "garage", "workshop", "cellar", "garden", "side"), 3)}
        self.timers = {}
        self.events = {}
        for _ in range(3 + int(rng.random() * 4)):
            self.add_event(self.a_topic(), self.day(int(rng.random() * 4)), "%02d:%02d" % (7 + int(rng.random() * 12), pick(rng, (0, 15, 30, 45))), 30)
        self.stock = {}
        while len(self.stock) < 12:
            self.stock[self.a_part()] = {"count": int(rng.random() ** 2 * 120), "shelf": self.a_shelf()}
        self.orders = {}
        self.files = {}
        for folder in rng.sample(("/notes", "/parts", "/plans", "/logs"), 3):
            for _ in range(2 + int(rng.random() * 3)):
                self.files["%s/%s.%s" % (folder, self.a_stem(), pick(rng, ("txt", "md")))] = self.a_text()
        for _ in range(2 + int(rng.random() * 2)):
            self.files["/prints/%s.gcode" % self.a_stem()] = "G28 G1 X%d" % int(rng.random() * 200)
        # Files that hold a temperature for a room: what they say can be put into a call.
        self.presets = {}
        while len(self.presets) < 2:
            path = "/notes/%s.txt" % self.a_stem()
            self.presets[path] = 12 + int(rng.random() * 14)
            self.files[path] = "%s = %d" % (pick(rng, w.noun), self.presets[path])
        self.presets_text = {path: self.files[path] for path in self.presets}
        self.sensors = {}
        while len(self.sensors) < 6:
            kind = pick(rng, list(UNITS))
            place = pick(rng, rooms + ["garden", "roof", "tank"]).replace(" ", "_")
            low, high = RANGES[kind]
            digits = 1 if kind in ("temperature", "humidity", "noise") else 0
            self.sensors["%s_%s" % (place, kind)] = {"low": low, "high": high, "digits": digits, "unit": UNITS[kind]}
        self.arm = {"homed": rng.random() < 0.4, "x": 0, "y": 0, "z": 300, "gripper": "open"}
        self.printer = {"state": "idle"} if rng.random() < 0.6 else {"state": "printing", "path": self.some_print(), "percent": 1 + int(rng.random() * 98)}
        self.people = rng.sample(w.first, 4)
        self.sent = []

    # ---- material

    def a_topic(self):
        rng, w = self.rng, self.words
        return pick(rng, w.adjective) + " " + pick(rng, w.noun) if rng.random() < 0.6 else pick(rng, w.noun) if rng.random() < 0.6 else random_word(rng)

    def a_part(self):
        rng, w = self.rng, self.words
        r = rng.random()
        if r < 0.4:
            return "M%d %s" % (pick(rng, (3, 4, 5, 6, 8, 10)), pick(rng, w.good))
        return pick(rng, w.good) if r < 0.7 else "%s %s" % (pick(rng, w.color), pick(rng, w.good)) if r < 0.85 else random_word(rng)

    def a_shelf(self):
        return "%s%d" % (pick(self.rng, "ABCDEFGH"), 1 + int(self.rng.random() * 29))

    def a_stem(self):
        rng = self.rng
        return pick(rng, self.words.noun) + ("_%d" % int(rng.random() * 100) if rng.random() < 0.4 else "") if rng.random() < 0.7 else random_word(rng)

    def a_text(self):
        rng, w = self.rng, self.words
        return pick(rng, ("Buy %d %s" % (2 + int(rng.random() * 30), pick(rng, w.good)), "%s: %s" % (pick(rng, w.noun), random_word(rng)),
                          "%s called about the %s" % (pick(rng, w.first), pick(rng, w.noun)), "%s = %s" % (pick(rng, w.noun), round(rng.random() * 90, 2)),
                          "The %s is behind the %s" % (pick(rng, w.noun), pick(rng, w.noun)), "%s %s" % (pick(rng, w.unicode), random_word(rng))))

    def some_print(self):
        return pick(self.rng, [p for p in self.files if p.startswith("/prints/")])

    def dice(self, what):
        """A generator for the next draw of one sort: answers do not depend on what else was called before."""
        self.draws[what] = self.draws.get(what, 0) + 1
        return random.Random("%s %s %d" % (self.seed, what, self.draws[what]))

    def day(self, ahead):
        return (self.today + datetime.timedelta(days=ahead)).isoformat()

    def number(self, prefix, taken):
        while True:
            new = "%s-%d" % (prefix, 100 + int(self.dice(prefix).random() * 9900))
            if new not in taken:
                return new

    def system_prompt(self):
        return ("You are the assistant of a home with a workshop. Today is %s, a %s. Rooms: %s. Doors: %s. Sensors: %s. People: %s."
                % (self.today.isoformat(), self.today.strftime("%A"), ", ".join(self.lights), ", ".join(self.doors),
                   ", ".join(self.sensors), ", ".join(self.people)))

    def state(self):
        """Everything that calls can change, to compare worlds."""
        return copy.deepcopy({n: getattr(self, n) for n in (
            "lights", "heating", "doors", "timers", "events", "stock", "orders", "files", "arm", "printer", "sent")})

    # ---- calls

    def call(self, name, arguments):
        """The answer of a tool; arguments that do not fit its schema get an error that says what is wrong."""
        schema = PARAMETERS.get(name)
        if schema is None:
            return {"error": "unknown tool '%s'" % name}
        for required in schema["required"]:
            if required not in arguments:
                return {"error": "argument '%s' is missing" % required}
        for key, value in arguments.items():
            if key not in schema["properties"]:
                return {"error": "unknown argument '%s'" % key}
            if not fits(value, schema["properties"][key]):
                return {"error": "argument '%s' has the wrong type" % key}
        try:
            return getattr(self, "do_" + name)(**arguments)
        except Refused as refusal:
            return {"error": str(refusal)}

    @staticmethod
    def known(table, key, what):
        if key not in table:
            raise Refused("unknown %s '%s', known: %s" % (what, key, ", ".join(table)))
        return table[key]

    def do_light_set(self, room, brightness, color=None):
        lamp = self.known(self.lights, room, "room")
        if not 0 <= brightness <= 100:
            raise Refused("brightness must be 0 to 100")
        lamp["brightness"] = brightness
        if color:
            lamp["color"] = color
        return dict({"room": room}, **lamp)

    def do_light_status(self, room):
        return dict({"room": room}, **self.known(self.lights, room, "room"))

    def do_heating_set(self, room, celsius):
        heating = self.known(self.heating, room, "room")
        if not 5 <= celsius <= 30:
            raise Refused("celsius must be 5 to 30")
        heating["target"] = celsius
        return {"room": room, "target": celsius}

    def do_heating_status(self, room):
        return dict({"room": room}, **self.known(self.heating, room, "room"))

    def do_door_lock(self, door, locked):
        self.known(self.doors, door, "door")
        self.doors[door] = locked
        return {"door": door, "locked": locked}

    def do_timer_start(self, name, minutes):
        if name in self.timers:
            raise Refused("timer '%s' is already running" % name)
        self.timers[name] = minutes
        return {"name": name, "minutes": minutes}

    def do_timer_list(self):
        return {"timers": [{"name": n, "minutes": m} for n, m in self.timers.items()]}

    def do_timer_cancel(self, name):
        self.known(self.timers, name, "timer")
        del self.timers[name]
        return {"cancelled": name}

    def add_event(self, title, date, time, minutes):
        number = self.number("E", self.events)
        self.events[number] = {"title": title, "date": date, "time": time, "minutes": minutes}
        return number

    def free(self, date, time, but=None):
        for number, event in self.events.items():
            if number != but and event["date"] == date and event["time"] == time:
                raise Refused("%s %s is taken by '%s'" % (date, time, event["title"]))

    def do_calendar_add(self, title, date, time, minutes=60):
        self.free(date, time)
        return {"event_id": self.add_event(title, date, time, minutes)}

    def do_calendar_list(self, date):
        found = sorted((e["time"], n, e["title"]) for n, e in self.events.items() if e["date"] == date)
        return {"events": [{"event_id": n, "time": t, "title": title} for t, n, title in found]}

    def do_calendar_move(self, event_id, date, time):
        event = self.known(self.events, event_id, "event")
        self.free(date, time, event_id)
        event["date"], event["time"] = date, time
        return {"event_id": event_id, "date": date, "time": time}

    def do_calendar_remove(self, event_id):
        self.known(self.events, event_id, "event")
        return {"removed": self.events.pop(event_id)["title"]}

    def part(self, item):
        if item not in self.stock:
            raise Refused("no part '%s'" % item)
        return self.stock[item]

    def do_stock_find(self, item):
        return dict({"item": item}, **self.part(item))

    def do_stock_take(self, item, count):
        part = self.part(item)
        if count > part["count"]:
            raise Refused("only %d in stock" % part["count"])
        part["count"] -= count
        return {"item": item, "left": part["count"]}

    def do_stock_add(self, item, count, shelf=None):
        if item not in self.stock:
            if shelf is None:
                raise Refused("new part: shelf is needed")
            self.stock[item] = {"count": 0, "shelf": shelf}
        self.stock[item]["count"] += count
        return dict({"item": item}, **self.stock[item])

    def do_order_create(self, supplier, items):
        number = self.number("ORD", self.orders)
        dice = self.dice("order")
        self.orders[number] = {"supplier": supplier, "items": items, "state": pick(dice, ("accepted", "packed", "shipped")),
                               "arrives": self.day(2 + int(dice.random() * 9))}
        return {"order_id": number, "arrives": self.orders[number]["arrives"]}

    def do_order_status(self, order_id):
        order = self.known(self.orders, order_id, "order") if self.orders else self.known({}, order_id, "order")
        return {"order_id": order_id, "state": order["state"], "arrives": order["arrives"]}

    def do_file_list(self, folder):
        inside = [p.rpartition("/")[2] for p in self.files if p.rpartition("/")[0] == folder.rstrip("/")]
        if not inside:
            raise Refused("no folder '%s'" % folder)
        return {"files": inside}

    def do_file_read(self, path):
        if path not in self.files:
            raise Refused("no file '%s'" % path)
        return {"text": self.files[path]}

    def do_file_write(self, path, text, append=False):
        if path.startswith("/prints/"):
            raise Refused("/prints is read-only")
        self.files[path] = self.files[path] + "\n" + text if append and path in self.files else text
        return {"path": path, "bytes": len(self.files[path].encode())}

    def reading(self, sensor):
        s = self.known(self.sensors, sensor, "sensor")
        value = round(s["low"] + self.dice(sensor).random() * (s["high"] - s["low"]), s["digits"])
        return value if s["digits"] else int(value)

    def do_sensor_read(self, sensor):
        return {"sensor": sensor, "value": self.reading(sensor), "unit": self.sensors[sensor]["unit"]}

    def do_sensor_history(self, sensor, hours):
        low, average, high = sorted(self.reading(sensor) for _ in range(3))
        return {"sensor": sensor, "hours": hours, "lowest": low, "highest": high, "average": average, "unit": self.sensors[sensor]["unit"]}

    def do_arm_home(self):
        self.arm.update(homed=True, x=0, y=0, z=300)
        return {"homed": True}

    def do_arm_move(self, x, y, z, speed=50):
        if not self.arm["homed"]:
            raise Refused("arm is not homed")
        for axis, value, low, high in (("x", x, -400, 400), ("y", y, -400, 400), ("z", z, 0, 300)):
            if not low <= value <= high:
                raise Refused("%s must be %d to %d" % (axis, low, high))
        self.arm.update(x=x, y=y, z=z)
        return {"x": x, "y": y, "z": z}

    def do_arm_grip(self, action, force=50):
        self.arm["gripper"] = {"open": "open", "close": "closed"}[action]
        return {"gripper": self.arm["gripper"]}

    def do_arm_status(self):
        return dict(self.arm)

    def do_printer_start(self, path, material, copies=1):
        if self.printer["state"] == "printing" and self.printer["percent"] < 100:
            busy = "printer is busy with %s, %d percent done" % (self.printer["path"], self.printer["percent"])
            self.printer["percent"] = 100  # it is done by the time somebody asks again
            raise Refused(busy)
        if path not in self.files:
            raise Refused("no file '%s'" % path)
        self.printer = {"state": "printing", "path": path, "percent": 0}
        return {"state": "printing", "path": path, "minutes": 10 + int(self.dice("print").random() * 400) * copies}

    def do_printer_status(self):
        return dict(self.printer)

    def do_message_send(self, to, text):
        if to not in self.people:
            raise Refused("unknown person '%s', known: %s" % (to, ", ".join(self.people)))
        self.sent.append([to, text])
        return {"sent": True, "to": to}
