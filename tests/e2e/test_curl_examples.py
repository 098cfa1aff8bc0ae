#!/usr/bin/env python3
"""The curl examples of the README and docs, run against a server.

A block that begins with ```sh and has the comment <!-- run --> on the line before is run as it stands, except that its
port 8080 becomes the server's. It must exit with 0 and no answer may be an error.
"""
import glob
import os
import re
import shutil
import subprocess

import hearth_server as hs

BLOCK = re.compile(r"^<!-- run -->\n```sh\n(.*?)^```$", re.M | re.S)


def examples():
    for path in [os.path.join(hs.ROOT, "README.md"), *sorted(glob.glob(os.path.join(hs.ROOT, "docs", "*.md")))]:
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            yield "%s:%d" % (os.path.relpath(path, hs.ROOT), line), match.group(1)


def example_test(place, script, server_of):
    def test():
        if not shutil.which("curl"):
            raise hs.Skip("curl is not installed")
        script_here = re.sub(r"(127\.0\.0\.1|localhost):8080", "127.0.0.1:%d" % server_of().port, script)
        done = subprocess.run(["sh", "-e", "-c", script_here], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() and '"error"' not in done.stdout, done.stdout
    test.__name__ = place
    return test


def main():
    running = []

    def server():
        if not running:
            running.append(hs.serve("curl_examples").wait_ready())
        return running[0]

    tests = [example_test(place, script, server) for place, script in examples()]
    assert tests, "no example was found"
    try:
        hs.run(tests)
    finally:
        for s in running:
            s.stop()


if __name__ == "__main__":
    main()
