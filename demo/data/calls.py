"""Samples of kind (a): random tool sets and requests to them.

Each sample is {"kind", "tools", "messages"}: OpenAI messages, tool-call arguments as objects. The kinds:

    single      one request, one call                    parallel    the same tool several times in one answer
    two         two different tools in one answer        none        no tool fits: a refusal in words
    missing     a required value is missing: a question back, and mostly the user's answer and the call
    follow_up   a call, its result, an answer in words, then another request
    session     three to seven requests of all these sorts to one tool set, with results and answers

What the assistant says in words is one fixed form per situation: variety there would teach nothing and would cost the
small model accuracy; variety belongs into the requests.
"""
import json
import re

from domains import (Instance, TABLE_TOOLS, made_up_tool, phrasings_of, say, similar, tool_held_out)
from values import Value, joined
from words import MONTHS, WEEKDAYS, Words, pick, random_word

# Ways to put an imperative; {c} as it is, {C} with a capital.
WRAP = ("{C}.", "{C}.", "{C}", "{c}", "Please {c}.", "{C}, please.", "Could you {c}?", "Can you {c}?", "I need you to {c}.",
        "I'd like you to {c}.", "Would you {c}?", "Go ahead and {c}.", "I want you to {c}.", "Hey, {c}.", "Can you please {c}?",
        "Hi! Please {c}. Thanks!", "You should {c} now.", "Quick, {c}!", "please {c}", "Help me: {c}.")
WRAP_HELD_OUT = ("It would be great if you could {c}.", "Be so kind as to {c}.", "My request to you: {c}.", "Do me a favour and {c}.",
                 "I was wondering if you could {c}.", "Next thing, {c}.")
LEAD = ("Good morning. ", "Hello! ", "Sorry to bother you again. ", "I have a question. ", "One more thing. ", "My colleague asked me to do this. ",
        "I'm in a hurry. ", "It's been a long day. ", "Hi there, ", "Okay, ", "So, ", "Right. ", "Listen. ", "This should be easy for you. ")
LEAD_HELD_OUT = ("Hope you're well. ", "A small job for you. ", "Before I forget it: ", "You are my last hope. ")
TRAIL = (" Thanks!", " Thank you.", " Thanks in advance.", " That's all.", " Cheers!", " Please be quick.")
TRAIL_HELD_OUT = (" Much appreciated.", " I'd be grateful.")
JOIN = (" Also, ", " And ", " Then ", " After that, ", " Besides, ", " Oh, and ", " At the same time, ", " Secondly, ", "\n")
JOIN_HELD_OUT = (" On top of that, ", " While you're at it, ", " Furthermore, ")
SAME = ("The same for {v}.", "Do the same for {v}.", "And also for {v}.", "Same thing with {v}, please.", "And {v}?", "Then again for {v}.")
SAME_HELD_OUT = ("Likewise for {v}.", "Repeat that for {v}.")
SYSTEM = ("You are a helpful assistant.", "You are a helpful assistant with access to functions. Use them if required.",
          "Answer with function calls where a function fits.", "You control the tools of an office. Be brief.",
          "You are an assistant for everyday tasks. Use the tools you are given.",
          "Today is {weekday}. You help the user by calling tools.", "You work for {company}. Only use the functions provided.")

REFUSAL_ONE = "The tool I have cannot do that."
REFUSAL_MANY = "None of the tools I have can do that."
REFUSAL_NO_TOOLS = "I have no tools here, so I cannot do that."
SMALL_TALK = (
    (("Hello!", "Hi", "Good evening", "Hey there", "Good morning!"), "Hello! What can I do for you?"),
    (("Thanks a lot!", "Thank you", "Great, thanks", "Perfect, thank you!", "That was helpful."), "You're welcome."),
    (("Who are you?", "What are you?", "Are you a human?", "What's your name?"), "I am a small assistant that works with tools."),
    (("What can you do?", "How can you help me?", "What are you able to do for me?"), "I can call the tools I was given. Tell me what you need."),
    (("Bye!", "See you tomorrow.", "That's all for today.", "Goodbye"), "Goodbye!"),
)
# Requests that no tool here is made for, in many fields; %s is a topic.
UNRELATED = ("Tell me a joke about %s.", "Write a poem about %s.", "What do you think of %s?", "Explain %s to a child.", "Who invented the %s?",
             "Draw a picture of %s.", "Why is the %s so important?", "Give me advice about %s.", "How do I become an expert on %s?",
             "Sing a song about %s.", "What is the meaning of %s?", "Is %s dangerous?", "How was %s made?", "Can you believe what happened to the %s?",
             "What's the best %s of all time?", "Let's talk about %s.", "Prove that %s exists.", "What colour is the %s?")


class Side:
    """The material of a split: words, tools and phrasings that it may use."""

    def __init__(self, words="train", tools="train", phrasings="train"):
        self.words = Words(words)
        self.tools = [t for t in TABLE_TOOLS if tool_held_out(t) == (tools == "held_out")]
        self.held_out_tools = tools == "held_out"
        self.held_out_phrasings = phrasings == "held_out"
        held = self.held_out_phrasings
        self.wrap, self.lead, self.trail = (WRAP_HELD_OUT, LEAD_HELD_OUT, TRAIL_HELD_OUT) if held else (WRAP, LEAD, TRAIL)
        self.join, self.same = (JOIN_HELD_OUT, SAME_HELD_OUT) if held else (JOIN, SAME)


# "train" is for training; the others are for measuring and share with it what their names say.
SPLITS = {
    "train": Side(),
    "seen": Side(),                                          # other seeds only
    "phrasings": Side(phrasings="held_out"),                 # known tools, asked for in new ways
    "unseen": Side("held_out", "held_out", "held_out"),      # new tools, words and ways
}


def text_of(value):
    """A value as a sentence states it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def call(name, arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def assistant_calls(calls, content=""):
    return {"role": "assistant", "content": content, "tool_calls": calls}


class Maker:
    """Makes samples of one split from one random generator."""

    KINDS = (("single", 26), ("parallel", 11), ("two", 11), ("none", 12), ("missing", 6), ("follow_up", 4), ("session", 30))

    def __init__(self, rng, split="train", random_tool_share=0.35):
        self.rng, self.side, self.random_tool_share = rng, SPLITS[split], random_tool_share
        self.words = self.side.words

    # ---- pieces

    def a_tool(self):
        if self.rng.random() < self.random_tool_share:
            return made_up_tool(self.rng, self.words, self.side.held_out_phrasings)
        return pick(self.rng, self.side.tools)

    def values(self, tool, phrasing):
        """What the request will state: everything outside brackets, required parameters, some optional ones."""
        rng, chosen = self.rng, {}
        for p in tool.params:
            if p.name in phrasing.always or p.required or (p.name in phrasing.optional and rng.random() < 0.4):
                chosen[p.name] = p.kind.make(rng, self.words)
        return chosen

    def phrasing(self, tool):
        held = self.side.held_out_phrasings
        return pick(self.rng, tool.phrasings if tool.domain == "made up" else phrasings_of(tool, held))

    def arguments(self, instance, values):
        """In the order of the schema."""
        return {instance.names[p.name]: values[p.name].json for p in instance.parameters if p.name in values}

    def sentence(self, phrasing, values, inside=False):
        """The request; `inside` another sentence it starts with a small letter. A value is never touched by that."""
        rng = self.rng
        text = say(phrasing.nodes, values, rng).strip()
        starts_with_value = phrasing.nodes[0][0] == "slot" or phrasing.nodes[0][0] == "opt" and phrasing.nodes[0][2][0][0] == "slot"
        if phrasing.imperative:
            wrap = pick(rng, self.side.wrap)
            if "{c}" in wrap or starts_with_value:
                text = wrap.replace("{c}", text).replace("{C}", text)
                starts_with_value = starts_with_value and wrap[0] == "{"
            else:
                text = wrap.replace("{C}", text)
            if wrap == "{c}" or wrap[0].islower():
                return text
        if starts_with_value or inside and re.match("I['\\b ]", text):
            return text
        return (text[0].lower() if inside else text[0].upper()) + text[1:]

    def around(self, text):
        r = self.rng.random()
        if r < 0.12:
            return pick(self.rng, self.side.lead) + text
        # Thanks after something that may be part of a value would make the request ambiguous.
        return text + pick(self.rng, self.side.trail) if r < 0.2 and text[-1] in ".?!" else text

    def system(self):
        if self.rng.random() < 0.6:
            return []
        text = pick(self.rng, SYSTEM).replace("{weekday}", pick(self.rng, WEEKDAYS)).replace("{company}", pick(self.rng, self.words.company))
        return [{"role": "system", "content": text}]

    def tool_set(self, instances, forbidden=(), least=0):
        """The instances among others, in random order; `forbidden` tools must not be there."""
        rng = self.rng
        r = rng.random()
        more = 0 if r < 0.25 else 1 + int(rng.random() * 3) if r < 0.75 else 4 + int(rng.random() * 6)
        more = max(more, least)
        taken = {i.name for i in instances}
        out = list(instances)
        domain = instances[0].tool.domain if instances else forbidden[0].domain if forbidden else ""
        near = [t for t in self.side.tools if t.domain == domain]
        for _ in range(more):
            other = pick(rng, near) if near and rng.random() < 0.35 else self.a_tool()
            if any(other is i.tool for i in out) or any(similar(other, t) for t in forbidden):
                continue
            dressed = Instance(other, rng)
            if dressed.name not in taken:
                taken.add(dressed.name)
                out.append(dressed)
        rng.shuffle(out)
        return [i.schema for i in out]

    # ---- the kinds

    def sample(self, kind_name=None):
        if kind_name is None:
            r = self.rng.random() * sum(weight for _, weight in self.KINDS)
            for kind_name, weight in self.KINDS:
                r -= weight
                if r < 0:
                    break
        tools, messages = getattr(self, kind_name)()
        if not messages:  # a session of which nothing came
            tools, messages = self.single()
        return {"kind": kind_name, "tools": tools, "messages": self.system() + messages}

    def request(self, tool=None, inside=False):
        """(instance, values, sentence) of one request."""
        tool = tool or self.a_tool()
        phrasing = self.phrasing(tool)
        values = self.values(tool, phrasing)
        return Instance(tool, self.rng, values), values, self.sentence(phrasing, values, inside)

    def single(self):
        instance, values, text = self.request()
        messages = [{"role": "user", "content": self.around(text)},
                    assistant_calls([call(instance.name, self.arguments(instance, values))])]
        return self.tool_set([instance]), messages

    def two(self):
        first, values, text = self.request()
        join = pick(self.rng, self.side.join)
        for _ in range(8):
            second, more, other = self.request(inside=join != "\n")
            if not similar(first.tool, second.tool) and first.name != second.name:
                break
        else:
            return self.parallel()
        if text[-1] not in ".?!":
            text += "." if join != "\n" else ""
        calls = [call(first.name, self.arguments(first, values)), call(second.name, self.arguments(second, more))]
        return self.tool_set([first, second]), [{"role": "user", "content": self.around(text + join + other)}, assistant_calls(calls)]

    def parallel(self):
        """The same tool two to four times: one parameter varies and is enumerated or added, or all do."""
        tool = self.a_tool()
        phrasing = self.phrasing(tool)
        values = self.values(tool, phrasing)
        instance = Instance(tool, self.rng, values)
        text, calls = self.several(instance, phrasing, values)
        return self.tool_set([instance]), [{"role": "user", "content": self.around(text)}, assistant_calls(calls)]

    def several(self, instance, phrasing, values):
        """(request, calls) of the same tool more than once."""
        rng, tool = self.rng, instance.tool
        varied = [p for p in tool.params if p.name in values and (p.kind.free or p.kind.base in ("int", "enum"))]
        count = 2 if rng.random() < 0.6 else 3 if rng.random() < 0.75 else 4
        shape = rng.random()
        if not varied or shape < 0.3:
            sets, text = [values], self.sentence(phrasing, values)
            for _ in range(count - 1):
                again = self.phrasing(tool)
                more = {n: v for n, v in self.values(tool, again).items() if n in instance.names}
                again = again if all(n in more for n in again.always) else phrasing
                more = more if all(n in more for n in again.always) else self.values(tool, again)
                more = {n: v for n, v in more.items() if n in instance.names}
                sets.append(more)
                join = pick(rng, self.side.join)
                text += ("" if text[-1] in ".?!" or join == "\n" else ".") + join + self.sentence(again, more, join != "\n")
        else:
            param = pick(rng, varied)
            alternatives = {text_of(values[param.name].json): values[param.name]}
            for _ in range(4 * count):
                value = param.kind.make(rng, self.words)
                if len(alternatives) < count and value.text not in {v.text for v in alternatives.values()}:
                    alternatives.setdefault(text_of(value.json), value)
            alternatives = list(alternatives.values())
            sets = [dict(values, **{param.name: v}) for v in alternatives]
            if shape < 0.75:
                together = Value(None, joined([v.text for v in alternatives], pick(rng, (" and ", " and ", " and then "))))
                text = self.sentence(phrasing, dict(values, **{param.name: together}))
            else:
                text = self.sentence(phrasing, sets[0])
                text += "" if text[-1] in ".?!" else "."
                for value in alternatives[1:]:
                    text += " " + pick(rng, self.side.same).replace("{v}", value.text)
        return text, [call(instance.name, self.arguments(instance, v)) for v in sets]

    def none(self):
        rng = self.rng
        r = rng.random()
        if r < 0.12:
            inputs, answer = pick(rng, SMALL_TALK)
            text = pick(rng, inputs)
            tools = self.tool_set([], least=1)
        else:
            if r < 0.25:
                topic = pick(rng, self.words.noun) if rng.random() < 0.5 else random_word(rng)
                text, forbidden = pick(rng, UNRELATED) % topic, []
                tools = self.tool_set([], least=1)
            else:
                _, _, text = self.two_or_one()
                forbidden = self.asked
                tools = [] if r > 0.98 else self.tool_set([], forbidden, least=1)
            answer = REFUSAL_NO_TOOLS if not tools else REFUSAL_ONE if len(tools) == 1 else REFUSAL_MANY
            text = self.around(text)
        if r < 0.12 and not tools:
            tools = []
        return tools, [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]

    def two_or_one(self):
        """A request (seldom a made-up one) whose tool will not be offered."""
        tool = self.a_tool() if self.rng.random() < 0.5 else pick(self.rng, self.side.tools)
        self.asked = [tool]
        return self.request(tool)

    def missing(self):
        rng = self.rng
        for _ in range(20):
            tool = self.a_tool()
            phrasing = self.phrasing(tool)
            droppable = [p for p in tool.params if p.required and p.name in phrasing.optional]
            if droppable:
                break
        else:
            return self.single()
        values = self.values(tool, phrasing)
        instance = Instance(tool, rng, values)
        return self.tool_set([instance]), self.incomplete(instance, phrasing, values, droppable)

    def incomplete(self, instance, phrasing, values, droppable):
        """Messages of a request without some required values; mostly they are told in the end."""
        rng, tool = self.rng, instance.tool
        gone = [p for p in droppable if rng.random() < 0.4] or [pick(rng, droppable)]
        # A piece of the phrasing may hold several parameters: what it drops with the missing one is not said either.
        said = said_parameters(phrasing.nodes, {n for n in values if n not in {p.name for p in gone}})
        asked = [p for p in tool.params if p.required and p.name not in said]
        shown = {n: v for n, v in values.items() if n in said}
        names = ["the " + spoken_name(instance.names[p.name], p.name) for p in asked]
        order = {p.name: i for i, p in enumerate(instance.parameters)}
        names = [n for _, n in sorted(zip([order[p.name] for p in asked], names))]
        question = "Could you tell me %s?" % joined(names)
        messages = [{"role": "user", "content": self.around(self.sentence(phrasing, shown))}, {"role": "assistant", "content": question}]
        if rng.random() < 0.7:
            final = dict(shown)
            final.update({p.name: values[p.name] for p in asked})
            messages += [{"role": "user", "content": self.reply(asked, values)},
                         assistant_calls([call(instance.name, self.arguments(instance, final))])]
        return messages

    def reply(self, asked, values):
        """The user's answer to the question for missing values."""
        pieces, plain = [], False
        for p in asked:
            value = values[p.name]
            text = ("yes" if value.json else "no") if p.kind.base == "bool" else value.text
            r = self.rng.random()
            name = p.name.replace("_", " ")
            if len(asked) == 1 and r < 0.4 or p.kind.base == "bool" and len(asked) == 1:
                pieces.append(text)
                plain = True
            else:
                pieces.append(pick(self.rng, ("the %s is %s", "%s: %s", "%s %s")) % (name, text))
        out = joined(pieces, pick(self.rng, (" and ", ", ")))
        return out if plain or self.rng.random() < 0.5 else out[0].upper() + out[1:] + ("" if out[-1] in ".?!" else ".")

    def follow_up(self):
        """Call, result, answer in words, and a second request to one of the tools."""
        rng = self.rng
        instance, values, text = self.request()
        arguments = self.arguments(instance, values)
        result, answer = self.result(arguments)
        messages = [{"role": "user", "content": self.around(text)}, assistant_calls([call(instance.name, arguments)]),
                    {"role": "tool", "content": json.dumps(result, ensure_ascii=False)}, {"role": "assistant", "content": answer}]
        instances = [instance]
        r = rng.random()
        if r < 0.35:
            again = self.phrasing(instance.tool)
            more = self.values(instance.tool, again)
            more = {n: v for n, v in more.items() if n in instance.names}
            if all(n in more for n in again.always):
                messages += [{"role": "user", "content": self.sentence(again, more)},
                             assistant_calls([call(instance.name, self.arguments(instance, more))])]
        elif r < 0.7:
            other, more, text = self.request()
            if other.name != instance.name and not similar(other.tool, instance.tool):
                instances.append(other)
                messages += [{"role": "user", "content": text}, assistant_calls([call(other.name, self.arguments(other, more))])]
        elif r < 0.85:
            inputs, reply = pick(rng, SMALL_TALK)
            messages += [{"role": "user", "content": pick(rng, inputs)}, {"role": "assistant", "content": reply}]
        return self.tool_set(instances), messages

    def session(self):
        """Several requests to one set of tools: most of a sample's text is its tools, so this teaches more per token."""
        rng = self.rng
        instances = {}
        for _ in range(1 + int(rng.random() * 5)):
            instance = Instance(self.a_tool(), rng)
            instances.setdefault(instance.name, instance)
        instances = list(instances.values())
        messages = []
        for _ in range(3 + int(rng.random() * 5)):
            self.turn(instances, messages)
        return [i.schema for i in instances], messages

    def turn(self, instances, messages):
        """One more request of a session and all that follows from it."""
        rng, r = self.rng, self.rng.random()
        if r < 0.06:
            inputs, answer = pick(rng, SMALL_TALK)
            messages += [{"role": "user", "content": pick(rng, inputs)}, {"role": "assistant", "content": answer}]
            return
        if r < 0.2:
            tool = self.a_tool()
            if not any(similar(tool, i.tool) for i in instances):
                answer = REFUSAL_ONE if len(instances) == 1 else REFUSAL_MANY
                messages += [{"role": "user", "content": self.around(self.request(tool)[2])}, {"role": "assistant", "content": answer}]
            return
        instance = pick(rng, instances)
        phrasing, values = self.ask(instance)
        if phrasing is None:
            return
        droppable = [p for p in instance.tool.params if p.required and p.name in phrasing.optional]
        if r < 0.3 and droppable:
            messages += self.incomplete(instance, phrasing, values, droppable)
        elif r < 0.45:
            text, calls = self.several(instance, phrasing, values)
            messages += [{"role": "user", "content": self.around(text)}, assistant_calls(calls)]
        else:
            text, calls = self.sentence(phrasing, values), [call(instance.name, self.arguments(instance, values))]
            other = pick(rng, instances)
            phrasing, values = self.ask(other)
            if r < 0.62 and other is not instance and phrasing is not None:
                text += ("" if text[-1] in ".?!" else ".") + pick(rng, self.side.join) + self.sentence(phrasing, values, True)
                calls.append(call(other.name, self.arguments(other, values)))
            messages += [{"role": "user", "content": self.around(text)}, assistant_calls(calls)]
        self.answered(messages)

    def ask(self, instance):
        """A phrasing and values that the parameters of this dress allow; (None, None) when none was found."""
        for _ in range(8):
            phrasing = self.phrasing(instance.tool)
            values = {n: v for n, v in self.values(instance.tool, phrasing).items() if n in instance.names}
            if all(n in values for n in phrasing.always):
                return phrasing, values
        return None, None

    def answered(self, messages):
        """Results for the calls of the last message and their report."""
        reports = []
        for made in messages[-1].get("tool_calls", ()):
            if self.rng.random() < 0.5:
                result, text = {"status": "ok"}, "Done."
            else:
                result, text = self.result(made["function"]["arguments"])
            messages.append({"role": "tool", "content": json.dumps(result, ensure_ascii=False)})
            reports.append(text)
        if reports:
            messages.append({"role": "assistant", "content": " ".join(reports)})

    def result(self, arguments):
        """A made-up tool result and the sentence that reports it: an error as it is, else the new facts in order."""
        rng, w = self.rng, self.words
        if rng.random() < 0.15:
            reason = "%s %s %s" % (pick(rng, w.noun), text_of(pick(rng, list(arguments.values()) or ["x"])),
                                   pick(rng, ("not found", "not allowed", "already exists", "is busy", "timed out")))
            return {"error": reason}, "That did not work: %s." % reason
        facts = {}
        for _ in range(1 + int(rng.random() * 3)):
            key = pick(rng, w.noun) if rng.random() < 0.7 else "%s_%s" % (pick(rng, w.adjective), pick(rng, w.noun))
            facts[key] = pick(rng, (int(rng.random() * 1000), round(rng.random() * 500, 2), random_word(rng), pick(rng, w.city), pick(rng, MONTHS)))
        if rng.random() < 0.5:
            return dict({"status": "ok"}, **facts), stated(facts)
        return facts, stated(facts)


def stated(facts):
    return "Done. " + joined(["The %s is %s" % (k.replace("_", " "), text_of(v)) if i == 0 else "the %s is %s" % (k.replace("_", " "), text_of(v))
                              for i, (k, v) in enumerate(facts.items())]) + "."


def said_parameters(nodes, given):
    """Parameters whose values the sentence still names when only `given` have values."""
    said = set()
    for node in nodes:
        if isinstance(node, str):
            continue
        if node[0] in ("slot", "bool"):
            said.add(node[1])
        elif node[0] == "opt":
            if node[1] <= given:
                said |= said_parameters(node[2], given)
        else:
            said |= said_parameters(node[1][0], given)
    return said


def spoken_name(name, plain):
    """A parameter's name in a question; a camelCase or random one is said as it stands in the schema."""
    return name.replace("_", " ") if name == plain or "_" in name else name

