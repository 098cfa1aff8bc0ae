#!/usr/bin/env python3
"""The demo as a newcomer runs it, from nothing: it must end by itself, answer every turn and leave its report."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import hearth_server as hs


class Demo(unittest.TestCase):
    def run_demo(self, shared, turns):
        work = os.path.join(tempfile.mkdtemp(prefix="hearth-demo-"), "work")
        self.addCleanup(shutil.rmtree, os.path.dirname(work))
        done = subprocess.run(["sh", "demo/run.sh", "4"], cwd=hs.ROOT, capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, HEARTH=hs.HEARTH, HEARTH_SHARED=shared, DEMO_DIR=work,
                                       DEMO_TURNS=str(turns)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("%d of %d answered, 0 missing, 0 unfinished" % (turns, turns), done.stdout)
        with open(os.path.join(work, "report", "scores.json"), encoding="utf-8") as f:
            self.assertEqual(json.load(f)["turns"]["missing"], 0)
        self.assertGreater(os.path.getsize(os.path.join(work, "report", "turns.svg")), 1000)

    def test_own_conversations(self):
        self.run_demo("/nonexistent", 16)

    def test_recorded_conversation(self):
        shared = os.environ.get("HEARTH_SHARED") or os.path.join(hs.ROOT, "..", "shared")
        if not os.path.exists(os.path.join(shared, "mlperf", "agentic_coding_2.5h.jsonl")):
            self.skipTest("the MLPerf trace is not here")
        self.run_demo(shared, 3)


if __name__ == "__main__":
    hs.run_cases(Demo)
