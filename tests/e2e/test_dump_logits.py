#!/usr/bin/env python3
"""hearth dump logits on the small checkpoint of this repository: files, standard output, and refused input.

The numbers themselves are tested in tests/golden; here it matters that the command writes the right rows.
"""
import array
import ast
import json
import os
import struct
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARTH = os.path.join(ROOT, os.environ.get("HEARTH", "build/hearth"))
MODEL = os.path.join(ROOT, "tests/golden/small")
GOLDEN = os.path.join(MODEL, "golden")
TOLERANCE = 1e-3


def load(path):
    """(shape, flat floats or integers) of a .npy file; no numpy, so that a bare machine runs this."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x93NUMPY\x01\x00", path
    size = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + size].decode())
    values = array.array({"<f4": "f", "<i4": "i"}[header["descr"]])
    values.frombytes(data[10 + size:])
    return header["shape"], values


class DumpLogits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(GOLDEN, "golden.json")) as f:
            cls.info = json.load(f)
        cls.prompts = {p["name"]: p for p in cls.info["prompts"]}
        cls.vocab, cls.limit = cls.info["vocab"], cls.info["limit"]

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.folder.name, "out.npy")

    def tearDown(self):
        self.folder.cleanup()

    def put(self, name, value):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as f:
            f.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def call(self, ids, *options):
        command = [HEARTH, "dump", "logits", MODEL, "--ids", self.put("ids.json", ids), "--out", self.out, *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def dump(self, ids, *options):
        done = self.call(ids, "--vocab-limit", str(self.limit), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return load(self.out), json.loads(done.stdout)

    def close(self, got, want):
        self.assertEqual(len(got), len(want))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(got, want)), TOLERANCE)

    def golden_row(self, name, row):
        shape, values = load(os.path.join(GOLDEN, name))
        width = shape[-1]
        return values[row * width:(row + 1) * width]

    def test_last(self):
        for prompt in self.prompts.values():
            (shape, values), said = self.dump(prompt["ids"])
            self.assertEqual(shape, (1, self.vocab))
            self.assertEqual(said, {"limit": self.limit, "greedy": [prompt["argmax"]]})
            self.close(values, self.golden_row("logits_last.npy", prompt["last_row"]))

    def test_all(self):
        prompt = self.prompts["p67"]
        (shape, values), said = self.dump(prompt["ids"], "--all")
        self.assertEqual(shape, (67, self.vocab))
        self.assertEqual(len(said["greedy"]), 67)
        ids, tops = load(os.path.join(GOLDEN, "top8_ids.npy"))[1], load(os.path.join(GOLDEN, "top8_logits.npy"))[1]
        for position in range(67):
            for k in range(8):
                at = (prompt["top8_offset"] + position) * 8 + k
                self.assertAlmostEqual(values[position * self.vocab + ids[at]], tops[at], delta=TOLERANCE)

    def test_tree(self):
        for tree in self.info["trees"]:
            path = self.put("tree.json", {"tokens": tree["tokens"], "parents": tree["parents"]})
            (shape, values), said = self.dump(self.prompts[tree["prefix"]]["ids"], "--tree", path)
            self.assertEqual(shape, (12, self.vocab))
            self.assertEqual(len(said["greedy"]), 12)
            self.close(values, load(os.path.join(GOLDEN, tree["logits"]))[1])

    def test_mtp(self):
        for prompt in self.prompts.values():
            if "mtp" not in prompt:
                continue
            (shape, values), said = self.dump(prompt["ids"], "--mtp", "4")
            self.assertEqual(shape, (4, self.vocab))
            self.assertEqual(said["greedy"], [prompt["mtp"]["first"]])
            self.assertEqual(said["drafts"], prompt["mtp"]["drafts"])
            if prompt["mtp"]["row"] is not None:
                rows = load(os.path.join(GOLDEN, "mtp_logits.npy"))[1]
                width = 4 * self.vocab
                self.close(values, rows[prompt["mtp"]["row"] * width:(prompt["mtp"]["row"] + 1) * width])

    def test_refused(self):
        cases = [
            ("[]", (), "ids.json is not an array of ids"),
            ("[1, -1]", (), "ids.json[1] is -1"),
            ("[1, 2.5]", (), "ids.json[1] is 2.5"),
            ("[1,", (), "ids.json"),
            ("[120]", (), "id 120, the vocabulary has 120 rows"),
            ("[1]", ("--vocab-limit", "121"), "121 addressable ids"),
            ("[1]", ("--tree", self.put("t.json", {"tokens": [1, 2], "parents": [-1, 1]})), "parents[1] is 1"),
            ("[1]", ("--tree", self.put("u.json", {"tokens": [1, 2], "parents": [-1]})), "2 tokens but 1 parents"),
            ("[1]", ("--all", "--mtp", "2"), "at most one of"),
            ("[1]", ("--mtp", "0"), "--mtp"),
        ]
        for ids, options, message in cases:
            done = self.call(ids, *options)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(message, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertFalse(os.path.exists(self.out), "a failed dump leaves no file")


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed" % (result.testsRun - bad, bad))
    raise SystemExit(1 if bad else 0)
