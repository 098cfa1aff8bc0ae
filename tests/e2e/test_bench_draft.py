#!/usr/bin/env python3
"""hearth bench draft as a user runs it: JSON alone on standard output, the bars on the recorded trace, wrong usage."""
import json
import os
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARTH = os.path.join(ROOT, os.environ.get("HEARTH", "build/hearth"))
SHARED = os.environ.get("HEARTH_SHARED") or os.path.join(ROOT, "../shared")
MLPERF = os.path.join(SHARED, "mlperf/agentic_coding_2.5h.jsonl")
OWN = os.path.join(ROOT, "demo/agent_trace.jsonl")
TOKENIZER = os.path.join(ROOT, "build/qwen-tokenizer")
ROWS = ["mtp-3", "mtp-5", "tree-8-2-16", "lookup", "graft", "graft-tree"]
skipped = 0


def run(*arguments):
    return subprocess.run([HEARTH, "bench", "draft", *arguments], capture_output=True, text=True, cwd=ROOT)


def need(path):
    global skipped
    if not os.path.exists(path):
        skipped += 1
        print("skip: %s is not here" % os.path.basename(path))
        raise unittest.SkipTest(path)
    return path


def tokenizer():
    need(os.path.join(SHARED, "qwen/tokenizer.json.gz"))
    subprocess.run(["sh", "demo/qwen_tokenizer.sh", SHARED, TOKENIZER], cwd=ROOT, check=True)
    return TOKENIZER


class BenchDraft(unittest.TestCase):
    def rows(self, *arguments):
        done = run(*arguments, "--json", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        return report, {row["drafter"]: row for row in report["rows"]}

    def test_recorded_trace(self):
        report, rows = self.rows("--trace", need(MLPERF), "--tokenizer", tokenizer())
        self.assertEqual((report["turns"], report["prompt_tokens"], report["output_tokens"]), (1007, 13560633, 75446))
        self.assertEqual(list(rows), ROWS)
        self.assertEqual([row["simulated"] for row in rows.values()], [name != "lookup" for name in ROWS])
        rate = {name: row["tokens_per_step"] for name, row in rows.items()}
        self.assertGreaterEqual(rate["lookup"], 3.3)
        self.assertGreaterEqual(rate["graft"], 1.6 * rate["mtp-3"])
        self.assertTrue(3.0 <= rate["mtp-3"] <= 3.1 and 3.6 <= rate["mtp-5"] <= 4.0)
        for row in rows.values():
            self.assertLessEqual(row["mean_width"], 16)
            self.assertEqual(row["tokens"], 75446 - 1007)
            self.assertAlmostEqual(row["tokens_per_step"], row["tokens"] / row["steps"])

    def test_table_file_and_selection(self):
        arguments = ("--trace", OWN, "--tokenizer", tokenizer(), "--conversations", "1", "--turns", "2")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "report.json")
            done = run(*arguments, "--draft-nodes", "4", "--json", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            with open(path) as file:
                report = json.load(file)
        self.assertEqual((report["turns"], report["draft_nodes"]), (2, 4))
        for row in report["rows"]:
            line = [x for x in done.stdout.split("\n") if x.split()[:1] == [row["drafter"]]]
            self.assertEqual(len(line), 1)
            self.assertEqual("simulated" in line[0], row["simulated"])
            self.assertEqual(line[0].split()[1], "%.3f" % row["tokens_per_step"])

    def test_wrong_usage(self):
        for arguments, message in [
                ((), "--trace FILE is missing"),
                (("--trace", OWN), "--tokenizer DIR is missing"),
                (("--trace", OWN, "--tokenizer", ".", "--draft-nodes", "64"), "expected a whole number from 1 to 63"),
                (("--trace", OWN, "--tokenizer", ".", "--mtp-acceptance", ".9,2"), "value 2 of '.9,2'"),
                (("--trace", OWN, "--tokenizer", ".", "--mtp-top2", ".5"), "less than the best one's 0.87"),
                (("--trace", OWN, "more"), "unexpected argument")]:
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(message, done.stderr)

    def test_failures(self):
        done = run("--trace", "absent.jsonl", "--tokenizer", ".")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("absent.jsonl", done.stderr)
        with tempfile.TemporaryDirectory() as directory:
            done = run("--trace", OWN, "--tokenizer", directory)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("tokenizer.json", done.stderr)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - bad - skipped, bad, skipped))
    raise SystemExit(1 if bad else 0)
