#!/usr/bin/env python3
"""`hearth serve` as a process over a real model: start, answers, keys, log, clients that leave, stop."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

import hearth_server as hs

MESSAGES = [{"role": "user", "content": "A-secret-word, please."}]


def chat(server, **fields):
    status, _, body = hs.request(server.url + "/v1/chat/completions", {"messages": MESSAGES, **fields})
    return status, json.loads(body)


def stream(server, **fields):
    """All chunks of a streamed answer, and whether it ended with [DONE]."""
    body = {"messages": MESSAGES, "stream": True, **fields}
    _, _, text = hs.request(server.url + "/v1/chat/completions", body)
    events = text.decode().split("\n\n")
    assert events[-1] == "", "the stream ends with an empty line"
    lines = [e[len("data: "):] for e in events[:-1] if not e.startswith(":")]
    return [json.loads(e) for e in lines if e != "[DONE]"], lines[-1] == "[DONE]"


def gauge(server, name):
    _, _, text = hs.request(server.url + "/metrics")
    for line in text.decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError("no metric " + name)


def answers():
    with hs.serve("serve_answers", "--model-name", "tiny", "--context", "2048").wait_ready() as server:
        status, _, body = hs.request(server.url + "/v1/models")
        models = json.loads(body)
        assert status == 200 and models["data"][0]["id"] == "tiny" and models["data"][0]["max_model_len"] == 2048
        status, whole = chat(server, max_tokens=24, temperature=0, model="tiny", ignore_eos=True)
        assert status == 200, whole
        assert whole["usage"]["completion_tokens"] == 24 and whole["choices"][0]["finish_reason"] == "length", whole
        assert whole["usage"]["prompt_tokens"] > 5
        chunks, done = stream(server, max_tokens=24, temperature=0, ignore_eos=True,
                              stream_options={"include_usage": True})
        assert done and chunks[-1]["choices"] == []
        usage = chunks[-1]["usage"]
        assert usage["completion_tokens"] == 24 and usage["prompt_tokens"] == whole["usage"]["prompt_tokens"]
        message = whole["choices"][0]["message"]
        for field in ("content", "reasoning_content"):
            text = "".join(c["choices"][0]["delta"].get(field) or "" for c in chunks[:-1])
            assert text == (message.get(field) or ""), (field, text, message)


def same_seed_same_text():
    with hs.serve("serve_seed").wait_ready() as server:
        texts = set()
        for _ in range(3):
            _, answer = chat(server, max_tokens=16, temperature=1, seed=7)
            texts.add(json.dumps(answer["choices"][0]["message"]))
        assert len(texts) == 1, texts


def errors():
    with hs.serve("serve_errors", "--context", "256").wait_ready() as server:
        for fields, code, param in (
                ({"messages": [{"role": "user", "content": "x " * 2000}]}, "context_length_exceeded", None),
                ({"max_tokens": 257}, "context_length_exceeded", "max_tokens"),
                ({"messages": [{"role": "user", "content": 5}]}, None, "messages"),
                ({"messages": [{"role": "clown", "content": "x"}]}, None, "messages"),
                ({"temperature": 9}, "invalid_value", "temperature"),
                ({"model": "nobody"}, "model_not_found", "model"),
                ({"frobnicate": 1}, "unknown_field", "frobnicate")):
            for streamed in (False, True):
                status, answer = chat(server, stream=streamed, **fields)
                assert status == (404 if code == "model_not_found" else 400), (fields, status, answer)
                error = answer["error"]
                assert code is None or error["code"] == code, error
                assert param is None or error["param"].startswith(param), error
        status, answer = chat(server, max_tokens=4)
        assert status == 200, answer


def clients_that_leave():
    def body(content, max_tokens, streamed):
        return json.dumps({"messages": [{"role": "user", "content": content}], "max_tokens": max_tokens,
                           "ignore_eos": True, "temperature": 0, "stream": streamed})

    with hs.serve("serve_leave", "--parallel", "1").wait_ready() as server:
        long_prompt = "word and " * 2000  # left while it is still being read
        for text in [body(*what, streamed) for what in (("Hello", 30000), (long_prompt, 10)) for streamed in (False, True)]:
            s = socket.create_connection(("127.0.0.1", server.port))
            s.sendall(("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" %
                       (len(text), text)).encode())
            server.wait_for(lambda: gauge(server, "hearth_requests_running") == 1, "running request", 10)
            s.close()
            left = time.monotonic()
            server.wait_for(lambda: gauge(server, "hearth_requests_running") == 0, "free place", 10)
            assert time.monotonic() - left < 1, "the place was freed late"
        status, answer = chat(server, max_tokens=2)
        assert status == 200, answer
        assert server.log().count("client_left") == 4, server.log()


def keys_and_log():
    key_path = os.path.join(hs.BUILD, "logs", "e2e.keys")
    with open(key_path, "w", encoding="utf-8") as f:
        f.write("\nkey-number-one\r\nkey-number-two\n\n")
    with hs.serve("serve_keys", "--api-key-file", key_path, "--api-key", "third").wait_ready() as server:
        url = server.url + "/v1/models"
        assert hs.request(url)[0] == 401
        for key in ("key-number-one", "key-number-two", "third"):
            assert hs.request(url, headers={"Authorization": "Bearer " + key})[0] == 200
        assert hs.request(url, headers={"Authorization": "Bearer key-number"})[0] == 401
        assert hs.request(server.url + "/health?token=key-number-one")[0] == 200
        headers = {"Authorization": "Bearer third"}
        status, _, _ = hs.request(server.url + "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 2}, headers)
        assert status == 200
        server.stop()
        log = server.log()
    for secret in ("key-number", "Bearer", "A-secret-word"):
        assert secret not in log, secret
    line = [l for l in log.splitlines() if "POST /v1/chat/completions 200 chatcmpl-" in l]
    assert len(line) == 1, log
    for word in ("prompt=", "cached=0", "common=0", "reuse=cold", "completion=2", "queue_ms=", "prefill_ms=", "decode_ms="):
        assert word in line[0], line


def stops_gently():
    with hs.serve("serve_stop").wait_ready() as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        body = {"messages": MESSAGES, "max_tokens": 200, "ignore_eos": True, "stream": True}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        first = answer.readline()
        server.process.send_signal(signal.SIGTERM)
        rest = answer.read()
        assert first.startswith(b"data: ") and rest.endswith(b"data: [DONE]\n\n"), rest[-200:]
        assert server.process.wait(30) == 0, server.log()  # a second signal would end it at once


def stops_while_loading_or_twice():
    server = hs.serve("serve_stop_early")
    assert server.stop(signal.SIGINT) == 0, server.log()
    with hs.serve("serve_stop_twice").wait_ready() as server:
        body = {"messages": MESSAGES, "max_tokens": 30000, "ignore_eos": True, "stream": True}
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        connection.getresponse().readline()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        began = time.monotonic()
        server.stop(signal.SIGTERM)
        assert time.monotonic() - began < 2
        connection.close()


def documentation():
    with open(os.path.join(hs.ROOT, "docs", "http-api.md"), encoding="utf-8") as f:
        page = f.read()
    with hs.serve("serve_docs").wait_ready() as server:
        chat(server, max_tokens=1)
        metrics = hs.request(server.url + "/metrics")[2].decode()
    shown = set(re.findall(r"^# TYPE (\S+) ", metrics, re.M))
    described = set(re.findall(r"`((?:hearth|process)_[a-z_]+)(?:\{[a-z,]+\})?`", page))
    assert shown == described, shown ^ described
    usage = subprocess.run([hs.HEARTH, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    flags = set(re.findall(r"^  (--[a-z-]+)", usage, re.M))
    named = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", page))
    assert named <= flags, named - flags


def wrong_usage():
    def status_of(*arguments):
        done = subprocess.run([hs.HEARTH, "serve", *arguments], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    status, message = status_of()
    assert status == 2 and "usage" in message, message
    status, message = status_of(hs.model_dir(), "--port", "70000")
    assert status == 2, message
    status, message = status_of("/no/such/model", "--port", "0")
    assert status == 1 and "/no/such/model" in message, message
    empty = os.path.join(hs.BUILD, "logs", "empty.keys")
    with open(empty, "w", encoding="utf-8") as f:
        f.write("\n\n")
    status, message = status_of(hs.model_dir(), "--port", "0", "--api-key-file", empty)
    assert status == 1 and "no key" in message, message
    status, message = status_of(hs.model_dir(), "--port", "0", "--host", "256.256.256.256")
    assert status == 1, message


if __name__ == "__main__":
    hs.run([answers, same_seed_same_text, errors, clients_that_leave, keys_and_log, stops_gently,
            stops_while_loading_or_twice, documentation, wrong_usage])
