#!/usr/bin/env python3
"""What a hostile or unlucky user does to the process: answers that must not depend on the cache, clients that vanish,
closed and full standard files, options that cannot work."""
import json
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import hearth_server as hs

WORDS = "alpha beta gamma delta river stone cloud engine lamp paper copper window silent robot north seven".split()


def user(text):
    return [{"role": "user", "content": text}]


def ask(server, messages, **fields):
    """(what was said, usage) of a whole answer."""
    body = {"messages": messages, "temperature": 0, "max_tokens": 8, "ignore_eos": True, **fields}
    status, _, text = hs.request(server.url + "/v1/chat/completions", body)
    answer = json.loads(text)
    assert status == 200, answer
    message, usage = answer["choices"][0]["message"], answer["usage"]
    said = [message.get(field) or "" for field in ("reasoning_content", "content")]
    return said, usage


def cached(usage):
    return usage["prompt_tokens_details"]["cached_tokens"]


def gauge(server, name):
    for line in hs.request(server.url + "/metrics")[2].decode().splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError("no metric " + name)


def send(server, body):
    text = json.dumps(body).encode()
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
    return s


def vanish(s, how):
    if how == "reset":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "half":
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.02)
    s.close()


def cached_is_cold_around_every_edge():
    """The cold answer is another process's; prompts begin differently, so nothing of them can be stored there."""
    rng = random.Random(5)
    with hs.serve("attack_cold").wait_ready() as cold, hs.serve("attack_warm", "--parallel", "4").wait_ready() as warm:
        frame = ask(cold, user("x"))[1]["prompt_tokens"] - 1
        for length in [edge + d for edge in (64, 128, 256) for d in range(-2, 13)]:
            text = "%03d" % length + "".join(rng.choice("abcdefghij ") for _ in range(length - frame - 3))
            expected, usage = ask(cold, user(text))
            assert cached(usage) <= frame, usage
            longer = text + " and"
            for prompt in (text, text, longer, text):
                said, usage = ask(warm, user(prompt))
                if prompt == text:
                    assert said == expected, (length, said, expected)
            assert usage["prompt_tokens"] - cached(usage) <= 2, (length, usage)


def growing_chats_side_by_side():
    """One more agent than slots, in turn; every answer as from a process that has seen nothing else of it."""
    rng = random.Random(6)
    agents = [[{"role": "system", "content": "agent %d " % i + " ".join(rng.choices(WORDS, k=30))}] for i in range(3)]
    with hs.serve("attack_turns", "--parallel", "2").wait_ready() as warm:
        for turn in range(4):
            for agent in agents:
                agent += user(" ".join(rng.choices(WORDS, k=rng.choice((2, 15)))))
                said, usage = ask(warm, agent)
                agent.append({"role": "assistant", "content": said[1], "reasoning_content": said[0]})
                assert turn == 0 or usage["prompt_tokens"] - cached(usage) < 160, usage
    for agent in agents:
        with hs.serve("attack_turns_cold").wait_ready() as cold:
            said, _ = ask(cold, agent[:-1])
            assert said == [agent[-1]["reasoning_content"], agent[-1]["content"]], agent


def seeds_alone_and_among_neighbours():
    prompts = ["%d " % i + " ".join(random.Random(i).choices(WORDS, k=5 * i + 1)) for i in range(8)]

    def sampled(server, i):
        return ask(server, user(prompts[i]), temperature=1, seed=i - 3, max_tokens=16)[0]

    with hs.serve("attack_seeds", "--parallel", "4").wait_ready() as server:
        alone = [sampled(server, i) for i in range(8)]
        together = [None] * 8

        def run(i):
            together[i] = sampled(server, i)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert together == alone


def process_state(server):
    """(open files, threads, resident KiB, CPU seconds) of the server."""
    base = "/proc/%d/" % server.process.pid
    with open(base + "status", encoding="utf-8") as f:
        fields = dict(line.split(":", 1) for line in f)
    with open(base + "stat", encoding="utf-8") as f:
        ticks = f.read().rsplit(")", 1)[1].split()
    cpu_s = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    return len(os.listdir(base + "fd")), int(fields["Threads"]), int(fields["VmRSS"].split()[0]), cpu_s


def clients_that_vanish_leave_nothing():
    rng = random.Random(7)
    # What they had computed stays in the cache, by design: here the first burst fills it.
    with hs.serve("attack_vanish", "--parallel", "2", "--context", "8192", "--cache-bytes", "28M").wait_ready() as server:

        def burst(count):
            for i in range(count):
                text = " ".join(rng.choices(WORDS, k=rng.choice((2, 50, 800))))
                s = send(server, {"messages": user(text), "max_tokens": 2000, "ignore_eos": True, "stream": i % 2 == 0})
                time.sleep(rng.choice((0, 0.005, 0.02)))
                vanish(s, ("reset", "close", "half")[i % 3])
            left = time.monotonic()
            server.wait_for(lambda: gauge(server, "hearth_chat_requests_in_flight") == 0, "end of the work", 10)
            assert time.monotonic() - left < 1, "work went on for nobody"
            server.wait_for(lambda: gauge(server, "hearth_http_connections") == 1, "end of the connections", 10)

        steady = ask(server, user("steady"))[0]
        burst(160)
        files, threads, resident, _ = process_state(server)
        burst(120)
        now = process_state(server)
        assert now[0] <= files and now[1] == threads, (files, threads, now)
        assert "san" in hs.HEARTH or now[2] - resident < 4096, "%d KiB more after 120 vanished clients" % (now[2] - resident)
        assert ask(server, user("steady"))[0] == steady
        time.sleep(0.5)
        before = process_state(server)[3]
        time.sleep(1)
        assert process_state(server)[3] - before < 0.1, "the idle server is not idle"


def a_half_sent_request_does_not_hold_up_the_end():
    with hs.serve("attack_half").wait_ready() as server:
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
        time.sleep(0.1)
        began = time.monotonic()
        assert server.stop(signal.SIGTERM) == 0, server.log()
        assert time.monotonic() - began < 3
        assert b" 503 " in s.recv(4096)
        s.close()


def shell(line):
    done = subprocess.run(["sh", "-c", line, "sh", hs.HEARTH, hs.model_dir()], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def output_that_is_lost_is_a_failure():
    if not os.path.exists("/dev/full"):
        raise hs.Skip("no /dev/full here")
    for line in ('"$1" --help', '"$1" inspect "$2"', 'echo hello | "$1" dump tokens "$2"',
                 'echo hello | "$1" chat "$2" --max-tokens 500', '"$1" chat "$2" --prompt hi'):
        for target in ("/dev/full", "&-"):
            status, _, message = shell(line + " >" + target)
            assert status == 1 and "hearth: " in message, (line, target, status, message)
    assert shell('"$1" inspect "$2" | true')[0] == 0


def closed_standard_files_do_not_become_others():
    """Without stderr the log must not go to whatever file or client got descriptor 2."""
    port_path = os.path.join(hs.BUILD, "logs", "attack.closed.port")
    if os.path.exists(port_path):
        os.unlink(port_path)
    process = subprocess.Popen(["sh", "-c", 'exec "$1" serve "$2" --port 0 --port-file "$3" <&- >&- 2>&-', "sh",
                                hs.HEARTH, hs.model_dir(), port_path])
    try:
        for _ in range(500):
            if os.path.exists(port_path):
                break
            time.sleep(0.02)
        standard = [os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in range(3)]
        assert standard == ["/dev/null"] * 3, standard
    finally:
        process.terminate()
        assert process.wait(30) == 0


def hopeless_options_are_told_at_once():
    status, _, message = shell('"$1" serve "$2" --port 0 --parallel 65')
    assert status == 2 and "1 to 64" in message, message
    status, _, message = shell('"$1" serve "$2" --port 0 --context 16777216')
    assert status == 1 and "16777216" in message and "100 %" not in message, message
    status, _, message = shell('"$1" bench perf --base-url http://127.0.0.1:1 --trace %s '
                               "--report-dir /proc/nowhere/report" % os.path.join(hs.ROOT, "demo", "agent_trace.jsonl"))
    assert status == 1 and "/proc/nowhere" in message and "127.0.0.1" not in message, message


if __name__ == "__main__":
    hs.run([cached_is_cold_around_every_edge, growing_chats_side_by_side, seeds_alone_and_among_neighbours,
            clients_that_vanish_leave_nothing, a_half_sent_request_does_not_hold_up_the_end,
            output_that_is_lost_is_a_failure, closed_standard_files_do_not_become_others,
            hopeless_options_are_told_at_once])
