#!/usr/bin/env python3
"""Rules of the tree that no compiler checks; CONTRIBUTING.md says what to do when one fails.

Layers: an include may only point down. Also: banned calls, unique file names, line length, file size, an opening
comment in every source file, links in documents that lead nowhere, leftovers. Exits non-zero when a rule is broken.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Which layers a layer may include besides itself; hearth.h is a name of its own.
TEXT = {"base"}
FORMAT = {"base"}
OPS = {"base", "format"}
MODEL = OPS | {"ops", "text"}
CACHE = MODEL | {"model"}
DECODE = CACHE | {"cache"}
ENGINE = DECODE | {"decode", "hearth.h"}
QUANTIZE = MODEL | {"model"}
SERVE = {"base", "text", "hearth.h"}
BENCH = {"base", "text", "hearth.h"}
# The model-less benches may include the layer they measure.
BENCH_LAYERS = {"bench_cache.c": {"cache", "format", "ops"}, "bench_draft.c": {"decode", "cache"}}
CLI = {"base", "format", "text", "ops", "model", "quantize", "cache", "decode", "engine", "serve", "bench", "hearth.h"}
ALLOWED = {"base": set(), "text": TEXT, "format": FORMAT, "grammar": {"base", "text"}, "ops": OPS, "model": MODEL,
           "cache": CACHE, "decode": DECODE, "engine": ENGINE, "quantize": QUANTIZE, "serve": SERVE, "bench": BENCH,
           "cli": CLI}

# The reason stands beside the rule.
BANNED = {
    "strcpy": "no bound", "strcat": "no bound", "sprintf": "no bound", "vsprintf": "no bound", "gets": "no bound",
    "strtok": "hidden state", "atoi": "no error", "atol": "no error", "atof": "no error, locale",
    "alloca": "no bound", "setjmp": "control flow", "longjmp": "control flow", "rand": "use a seeded generator",
    "setlocale": "changes number parsing", "system": "shell",
}
PRINTING = {"printf", "puts", "putchar", "exit", "_exit", "abort"}
PRINT_LAYERS = {"cli"}
PRINT_FILES = {"src/base/error.c", "src/base/memory.c", "src/base/log.c"}  # assertions, out of memory, the log itself
LINE_MAX = 124  # clang-format wraps code at 120 and leaves comments alone
FILE_MAX = 1000

problems = []


def problem(path, line, text):
    problems.append("%s:%d: %s" % (path, line, text))


def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return [p for p in out.stdout.split("\n") if p and os.path.isfile(os.path.join(ROOT, p))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def code_only(text):
    """The source with comments and string contents blanked, line numbers kept."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)


def check_includes(path, text):
    parts = path.split("/")
    layer = parts[1]
    if layer not in ALLOWED:
        problem(path, 1, "unknown layer '%s'" % layer)
        return
    allowed = ALLOWED[layer] | {layer} | BENCH_LAYERS.get(parts[-1], set())
    for number, line in enumerate(text.split("\n"), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not m:
            continue
        target = m.group(1)
        if "/" not in target and target != "hearth.h":
            problem(path, number, 'include "%s" needs its layer: "layer/file.h"' % target)
        elif target.split("/")[0] not in allowed:
            problem(path, number, "layer %s may not include %s" % (layer, target))


def check_calls(path, code):
    layer = path.split("/")[1] if path.startswith("src/") else ""
    for number, line in enumerate(code.split("\n"), 1):
        for name in re.findall(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(", line):
            if name in BANNED:
                problem(path, number, "%s is banned: %s" % (name, BANNED[name]))
            if layer and layer not in PRINT_LAYERS and name in PRINTING and path not in PRINT_FILES:
                problem(path, number, "%s: only src/cli prints or exits" % name)


def check_source(path):
    text = read(path)
    if not re.match(r"\s*(/\*|//)", text):
        problem(path, 1, "no opening comment that says why the file exists")
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_MAX and "http" not in line:
            problem(path, number, "line of %d characters (at most %d)" % (len(line), LINE_MAX))
        if re.search(r"\b(FIXME|XXX|HACK)\b", line) or re.search(r"\bTODO\b", line):
            problem(path, number, "leftover marker")
    if len(lines) > FILE_MAX and path.startswith(("src/", "include/")):
        problem(path, 1, "%d lines (at most %d): split it" % (len(lines), FILE_MAX))
    if path == "include/hearth.h" and len(lines) > 301:
        problem(path, 1, "the public header has at most 300 lines, this one %d" % len(lines))
    if path.startswith("src/"):
        check_includes(path, text)
    if path.startswith(("src/", "include/", "examples/")):
        check_calls(path, code_only(text))


def slug(heading):
    heading = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", heading))


def check_document(path):
    text = read(path)
    body = re.sub(r"```.*?```", blank, text, flags=re.S)
    for number, line in enumerate(body.split("\n"), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            full = os.path.normpath(os.path.join(ROOT, os.path.dirname(path), file)) if file else os.path.join(ROOT, path)
            if not os.path.exists(full):
                problem(path, number, "dead link %s" % target)
            elif anchor and full.endswith(".md"):
                with open(full, encoding="utf-8") as f:
                    heads = [slug(h) for h in re.findall(r"^#+ (.*)$", f.read(), flags=re.M)]
                if anchor not in heads:
                    problem(path, number, "dead anchor %s" % target)
        for target in re.findall(r"`((?:src|tests|docs|include|demo|examples)/[\w./-]+\.\w+)`", line):
            if not os.path.exists(os.path.join(ROOT, target)):
                problem(path, number, "names a file that is not there: %s" % target)


def check_names(paths):
    seen = {}
    for path in paths:
        if not path.endswith((".c", ".h", ".cu", ".cuh")):
            continue
        name = os.path.basename(path)
        if name in seen:
            problem(path, 1, "file name also used by %s" % seen[name])
        seen[name] = path


def main():
    paths = tracked()
    check_names(paths)
    for path in paths:
        if path.endswith((".c", ".h", ".cu", ".cuh")):
            check_source(path)
        elif path.endswith(".md"):
            check_document(path)
    for line in problems:
        print(line)
    print("%d passed, %d failed" % (len(paths), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
