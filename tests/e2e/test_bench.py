#!/usr/bin/env python3
"""hearth bench perf against a scripted server: what is sent, what every kind of answer is taken for, IoU, report files.

The server speaks raw sockets, so that it can misbehave: the id of a conversation names what it does on the second of
three turns. IoU is compared, turn by turn, with a second implementation of its rules written with regular expressions.
"""
import collections
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HEARTH = os.path.join(ROOT, os.environ.get("HEARTH", "build/hearth"))
SHARED = os.environ.get("HEARTH_SHARED") or os.path.join(ROOT, "../shared")
MLPERF = os.path.join(SHARED, "mlperf/agentic_coding_2.5h.jsonl")
OWN = os.path.join(ROOT, "demo/agent_trace.jsonl")
SLOW_S = 0.3
skipped = 0


def event(delta, finish=None, **more):
    return dict({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}, **more)


def call(index, arguments, name=None, **more):
    function = {"arguments": arguments}
    if name:
        function["name"] = name
        more.update(id="call_%d" % index, type="function")
    return {"tool_calls": [dict(more, index=index, function=function)]}


def usage(prompt, cached, completion):
    return {"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion,
                                     "prompt_tokens_details": {"cached_tokens": cached}}}


ROLE = event({"role": "assistant", "content": ""})
COMMAND = json.dumps({"command": "ls /data; grep -n 'caf\u00e9 | x' notes"}, ensure_ascii=False)
NORMAL = [ROLE, event(call(0, "", "bash")), event(call(0, COMMAND)), event({}, "tool_calls"), usage(100, 60, 9), "[DONE]"]
PIECES = [ROLE, event({"reasoning_content": "hm"}), event(call(0, "", "bash"))] + \
         [event(call(0, c)) for c in COMMAND] + [event({}, "tool_calls"), usage(100, 60, 9), "[DONE]"]
PARALLEL = [event(call(0, "", "bash")), event(call(1, "", "bash")), event(call(1, '{"command": "grep a')),
            event(call(0, '{"command": ')), event(call(0, '"ls"}')), event(call(1, ' b"}')), event({}, "tool_calls"),
            usage(100, 60, 9), "[DONE]"]
TEXT = [ROLE, event({"content": "one "}), event({"content": "two"}), event({}, "stop"), usage(100, 60, 2), "[DONE]"]


class Server:
    """Answers like an OpenAI server; `answer(conversation, turn, body)` returns the events or a name of misconduct."""

    def __init__(self, answer, tls=None):
        self.answer = answer
        self.tls = tls
        self.requests = []  # (request line, header lines, body bytes)
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = ("https" if tls else "http") + "://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        if self.tls:
            try:
                connection = self.tls.wrap_socket(connection, server_side=True)
            except OSError:
                return
        with connection, connection.makefile("rb") as stream:
            try:
                while self.serve_one(connection, stream):
                    pass
            except (OSError, ValueError):
                pass

    def serve_one(self, connection, stream):
        line = stream.readline().decode().rstrip("\r\n")
        if not line:
            return False
        headers = []
        while True:
            header = stream.readline().decode().rstrip("\r\n")
            if not header:
                break
            headers.append(header)
        fields = dict(h.split(": ", 1) for h in headers)
        body = stream.read(int(fields.get("Content-Length", 0)))
        self.requests.append((line, headers, body))
        if line.startswith("GET /v1/models "):
            return self.plain(connection, "200 OK", '{"data": [{"id": "first"}, {"id": "second"}]}')
        request = json.loads(body)
        turn = sum(m["role"] == "assistant" for m in request["messages"])
        answer = self.answer(fields.get("X-Session-ID"), turn, request)
        return self.send(connection, answer)

    def plain(self, connection, status, text, kind="application/json"):
        data = text.encode()
        connection.sendall(("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" %
                            (status, kind, len(data))).encode() + data)
        return True

    def begin(self, connection, extra="Transfer-Encoding: chunked"):
        connection.sendall(("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n\r\n" % extra).encode())

    def chunks(self, connection, events, newline="\n", space=" ", size=None):
        for e in events:
            data = e if isinstance(e, str) else json.dumps(e, ensure_ascii=False)
            data = ("data:" + space + data + newline * 2).encode()
            for at in range(0, len(data), size or len(data)):
                piece = data[at:at + (size or len(data))]
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))

    def send(self, connection, answer):
        if answer == "closed":
            return False
        if answer == "status-500":
            return self.plain(connection, "500 Internal Server Error", '{"error": {"message": "no\\nmemory"}}')
        if answer == "status-429":
            return self.plain(connection, "429 Too Many Requests", "<html>slow down", "text/html")
        if answer == "not-a-stream":
            return self.plain(connection, "200 OK", '{"choices": [{"message": {"content": "x"}}]}')
        if answer == "hang":
            self.begin(connection)
            self.chunks(connection, [ROLE])
            time.sleep(3)
            return False
        if answer == "until-close":
            self.begin(connection, "Connection: close")
            for e in NORMAL:
                connection.sendall(("data: %s\n\n" % (e if isinstance(e, str) else json.dumps(e))).encode())
            return False
        if answer == "slow":
            time.sleep(SLOW_S)
            answer = NORMAL
        self.begin(connection)
        if answer == "cut":
            self.chunks(connection, PIECES[:10])
            return False
        if answer == "crlf":
            self.chunks(connection, NORMAL, newline="\r\n", space="")
        elif answer == "bytes":
            connection.sendall(b"1b\r\n: comment\n\nevent: message\n\r\n")
            self.chunks(connection, PIECES, size=1)
        else:
            self.chunks(connection, answer)
        connection.sendall(b"0\r\n\r\n")
        return True


# What the second turn of a conversation brings: (answer, state, score of that turn, part of the reason)
CASES = {
    "normal": (NORMAL, "answered", 1, ""),
    "pieces": (PIECES, "answered", 1, ""),
    "bytes": ("bytes", "answered", 1, ""),
    "parallel": (PARALLEL, "answered", 1, ""),
    "crlf": ("crlf", "answered", 1, ""),
    "until-close": ("until-close", "answered", 1, ""),
    "slow": ("slow", "answered", 1, ""),
    "text": (TEXT, "answered", 0, ""),
    "cut": ("cut", "unfinished", 0, "cut: "),
    "error-inside": ([ROLE, {"error": {"message": "device lost", "code": 500}}, "[DONE]"], "unfinished", 0, "device lost"),
    "no-finish": ([ROLE, event(call(0, COMMAND, "bash")), "[DONE]"], "unfinished", 1, "without a finish_reason"),
    "not-json": ([ROLE, "{oops", event({}, "stop"), "[DONE]"], "unfinished", 0, "not JSON"),
    "not-a-stream": ("not-a-stream", "unfinished", 0, "no events"),
    "empty": ([], "unfinished", 0, "no events"),
    "arguments-object": ([event({"tool_calls": [{"index": 0, "function": {"name": "bash", "arguments": {"command": "ls"}}}]}),
                          event({}, "tool_calls"), "[DONE]"], "failed", 0, "cannot be merged"),
    "status-500": ("status-500", "failed", 0, "status 500: no memory"),
    "status-429": ("status-429", "failed", 0, "status 429: <html>slow down"),
    "closed": ("closed", "failed", 0, ""),
}


def rows(conversation, turns=3):
    command = json.dumps({"command": "ls -l && grep x y"})
    out = [{"conversation_id": conversation, "turn": 1, "role": "user", "system": "s", "content": "do \u00e9",
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object", "n": 1.5}}}]}]
    for i in range(turns):
        out.append({"conversation_id": conversation, "turn": 2 * i + 2, "role": "assistant", "reasoning_content": "r%d" % i,
                    "tool_calls": [{"id": "c%d" % i, "type": "function",
                                    "function": {"name": "bash", "arguments": command}}]})
        out.append({"conversation_id": conversation, "turn": 2 * i + 3, "role": "tool",
                    "tool_results": [{"tool_call_id": "c%d" % i, "content": "out%d" % i}]})
    return out[:-1]


# The rules of IoU once more, the way they are usually written: with regular expressions.
SELF = ("pip pytest pylint cython make conda cat head tail wc diff grep sed awk tr sort uniq cut find ls xargs cp mv rm mkdir "
        "touch tee source which alias unset export git curl true false timeout date apt yum python").split()
TABLE = dict({w: w for w in SELF}, python2="python", python3="python", py="python", pip3="pip", less="cat", more="cat",
             egrep="grep", fgrep="grep", rg="grep", ag="grep", gawk="awk", locate="find", wget="curl",
             **{"sphinx-build": "sphinx", "sphinx-quickstart": "sphinx", ".": "source", "apt-get": "apt"})
QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|`[^`]*`""", re.S)
LEADING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def actions_of(calls):
    found = []
    for c in calls or []:
        if c["function"].get("name") != "bash":
            continue
        try:
            arguments = json.loads(c["function"].get("arguments", ""))
        except ValueError:
            continue
        command = isinstance(arguments, dict) and (arguments.get("command") or arguments.get("cmd"))
        if not isinstance(command, str):
            continue
        for piece in re.split(r"\|\||\||&&|;|\n", QUOTED.sub(" ", command)):
            words = piece.split()
            while words and (LEADING.match(words[0]) or
                             words[0] in ("env", "time", "nice", "sudo", "exec", "command")):
                words.pop(0)
            if words:
                word = re.sub(r"\.[0-9]+(\.[0-9]+)?$", "", words[0].split("/")[-1].lower())
                if word in TABLE:
                    found.append(TABLE[word])
    return found


def iou(a, b):
    a, b = collections.Counter(a), collections.Counter(b)
    return sum((a & b).values()) / sum((a | b).values()) if a or b else 0.0


class Bench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self, conversations):
        path = self.path("trace.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            for c in conversations:
                f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows(c))
        return path

    def server(self, answer, tls=None):
        server = Server(answer, tls)
        self.addCleanup(server.close)
        return server

    def scripted(self):
        return self.server(lambda c, turn, _: CASES[c][0] if turn == 1 else NORMAL)

    def bench(self, server, trace, *options, url=None, **variables):
        command = [HEARTH, "bench", "perf", "--base-url", url or server.url, "--trace", trace, "--report-dir",
                   self.path("report"), "--svg", self.path("turns.svg"), *options]
        environment = dict(os.environ, http_proxy="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9", **variables)
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)

    def report(self, name):
        with open(self.path("report/" + name), encoding="utf-8") as f:
            return json.load(f) if name.endswith("json") else f.read()

    def test_requests(self):
        """Headers, members and their order, and the recorded history, whatever the server answers."""
        server = self.scripted()
        key = self.path("key")
        with open(key, "w") as f:
            f.write("\nsecret\n")
        done = self.bench(server, self.trace(["normal", "text"]), "--official", "--model", "m", "--api-key-file", key,
                          url=server.url + "/v1/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(server.requests), 6)
        self.assertEqual(server.connections, 1, "one connection, kept alive")
        line, headers, body = server.requests[1]
        self.assertEqual(line, "POST /v1/chat/completions HTTP/1.1")
        self.assertEqual(sorted(headers), sorted([
            "Host: " + server.url[7:], "Content-Type: application/json", "Accept: text/event-stream",
            "Content-Length: %d" % len(body), "X-Session-ID: normal", "Authorization: Bearer secret"]))
        request = json.loads(body)
        self.assertEqual(list(request), ["model", "messages", "temperature", "max_completion_tokens", "stream", "seed",
                                         "tools"])
        self.assertEqual(body.count(b'"temperature":0.0,"max_completion_tokens":1024,"stream":true,"seed":42,'), 1)
        self.assertIn(b'"n":1.5', body, "tools as recorded")
        recorded = rows("normal")
        self.assertEqual(request["messages"], [
            {"role": "system", "content": "s"}, {"role": "user", "content": "do \u00e9"},
            {"role": "assistant", "tool_calls": recorded[1]["tool_calls"], "reasoning_content": "r0"},
            {"role": "tool", "content": "out0", "tool_call_id": "c0"}])
        self.assertEqual([list(m) for m in request["messages"][2:]],
                         [["role", "tool_calls", "reasoning_content"], ["role", "content", "tool_call_id"]])

    def test_options(self):
        server = self.scripted()
        done = self.bench(server, self.trace(["normal", "text"]), "--turns", "2", "--conversations", "1",
                          "--max-tokens", "7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(server.requests[0][0], "GET /v1/models HTTP/1.1")
        self.assertEqual(len(server.requests), 3)
        request = json.loads(server.requests[2][2])
        self.assertEqual(request["model"], "first")
        self.assertEqual(request["max_completion_tokens"], 7)
        self.assertEqual(request["stream_options"], {"include_usage": True})
        self.assertIn("2 of 2 answered, 0 missing, 0 unfinished", done.stdout)
        self.assertIn("60.0 % of them cached", done.stdout)

    def test_classification(self):
        """Every kind of answer is what it is, and only a failed turn ends its conversation."""
        server = self.scripted()
        done = self.bench(server, self.trace(CASES), "--model", "m")
        self.assertEqual(done.returncode, 1)
        scores = self.report("scores.json")
        by_turn = {(t["conversation_id"], t["turn"]): t for t in scores["per_turn"]}
        ends = {}
        for line in self.report("events.jsonl").splitlines():
            e = json.loads(line)
            if e["event_type"] in ("complete", "error"):
                ends[e["conversation_id"], e["turn"]] = e
        for name, (_, state, score, reason) in CASES.items():
            with self.subTest(name):
                end, turn = ends[name, 4], by_turn[name, 4]
                self.assertEqual(end.get("state", "answered"), state)
                self.assertIn(reason, end.get("reason", ""))
                self.assertEqual(turn["score"], score)
                self.assertEqual(turn.get("missing", False), state == "failed")
                self.assertEqual((name, 6) in ends, state != "failed", "the last turn is asked unless one failed")
                self.assertEqual(by_turn[name, 6].get("missing", False), state == "failed")
                self.assertNotIn("missing", by_turn[name, 2])
        states = collections.Counter(c[1] for c in CASES.values())
        total, lost = 3 * len(CASES), 2 * states["failed"]
        self.assertEqual(scores["turns"], {"issued": total, "expected": total, "observed": total - lost, "missing": lost,
                                           "scored": total, "unfinished": states["unfinished"]})
        summary = self.report("performance/result_summary.json")
        answered = total - lost - states["unfinished"]
        self.assertEqual(summary["n_samples_completed"], answered)
        self.assertEqual(summary["n_samples_failed"], total - answered)
        self.assertEqual(summary["n_samples_unfinished"], states["unfinished"])
        self.assertGreaterEqual(summary["ttft"]["max"], SLOW_S * 1e9)
        self.assertLess(summary["ttft"]["median"], SLOW_S * 1e9)
        self.assertGreater(summary["latency"]["min"], 0, "no turn of 0 ms stands for a missing one")
        self.assertEqual(summary["finish_reason_counts"], {"tool_calls": answered - 1, "stop": 1})
        counted = "%d of %d answered, %d missing, %d unfinished" % (answered, total, lost, states["unfinished"])
        self.assertIn(counted, done.stdout)
        self.assertIn(counted, self.report("report.txt"))
        self.assertIn("status 500: no memory", done.stderr)
        xml.etree.ElementTree.parse(self.path("turns.svg"))
        self.assertIn("max_completion_tokens: 1024", self.report("config.yaml"))

    def test_timeout(self):
        server = self.server(lambda c, turn, _: "hang" if turn == 1 else NORMAL)
        done = self.bench(server, self.trace(["x"]), "--model", "m", "--timeout", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no whole answer within 1 s", done.stdout)
        self.assertIn("1 of 3 answered, 2 missing, 0 unfinished", done.stdout)

    def test_interrupt(self):
        """Ctrl-C ends the run, and what was measured is still reported."""
        server = self.server(lambda c, turn, _: "hang" if turn == 1 else NORMAL)
        bench = subprocess.Popen([HEARTH, "bench", "perf", "--base-url", server.url, "--trace", self.trace(["x"]),
                                  "--model", "m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while len(server.requests) < 2:
            time.sleep(0.02)
        time.sleep(0.2)
        bench.send_signal(2)
        out, _ = bench.communicate(timeout=30)
        self.assertEqual(bench.returncode, 1)
        self.assertIn("1 of 3 answered", out)
        self.assertIn("stopped before the end", out)

    def test_refused(self):
        trace = self.trace(["normal"])
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = "http://127.0.0.1:%d" % listener.getsockname()[1]  # nobody listens there any more
        for arguments, status, message in [
                (["--base-url", "http://x"], 2, "--trace FILE is missing"),
                (["--trace", trace], 2, "--base-url URL is missing"),
                (["--trace", trace, "--dry-run"], 2, "--dry-run needs --tokenizer"),
                (["--trace", trace, "--base-url", "http://x", "--official"], 2, "--official needs --model"),
                (["--trace", self.path("none"), "--base-url", "http://x"], 1, "none: "),
                (["--trace", trace, "--base-url", url], 1, "/v1/models: "),
                (["--trace", trace, "--base-url", "http://x", "--tokenizer", self.folder], 1, "tokenizer.json"),
        ]:
            done = subprocess.run([HEARTH, "bench", "perf", *arguments], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(message, done.stderr)
        done = self.bench(None, trace, "--model", "m", url=url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 of 3 answered, 3 missing, 0 unfinished", done.stdout)

    def test_https(self):
        global skipped
        if not shutil.which("openssl"):
            skipped += 1
            self.skipTest("no openssl to make a certificate with")
        pem = self.path("server.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("key.pem"), "-out",
                        pem, "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem, self.path("key.pem"))
        server = self.server(lambda *_: NORMAL, tls)
        trace = self.trace(["normal"])
        done = self.bench(server, trace, "--model", "m", SSL_CERT_FILE=pem)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(server.connections, 1)
        done = self.bench(server, trace, "--model", "m")
        self.assertEqual(done.returncode, 1)
        self.assertIn("certificate", done.stderr)

    def test_without_libcurl(self):
        for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
            with open(self.path(name), "w") as f:
                f.write("no library")
        done = self.bench(None, self.trace(["normal"]), url="http://127.0.0.1:9", LD_LIBRARY_PATH=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install libcurl4", done.stderr)

    def shifted(self, path, *options):
        """Replays a trace against a server that answers every turn with the recorded answer of the next one."""
        recorded, calls = [], collections.defaultdict(list)
        with open(path, encoding="utf-8") as f:
            for row in map(json.loads, f):
                if row["role"] == "assistant":
                    recorded.append((row["conversation_id"], row["turn"], row.get("tool_calls")))
                    calls[row["conversation_id"]].append(row)

        def answer(conversation, turn, _):
            row = calls[conversation][(turn + 1) % len(calls[conversation])]
            out = [event({"reasoning_content": row["reasoning_content"]})] if row.get("reasoning_content") else []
            for i, c in enumerate(row.get("tool_calls", [])):
                out += [event(call(i, "", c["function"]["name"])), event(call(i, c["function"]["arguments"]))]
            return out + [event({}, "tool_calls"), "[DONE]"]

        done = self.bench(self.server(answer), path, "--model", "m", "--official", *options)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        scores = self.report("scores.json")
        expected = {}
        for conversation, turn, own in recorded:
            others = calls[conversation]
            theirs = others[(turn // 2) % len(others)].get("tool_calls")
            if actions_of(own):
                expected[conversation, turn] = (actions_of(own), actions_of(theirs), iou(actions_of(own), actions_of(theirs)))
        got = {(t["conversation_id"], t["turn"]): (t["gt_actions"], t["model_actions"], t["score"])
               for t in scores["per_turn"]}
        self.assertEqual(got, expected)
        self.assertEqual(scores["score"], round(sum(e[2] for e in expected.values()) / len(expected), 4))
        self.assertEqual(len(expected) + len(scores["excluded_turns"]), len(recorded))
        return scores, done.stdout

    def test_iou_own_trace(self):
        self.shifted(OWN)

    def test_iou_mlperf(self):
        global skipped
        if not os.path.exists(MLPERF):
            skipped += 1
            self.skipTest("reference data is not here")
        tokenizer = self.path("qwen")
        subprocess.run(["sh", os.path.join(ROOT, "demo/qwen_tokenizer.sh"), SHARED, tokenizer], check=True)
        scores, _ = self.shifted(MLPERF, "--tokenizer", tokenizer)
        self.assertEqual(scores["turns"], {"issued": 1007, "expected": 1006, "observed": 1006, "missing": 0,
                                           "scored": 1006, "unfinished": 0})
        self.assertEqual([(t["conversation_id"], t["turn"]) for t in scores["excluded_turns"]],
                         [("astropy__astropy-12907", 18)])
        summary = self.report("performance/result_summary.json")
        self.assertEqual(summary["input_sequence_lengths"]["total"], 13560633)
        self.assertEqual(summary["input_sequence_lengths"]["max"], 28149)
        self.assertEqual(summary["tokens_counted_by"], "client")

    def test_dry_run(self):
        global skipped
        if not os.path.exists(MLPERF):
            skipped += 1
            self.skipTest("reference data is not here")
        tokenizer = self.path("qwen")
        subprocess.run(["sh", os.path.join(ROOT, "demo/qwen_tokenizer.sh"), SHARED, tokenizer], check=True)
        for options, lines in [(["--conversations", "1"], ["turns 58", "prompt tokens 799,264"]),
                               ([], ["turns 1,007", "prompt tokens 13,560,633", "longest prompt 28,149"])]:
            done = subprocess.run([HEARTH, "bench", "perf", "--dry-run", "--tokenizer", tokenizer, "--trace", MLPERF, *options],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = [" ".join(line.split()) for line in done.stdout.splitlines()]
            for line in lines:
                self.assertIn(line, said)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    bad = len(result.failures) + len(result.errors)
    print("%d passed, %d failed, %d skipped" % (result.testsRun - bad - skipped, bad, skipped))
    raise SystemExit(1 if bad else 0)
