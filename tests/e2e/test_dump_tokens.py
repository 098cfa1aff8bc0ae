#!/usr/bin/env python3
"""hearth dump tokens: the golden cases through the command line, bytes that are no text, and its errors."""
import json
import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARTH = os.path.join(ROOT, os.environ.get("HEARTH", "build/hearth"))
GOLDEN = os.path.join(ROOT, "tests/golden/tokenizer")
passed = failed = 0


def check(name, ok):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAILED: " + name)


def dump(text, *arguments):
    return subprocess.run([HEARTH, "dump", "tokens", *arguments], input=text, capture_output=True, timeout=60)


def main():
    with open(os.path.join(GOLDEN, "cases.jsonl"), encoding="utf-8") as f:
        for case in map(json.loads, f):
            run = dump(case["text"].encode("utf-8"), GOLDEN)
            check(repr(case["text"]), run.returncode == 0 and json.loads(run.stdout) == case["ids"])
    run = dump(b"\xff\x00\xff", GOLDEN)
    check("bytes as they are", run.returncode == 0 and len(json.loads(run.stdout)) == 3)
    run = dump(b"x", "/nonexistent")
    check("missing directory", run.returncode == 1 and not run.stdout and b"/nonexistent/tokenizer.json" in run.stderr)
    check("no directory", dump(b"x").returncode == 2)
    print("%d passed, %d failed" % (passed, failed))
    return failed != 0


if __name__ == "__main__":
    raise SystemExit(main())
