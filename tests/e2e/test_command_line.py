#!/usr/bin/env python3
"""The command line as a user meets it: help, wrong usage, synth, inspect, install. No shared data needed."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import hearth_server as hs

COMMANDS = ("serve", "chat", "bench", "inspect", "synth", "dump")


def run(*arguments, **options):
    return subprocess.run([hs.HEARTH, *arguments], capture_output=True, text=True, timeout=60, **options)


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="hearth-cli-")
        cls.model = os.path.join(cls.dir, "tiny")
        done = run("synth", "tiny", cls.model, "--seed", "3")
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir)

    def broken_copy(self, name, change):
        """A copy of the model whose safetensors header went through change(header)."""
        copy = os.path.join(self.dir, name)
        shutil.copytree(self.model, copy)
        path = os.path.join(copy, "model.safetensors")
        with open(path, "rb") as f:
            size = struct.unpack("<Q", f.read(8))[0]
            header, data = json.loads(f.read(size)), f.read()
        change(header)
        text = json.dumps(header).encode()
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + data)
        return copy

    def test_help(self):
        self.assertEqual(run("--help").returncode, 0)
        self.assertIn("hearth ", run("--version").stdout)
        for command in COMMANDS:
            with self.subTest(command):
                self.assertIn(command, run("--help").stdout)
                done = run(command, "--help")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("usage: hearth " + command, done.stdout)

    def test_wrong_usage_is_status_2_and_names_the_word(self):
        for words, needle in (((), "usage"), (("fly",), "'fly'"), (("synth",), "usage"),
                              (("synth", "tiny", "x", "y"), "'y'"), (("synth", "tiny", "x", "--sed", "1"), "'--sed'"),
                              (("synth", "tiny", "x", "--seed"), "--seed"),
                              (("chat", "x", "--kv", "int4"), "fp32|bf16|fp8"),
                              (("synth", "tiny", "x", "--seed", "-1"), "--seed -1"),
                              (("inspect", "x", "--context", "0"), "--context 0"),
                              (("serve", "x", "--reasoning", "maybe"), "on or off"),
                              (("serve", "x", "--body-max", "12Q"), "--body-max 12Q"),
                              (("bench", "fly"), "'fly'"), (("bench", "perf", "--fly"), "'--fly'"),
                              (("bench", "perf"), "--trace FILE"), (("dump", "prompt", "x"), "--request FILE"),
                              (("dump", "logits", "x"), "--ids"), (("chat", "x", "--top-p", "x"), "--top-p x")):
            with self.subTest(words):
                done = run(*words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(needle, done.stderr)
                if hint := re.search(r"^try: hearth (.*)$", done.stderr, re.M):
                    self.assertEqual(run(*hint[1].split()).returncode, 0, hint[0])

    def test_synth_refuses(self):
        done = run("synth", "tiny", self.model)
        self.assertEqual(done.returncode, 1)
        self.assertIn("not an empty directory", done.stderr)
        done = run("synth", "13b", os.path.join(self.dir, "x"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("'13b'", done.stderr)

    def test_inspect(self):
        done = run("inspect", self.model, "--scan")
        self.assertEqual(done.returncode, 0, done.stderr)
        for needle in ("4 layers: 3 Gated DeltaNet, 1 attention; MTP layer", "BF16", "recurrent state", "0 warnings"):
            self.assertIn(needle, done.stdout)
        self.assertIn("model.safetensors +", run("inspect", self.model, "--tensors").stdout)
        big = run("inspect", self.model, "--context", "262144", "--parallel", "1024")
        self.assertIn("does not fit", big.stdout)

    def test_inspect_names_what_is_wrong(self):
        name = "model.language_model.layers.1.mlp.up_proj.weight"

        def rename(header):
            header["surprise.weight"] = header.pop(name)

        def reshape(header):
            header[name]["shape"] = header[name]["shape"][::-1]

        def shift(header):
            header[name]["data_offsets"][1] += 2

        for kind, change, needles in (("renamed", rename, (name, "surprise.weight")), ("reshaped", reshape, (name, "128")),
                                      ("shifted", shift, (name, "model.safetensors"))):
            with self.subTest(kind):
                done = run("inspect", self.broken_copy(kind, change))
                self.assertEqual(done.returncode, 1)
                for needle in needles:
                    self.assertIn(needle, done.stderr)
        done = run("inspect", os.path.join(self.dir, "nowhere"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("nowhere", done.stderr)

    def test_an_unknown_instruction_set_is_refused(self):
        ids = os.path.join(self.dir, "ids.json")
        with open(ids, "w", encoding="utf-8") as f:
            f.write("[1, 2]")
        for isa, status in (("scalar", 0), ("sclar", 1)):
            done = run("dump", "logits", self.model, "--ids", ids, "--out", os.path.join(self.dir, "out.npy"),
                       env=dict(os.environ, HEARTH_ISA=isa))
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertEqual("sclar" in done.stderr, status == 1)

    def test_install_and_build_the_example_against_it(self):
        prefix = os.path.join(self.dir, "usr")
        made = subprocess.run(["make", "install", "PREFIX=" + prefix], cwd=hs.ROOT, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        for file in ("bin/hearth", "lib/libhearth.a", "include/hearth.h", "lib/pkgconfig/hearth.pc"):
            self.assertTrue(os.path.exists(os.path.join(prefix, file)), file)
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "hearth"], capture_output=True, text=True,
                               env=dict(os.environ, PKG_CONFIG_PATH=os.path.join(prefix, "lib/pkgconfig")))
        self.assertEqual(flags.returncode, 0, flags.stderr)
        agent = os.path.join(self.dir, "agent")
        built = subprocess.run(["cc", "-o", agent, os.path.join(hs.ROOT, "examples/agent.c"), *flags.stdout.split()],
                               capture_output=True, text=True)
        self.assertEqual(built.returncode, 0, built.stderr)


if __name__ == "__main__":
    hs.run_cases(CommandLine)
