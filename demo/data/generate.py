#!/usr/bin/env python3
"""Endless training and measuring samples for the bundled model, from nothing but this directory.

    generate.py --seed 1 --count 1000 --split train > samples.jsonl      one JSON object a line: kind, tools, messages
    generate.py --seed 1 --count 5 --text                                as the model sees them

A seed gives the same samples on every machine. Splits ("train", "seen", "phrasings", "unseen": calls.py) differ in
seeds, and the last two in words, tools and phrasings too; measuring sets come from seeds that begin with the split's
name, training from "train", so that they never meet.

Two sorts of samples: (a) requests to random tool sets (calls.py), (b) conversations with the home and workshop
assistant (home.py). One in twenty is of sort (b), which makes about a quarter of the text.
"""
import argparse
import json
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from calls import SPLITS, Maker
from chat_text import render
from home import conversation

HOME_SHARE = 0.05
# Part of the conversations stop at a random turn: only the last exchange has the form in which a server asks for it.
CUT_SHARE = 0.5


def cut(messages, rng):
    """The conversation up to the end of some assistant turn."""
    ends = [i + 1 for i, m in enumerate(messages) if m["role"] == "assistant"]
    return messages[:ends[int(rng.random() * len(ends))]]


def samples(seed, split="train", kinds=None, home_share=HOME_SHARE):
    """Endless samples; kinds: only these kinds of sort (a), or ("home",)."""
    rng = random.Random("%s %s" % (split, seed))
    maker = Maker(rng, split)
    number = 0
    while True:
        number += 1
        if kinds:
            kind = kinds[int(rng.random() * len(kinds))]
        else:
            kind = "home" if rng.random() < home_share else None
        if kind == "home":
            sample = conversation("%s %s %d" % (split, seed, number), split)
            if rng.random() < CUT_SHARE:
                sample["messages"] = cut(sample["messages"], rng)
        else:
            sample = maker.sample(kind)
        yield sample


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=10)
    parser.add_argument("--split", default="train", choices=sorted(SPLITS))
    parser.add_argument("--kinds", nargs="*", help="single, parallel, two, none, missing, follow_up, session, home")
    parser.add_argument("--text", action="store_true", help="print the rendered text instead of JSON")
    a = parser.parse_args()
    for sample, _ in zip(samples(a.seed, a.split, a.kinds), range(a.count)):
        if a.text:
            print(render(sample["messages"], sample["tools"]))
        else:
            print(json.dumps(sample, ensure_ascii=False))


if __name__ == "__main__":
    main()
