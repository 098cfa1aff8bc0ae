#!/usr/bin/env python3
"""hearth chat on a random model, in a pipe and in a terminal, and the example agent."""
import os
import pty
import select
import signal
import subprocess
import tempfile
import time
import unittest

import hearth_server as hs

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARTH = os.path.join(ROOT, os.environ.get("HEARTH", "build/hearth"))
AGENT = os.path.join(os.path.dirname(HEARTH), "examples/agent")


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *command):
        self.seen = b""
        try:
            self.pid, self.fd = pty.fork()
        except OSError as e:
            raise unittest.SkipTest("skip: no terminal to be had here: %s" % e)
        if self.pid == 0:
            os.execv(command[0], command)

    def wait_for(self, text, seconds=30):
        """Reads until text has come since the last call."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError("no %r in %r" % (text, self.seen[-300:]))
            self.seen += os.read(self.fd, 65536)
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, data):
        os.write(self.fd, data)

    def end(self):
        """Exit status; the terminal is read to its end first."""
        try:
            while select.select([self.fd], [], [], 30)[0] and os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        else:
            os.kill(self.pid, signal.SIGKILL)  # it did not end: the status says so
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Chat(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.model = os.path.join(cls.folder.name, "tiny")
        subprocess.run([HEARTH, "synth", "tiny", cls.model], check=True, capture_output=True)
        # The same without a stop id that it could choose: it talks until it is stopped.
        cls.endless = os.path.join(cls.folder.name, "endless")
        subprocess.run(["cp", "-r", cls.model, cls.endless], check=True)
        with open(os.path.join(cls.endless, "generation_config.json"), "w") as f:
            f.write('{"eos_token_id": [511], "temperature": 1.0}')

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def chat(self, text, *options, model=None):
        return subprocess.run([HEARTH, "chat", model or self.model, "--max-tokens", "20", "--threads", "1", *options],
                              input=text.encode(), capture_output=True, timeout=60)

    def test_lines_from_a_pipe_are_turns(self):
        options = ("--seed", "7", "--system", "Be brief")
        first = self.chat("hello\n\nand then?\n", *options)
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stderr.count(b"prompt tokens cached"), 2)
        self.assertEqual(self.chat("hello\n\nand then?\n", *options).stdout, first.stdout)
        self.assertNotIn(b"0 of", first.stderr.splitlines()[1])
        self.assertNotIn(b"\x1b", first.stdout)
        first.stdout.decode()  # valid UTF-8

    def test_one_prompt(self):
        done = self.chat("", "--prompt", "hi", "--temperature", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"tokens/s", done.stderr)

    def test_wrong_use(self):
        self.assertEqual(self.chat("", "--temperature", "warm").returncode, 2)
        self.assertEqual(self.chat("", "--nonsense").returncode, 2)
        gone = self.chat("", model="/nowhere/model")
        self.assertEqual(gone.returncode, 1)
        self.assertIn(b"/nowhere/model", gone.stderr)
        long = self.chat("", "--prompt", "hi", "--context", "64", "--max-tokens", "64")
        self.assertEqual(long.returncode, 1)
        self.assertIn(b"64", long.stderr)

    def test_control_c_stops_the_answer_and_then_leaves(self):
        t = Terminal(HEARTH, "chat", self.endless, "--threads", "1")
        t.wait_for(b"> ")
        t.type(b"hello\n")
        t.wait_for(b"hello\r\n")
        time.sleep(0.2)
        t.type(b"\x03")
        self.assertGreater(len(t.wait_for(b"[stopped]")), 10)
        t.wait_for(b"> ")
        t.type(b"again\n")
        t.wait_for(b"again\r\n")
        time.sleep(0.2)
        os.kill(t.pid, signal.SIGINT)
        t.wait_for(b"[stopped]")
        t.wait_for(b"> ")
        t.type(b"\x03")
        self.assertEqual(t.end(), 0)

    def test_end_of_input_leaves(self):
        t = Terminal(HEARTH, "chat", self.model, "--threads", "1")
        t.wait_for(b"> ")
        t.type(b"\x04")
        self.assertEqual(t.end(), 0)

    def test_the_example_agent_answers(self):
        if not os.path.exists(AGENT):
            self.skipTest("skip: %s is not built" % AGENT)
        done = subprocess.run([AGENT, self.model, "What is 17 * 23?"], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout[-300:])


if __name__ == "__main__":
    hs.run_cases(Chat)
