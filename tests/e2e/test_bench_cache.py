#!/usr/bin/env python3
"""hearth bench cache: prefix reuse on recorded conversations against what is possible, and the command's manners."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARTH = os.path.join(ROOT, os.environ.get("HEARTH", "build/hearth"))
SHARED = os.environ.get("HEARTH_SHARED") or os.path.join(ROOT, "../shared")
MLPERF = os.path.join(SHARED, "mlperf/agentic_coding_2.5h.jsonl")
PREFILLED_MAX = 472000
EXACT = 465797
skipped = 0


def run(*options):
    return subprocess.run([HEARTH, "bench", "cache", *options], capture_output=True, text=True, timeout=300)


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global skipped
        if not os.path.exists(MLPERF):
            skipped += 1
            raise unittest.SkipTest("reference data is not here")
        cls.dir = tempfile.mkdtemp(prefix="hearth-bench-cache-")
        cls.tokenizer = os.path.join(cls.dir, "qwen")
        subprocess.run(["sh", os.path.join(ROOT, "demo/qwen_tokenizer.sh"), SHARED, cls.tokenizer], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def result(self, *options):
        done = run("--trace", MLPERF, "--tokenizer", self.tokenizer, "--json", "-", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def check(self, order, gigabytes):
        r = self.result("--order", order, "--cache-bytes", "%d000000000" % gigabytes)
        self.assertEqual((r["turns"], r["prompt_tokens"], r["exact_tokens"]), (1007, 13560633, EXACT))
        self.assertLessEqual(r["prefilled_tokens"], PREFILLED_MAX)
        self.assertGreaterEqual(r["prefilled_tokens"], EXACT)
        self.assertLessEqual(r["peak_bytes"], gigabytes * 10**9)
        self.assertLessEqual(r["peak_pages"] * 64 * 32768 + r["peak_snapshots"] * 154 * 10**6, 2 * r["peak_bytes"])
        self.assertEqual(r["misses"]["cold"], 1)
        self.assertAlmostEqual(r["hit_share"], 1 - r["prefilled_tokens"] / 13560633, places=12)
        return r

    def test_file_order(self):
        self.check("file", 8)

    def test_two_interleaved(self):
        self.check("interleave2", 8)

    def test_twenty_in_turn(self):
        self.check("round-robin", 24)

    def test_edits(self):
        a = self.result("--edit-rate", "0.05", "--conversations", "4")
        self.assertGreater(a["exact_tokens"], 100000)
        self.assertLess(a["prefilled_tokens"], 1.3 * a["exact_tokens"])
        b = self.result("--edit-rate", "0.05", "--conversations", "4")
        c = self.result("--edit-rate", "0.05", "--conversations", "4", "--seed", "2")
        self.assertEqual(a["prefilled_tokens"], b["prefilled_tokens"])
        self.assertNotEqual(a["exact_tokens"], c["exact_tokens"])

    def test_table_and_file(self):
        path = os.path.join(self.dir, "out.json")
        done = run("--trace", MLPERF, "--tokenizer", self.tokenizer, "--conversations", "1", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("799,264", done.stdout)
        with open(path, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["prompt_tokens"], 799264)

    def test_too_little_memory(self):
        done = run("--trace", MLPERF, "--tokenizer", self.tokenizer, "--cache-bytes", "500000000", "--json", "-")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("500000000 bytes", done.stderr)


class WrongUsage(unittest.TestCase):
    def test_refused(self):
        for options, said in [([], "--trace"), (["--trace", "x"], "--tokenizer"),
                              (["--trace", "x", "--tokenizer", "y", "--order", "backwards"], "--order"),
                              (["--trace", "x", "--tokenizer", "y", "--edit-rate", "2"], "--edit-rate"),
                              (["--trace", "x", "--tokenizer", "y", "--edit-rate", "nan"], "--edit-rate"),
                              (["--trace", "x", "--tokenizer", "y", "--token-bytes", "0"], "--token-bytes")]:
            done = run(*options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertIn(said, done.stderr)

    def test_missing_file(self):
        done = run("--trace", "/nonexistent", "--tokenizer", "/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (1, ""))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - bad, bad, skipped))
