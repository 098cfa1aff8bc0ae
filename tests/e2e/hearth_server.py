"""What the end-to-end tests share: a model to serve, a server process, and the closing line that tests/run reads.

The model is the directory in HEARTH_TEST_MODEL, else a small random one that `hearth synth` writes under build/.
"""
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import unittest
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build")
HEARTH = os.path.abspath(os.environ.get("HEARTH") or os.path.join(BUILD, "hearth"))


class Skip(Exception):
    """Raised with the reason why a test cannot run here."""


def model_dir():
    given = os.environ.get("HEARTH_TEST_MODEL")
    if given:
        return given
    path = os.path.join(BUILD, "e2e-model")
    if not os.path.exists(os.path.join(path, "config.json")):
        done = subprocess.run([HEARTH, "synth", "tiny", path], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError("hearth synth: " + done.stderr)
    return path


class Server:
    """A server process on a port of its own; stderr is kept in self.log_path."""

    def __init__(self, command, name):
        os.makedirs(os.path.join(BUILD, "logs"), exist_ok=True)
        self.port_path = os.path.join(BUILD, "logs", "%s.%d.port" % (name, os.getpid()))
        self.log_path = os.path.join(BUILD, "logs", name + ".server.log")
        if os.path.exists(self.port_path):
            os.unlink(self.port_path)
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command + self.port_arguments(command), stderr=log, stdout=log)
        self.wait_for(lambda: os.path.exists(self.port_path) and os.path.getsize(self.port_path), "the port")
        with open(self.port_path, encoding="utf-8") as f:
            self.port = int(f.read())
        os.unlink(self.port_path)
        self.url = "http://127.0.0.1:%d" % self.port

    def port_arguments(self, command):
        if "--serve" in command:  # the scripted server of test_serve
            return [self.port_path]
        return ["--port", "0", "--port-file", self.port_path]

    def wait_for(self, condition, what, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            if self.process.poll() is not None:
                raise RuntimeError("the server ended with %d:\n%s" % (self.process.returncode, self.log()))
            if time.monotonic() > end:
                raise RuntimeError("no %s after %d s:\n%s" % (what, seconds, self.log()))
            time.sleep(0.02)

    def wait_ready(self):
        self.wait_for(lambda: request(self.url + "/health")[0] == 200, "loaded model", 120)
        return self

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self, number=signal.SIGTERM):
        """Signals the process and returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def serve(name, *arguments):
    return Server([HEARTH, "serve", model_dir(), *arguments], name)


def scripted(name):
    """The server over a scripted engine (tests/unit/test_serve.c --serve)."""
    program = os.path.join(BUILD, "tests", "unit", "test_serve")
    if not os.path.exists(program):
        raise Skip("build/tests/unit/test_serve is not built")
    return Server([program, "--serve"], name)


def request(url, body=None, headers=None, timeout=120):
    """(status, headers, bytes) of one request; body is sent as JSON."""
    data = None if body is None else json.dumps(body).encode()
    r = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(r, timeout=timeout) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as e:
        with e:
            return e.code, e.headers, e.read()


def run(tests):
    """Runs functions, prints a line for each and the closing line; the exit status is 1 when one failed."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for test in tests:
        outcome, why = "passed", ""
        try:
            test()
        except Skip as e:
            outcome, why = "skipped", ": %s" % e
            print("skip: %s" % e)
        except Exception:  # pylint: disable=broad-except
            outcome, why = "failed", "\n" + traceback.format_exc()
        counts[outcome] += 1
        print("%s %s%s" % (outcome, test.__name__, why), flush=True)
    print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % counts)
    sys.exit(1 if counts["failed"] else 0)


def run_cases(*classes):
    """The same closing line for unittest.TestCase classes."""
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    result = unittest.TextTestRunner(verbosity=2).run(unittest.TestSuite(load(c) for c in classes))
    for test, reason in result.skipped:
        print("skip: %s: %s" % (test.id(), reason))
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - failed - skipped, failed, skipped))
    sys.exit(1 if failed else 0)
