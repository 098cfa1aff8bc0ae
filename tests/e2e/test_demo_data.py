#!/usr/bin/env python3
"""The data generator of the bundled model: same seed same data, right labels, equal rendering, splits that do not meet.

Wrong training data is a fault that shows only as a weak model, hours later; so every promise of demo/data is checked
here on samples: calls fit their tool's schema, values of calls were said, masks cover what the assistant wrote.
"""
import json
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHARED = os.environ.get("HEARTH_SHARED") or os.path.join(ROOT, "../shared")
sys.path.insert(0, os.path.join(ROOT, "demo/data"))

import calls
import chat_text
import domains
import generate
import home
import values
import words
import world

SPLITS = ("train", "seen", "phrasings", "unseen")
COUNT = 400
cache = {}


def take(split, count=COUNT, kinds=None, seed="test"):
    key = split, count, kinds, seed
    if key not in cache:
        cache[key] = [s for s, _ in zip(generate.samples(seed, split, kinds), range(count))]
    return cache[key]


def turns(sample, role):
    return [m for m in sample["messages"] if m["role"] == role]


def strings(value):
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [s for v in value for s in strings(v)] if isinstance(value, list) else []


class Data(unittest.TestCase):
    def test_same_seed_same_samples(self):
        first = [json.dumps(s) for s, _ in zip(generate.samples("7", "train"), range(60))]
        again = [json.dumps(s) for s, _ in zip(generate.samples("7", "train"), range(60))]
        other = [json.dumps(s) for s, _ in zip(generate.samples("8", "train"), range(60))]
        self.assertEqual(first, again)
        self.assertFalse(set(first) & set(other))

    def test_calls_fit_their_schema(self):
        for split in SPLITS:
            for sample in take(split):
                schemas = {t["function"]["name"]: t["function"]["parameters"] for t in sample["tools"]}
                self.assertEqual(len(schemas), len(sample["tools"]))
                for message in turns(sample, "assistant"):
                    self.assertTrue(message["content"] or message.get("tool_calls"), sample)
                    for call in message.get("tool_calls", ()):
                        function = call["function"]
                        self.assertIn(function["name"], schemas)
                        if sample["kind"] != "home":  # there the world refuses what is out of range
                            self.assertTrue(values.fits(function["arguments"], schemas[function["name"]]), function)

    def test_kinds(self):
        """What each kind promises, and that several calls are at least a quarter of sort (a)."""
        several = total = 0
        for sample in take("train", 2000):
            if sample["kind"] in ("home", "session"):
                continue
            total += 1
            first = turns(sample, "assistant")[0]
            count = len(first.get("tool_calls", ()))
            several += count > 1
            if sample["kind"] in ("single", "follow_up"):
                self.assertEqual(count, 1)
            elif sample["kind"] == "two":
                self.assertGreaterEqual(count, 2)
            elif sample["kind"] in ("none", "missing"):
                self.assertTrue(count == 0 and first["content"] or sample["kind"] == "missing", sample)
        self.assertGreaterEqual(several, total * 0.23)

    def test_values_were_said(self):
        """A free string in a call stands in the request as it is, but for the forms that dates and the like have."""
        missing = total = 0
        for split in SPLITS:
            for sample in take(split, 600, ("single", "two", "missing", "session")):
                said = "\n".join(m["content"] for m in turns(sample, "user"))
                schemas = {t["function"]["name"]: t["function"]["parameters"]["properties"] for t in sample["tools"]}
                for message in turns(sample, "assistant"):
                    for call in message.get("tool_calls", ()):
                        for name, value in call["function"]["arguments"].items():
                            entry = schemas[call["function"]["name"]][name]
                            if "enum" in entry or "enum" in entry.get("items", {}):
                                continue
                            for text in strings(value):
                                total += 1
                                # dates and times have other spoken forms; all of those have digits and - or :
                                converted = text[0].isdigit() and ("-" in text or ":" in text)
                                missing += text not in said and not converted
        self.assertGreater(total, 1500)
        self.assertEqual(missing, 0)

    def test_rendering_equals_the_template(self):
        path = os.path.join(SHARED, "oracle")
        try:
            sys.path.insert(0, path)
            import render_template
        except ImportError as e:
            self.skipTest("jinja2 or the shared template is not there: %s" % e)
        for sample in take("train") + take("unseen"):
            for preserve in (False, True):
                got = render_template.render("qwen36", {"messages": sample["messages"], "tools": sample["tools"] or None,
                                                        "enable_thinking": False, "preserve_thinking": preserve})
                self.assertEqual(chat_text.render(sample["messages"], sample["tools"], preserve), got["expected"])
        ask = take("train")[0]["messages"][:-1]
        got = render_template.render("qwen36", {"messages": ask, "enable_thinking": False, "add_generation_prompt": True})
        self.assertEqual(chat_text.render(ask, add_generation_prompt=True), got["expected"])

    def test_masks_cover_what_the_assistant_wrote(self):
        for sample in take("train"):
            pieces = chat_text.pieces(sample["messages"], sample["tools"])
            targets = [text for text, is_target in pieces if is_target]
            wrote = [chat_text.assistant_text(m) + "<|im_end|>" for m in turns(sample, "assistant")]
            self.assertEqual(targets, wrote)
            self.assertFalse(any("<think>" in t for t in targets))
            # a server's prompt ends where the last target begins
            if sample["messages"][-1]["role"] == "assistant":
                prompt = chat_text.render(sample["messages"][:-1], sample["tools"], add_generation_prompt=True)
                whole = chat_text.render(sample["messages"], sample["tools"])
                self.assertEqual(whole, prompt + targets[-1] + "\n")

    def test_tables(self):
        tools = domains.TABLE_TOOLS
        self.assertGreaterEqual(len(tools), 120)
        self.assertEqual(len({t.name for t in tools}), len(tools))
        self.assertGreaterEqual(len({t.domain for t in tools}), 20)
        for tool in tools:
            self.assertGreaterEqual(len(tool.phrasings), 4, tool.name)

    def test_splits_do_not_meet(self):
        held = {t.name for t in domains.TABLE_TOOLS if domains.tool_held_out(t)}
        self.assertGreaterEqual(len(held), 15)
        train, unseen = calls.SPLITS["train"], calls.SPLITS["unseen"]
        self.assertFalse({t.name for t in train.tools} & {t.name for t in unseen.tools})
        for tool in domains.TABLE_TOOLS:
            self.assertFalse(set(map(id, domains.phrasings_of(tool, True))) & set(map(id, domains.phrasings_of(tool, False))))
        for name in words.LISTS:
            self.assertFalse(set(getattr(train.words, name)) & set(getattr(unseen.words, name)), name)
            self.assertTrue(getattr(unseen.words, name), name)
        for a, b in ((train.wrap, unseen.wrap), (train.lead, unseen.lead), (train.join, unseen.join), (train.same, unseen.same)):
            self.assertFalse(set(a) & set(b))
        # and in what comes out: names of held-out tools do not occur in training, whatever their dress
        text = json.dumps([s["tools"] for s in take("train", 2000)])
        self.assertFalse([n for n in held if '"%s"' % n in text])
        descriptions = [t.description for t in domains.TABLE_TOOLS if domains.tool_held_out(t)]
        self.assertFalse([d for d in descriptions if d in text])

    def test_the_world_answers_every_tool(self):
        seen, errors = set(), 0
        for seed in range(60):
            sample = home.conversation("test %d" % seed)
            names = [c["function"]["name"] for m in turns(sample, "assistant") for c in m.get("tool_calls", ())]
            answers = [json.loads(m["content"]) for m in turns(sample, "tool")]
            self.assertEqual(len(names), len(answers))
            self.assertTrue(20 <= len(turns(sample, "assistant")) <= 62)
            errors += sum("error" in a for a in answers)
            self.assertTrue(all(isinstance(a, dict) and a for a in answers))
            seen |= set(names)
        self.assertEqual(seen, {t["function"]["name"] for t in world.TOOLS})
        self.assertGreater(errors, 60)

    def test_the_world_refuses_wrong_calls(self):
        w = world.World("refuse")
        before = w.state()
        for name, arguments, part in (("fly", {}, "unknown tool"), ("light_set", {"room": "workshop"}, "'brightness' is missing"),
                                      ("light_set", {"room": "workshop", "brightness": "9"}, "wrong type"),
                                      ("light_set", {"room": "workshop", "brightness": 900}, "0 to 100"),
                                      ("light_set", {"room": "moon", "brightness": 9}, "unknown room"),
                                      ("timer_list", {"x": 1}, "unknown argument"), ("order_status", {"order_id": "x"}, "unknown order"),
                                      ("stock_take", {"item": list(w.stock)[0], "count": 500}, "only"), ("file_read", {"path": "/x"}, "no file")):
            self.assertIn(part, w.call(name, arguments)["error"])
        self.assertEqual(w.state(), before)

    def test_the_same_calls_give_the_same_world(self):
        for seed in ("a", "b", "c", "d"):
            sample = home.conversation(seed)
            w = world.World(seed)
            answers = iter(turns(sample, "tool"))
            for message in turns(sample, "assistant"):
                for call in message.get("tool_calls", ()):
                    self.assertEqual(w.call(call["function"]["name"], call["function"]["arguments"]), json.loads(next(answers)["content"]))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - bad - len(result.skipped), bad, len(result.skipped)))
    sys.exit(bad != 0)
