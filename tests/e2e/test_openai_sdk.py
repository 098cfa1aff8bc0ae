#!/usr/bin/env python3
"""The official openai package against the server: whole and streamed answers, tools round trip, errors, models.

The package is installed into build/venv on the first run; offline the tests are skipped with the reason. Answers with
chosen contents come from the scripted server of tests/unit/test_serve.c, others from a real model.
"""
import json
import os
import subprocess
import sys

import hearth_server as hs

VENV = os.path.join(hs.BUILD, "venv")
PYTHON = os.path.join(VENV, "bin", "python")
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]


def enter_venv():
    """Runs this script again with the package's interpreter; says why when that cannot be had."""
    def works():
        return os.path.exists(PYTHON) and subprocess.run(
            [PYTHON, "-c", "import openai"], capture_output=True, check=False).returncode == 0

    if not works():
        made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True, check=False)
        if made.returncode:
            return "python venv: " + (made.stdout + made.stderr).strip().split("\n")[-1]
        got = subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1",
                              "--timeout", "20", "openai"], capture_output=True, text=True, check=False)
        if not works():
            return "the openai package cannot be installed: " + got.stderr.strip().split("\n")[-1][:200]
    os.execv(PYTHON, [PYTHON, os.path.abspath(__file__), "--in-venv"])
    return None


def client_of(server, **options):
    import openai
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0, timeout=60, **options)


def user(text):
    return [{"role": "user", "content": text}]


def expect(error_class, call):
    try:
        call()
    except error_class as e:
        return e
    raise AssertionError("no %s was raised" % error_class.__name__)


class Scripted:
    server = None


class Real:
    server = None


def whole():
    answer = client_of(Scripted.server).chat.completions.create(
        model="fake", messages=user("think hm\nsay Hello"), temperature=0, seed=1, max_completion_tokens=50, stop=["\n\n"])
    choice = answer.choices[0]
    assert answer.id.startswith("chatcmpl-") and answer.object == "chat.completion" and answer.model == "fake"
    assert choice.message.role == "assistant" and choice.message.content == "Hello" and choice.finish_reason == "stop"
    assert choice.message.reasoning_content == "hm" and choice.message.tool_calls is None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.prompt_tokens_details.cached_tokens == 5
    assert answer.usage.completion_tokens_details.reasoning_tokens == 1
    assert answer.system_fingerprint.startswith("hearth-")


def streamed():
    chunks = list(client_of(Scripted.server).chat.completions.create(
        model="fake", messages=user("say Hel\nsay lo"), stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello"
    assert chunks[-2].choices[0].finish_reason == "stop" and chunks[-2].usage is None
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 2
    assert len({c.id for c in chunks}) == 1


def stream_helper():
    script = 'say Look:\ncall get_weather\nargs {"city":\nargs "Oslo"}\nend\nfinish tool_calls'
    with client_of(Scripted.server).chat.completions.stream(
            model="fake", messages=user(script), tools=TOOLS) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and "tool_calls.function.arguments.delta" in kinds, kinds
    message = final.choices[0].message
    assert message.content == "Look:" and final.choices[0].finish_reason == "tool_calls"
    assert message.tool_calls[0].function.arguments == '{"city":"Oslo"}'


def tools_round_trip():
    client = client_of(Scripted.server)
    script = 'call get_weather\nargs {"city":"Oslo"}\nend\ncall get_weather\nargs {"city":"Rome"}\nend\nfinish tool_calls'
    answer = client.chat.completions.create(model="fake", messages=user(script), tools=TOOLS, tool_choice="auto")
    message = answer.choices[0].message
    assert message.content is None and answer.choices[0].finish_reason == "tool_calls"
    assert [json.loads(c.function.arguments)["city"] for c in message.tool_calls] == ["Oslo", "Rome"]
    assert len({c.id for c in message.tool_calls}) == 2
    history = user(script) + [message] + [
        {"role": "tool", "tool_call_id": c.id, "content": "say sunny"} for c in message.tool_calls]
    answer = client.chat.completions.create(model="fake", messages=history, tools=TOOLS)
    assert answer.choices[0].message.content == "sunny"


def streamed_tools():
    calls = {}
    script = 'call get_weather\nargs {"city":\nargs "Oslo"}\nend\ncall get_weather\nargs {}\nend\nfinish tool_calls'
    for chunk in client_of(Scripted.server).chat.completions.create(
            model="fake", messages=user(script), tools=TOOLS, stream=True):
        for part in chunk.choices[0].delta.tool_calls or []:
            call = calls.setdefault(part.index, {"id": None, "name": None, "arguments": ""})
            call["id"] = part.id or call["id"]
            call["name"] = part.function.name or call["name"]
            call["arguments"] += part.function.arguments or ""
    assert [(c["name"], c["arguments"]) for c in calls.values()] == [
        ("get_weather", '{"city":"Oslo"}'), ("get_weather", "{}")]
    assert calls[0]["id"] != calls[1]["id"]


def errors():
    import openai
    chat = client_of(Scripted.server).chat.completions
    e = expect(openai.NotFoundError, lambda: chat.create(model="other", messages=user("say x")))
    assert e.code == "model_not_found" and e.param == "model" and e.type == "invalid_request_error"
    e = expect(openai.BadRequestError, lambda: chat.create(model="fake", messages=user("say x"), n=2))
    assert e.code == "unsupported" and e.param == "n"
    e = expect(openai.BadRequestError, lambda: chat.create(
        model="fake", messages=user("error exceeded messages 40000 > 32768"), stream=True))
    assert e.code == "context_length_exceeded" and "40000" in e.message
    e = expect(openai.RateLimitError, lambda: chat.create(model="fake", messages=user("error busy - full")))
    assert e.response.headers["retry-after"] == "1"
    expect(openai.InternalServerError, lambda: chat.create(model="fake", messages=user("error internal - nan")))
    stream = chat.create(model="fake", messages=user("say x\nerror internal - broken"), stream=True)
    e = expect(openai.APIError, lambda: list(stream))
    assert "broken" in e.message


def models():
    client = client_of(Scripted.server)
    found = client.models.list().data
    assert [m.id for m in found] == ["fake"] and found[0].max_model_len == 1000
    assert client.models.retrieve("fake").owned_by == "hearth"


def asynchronous():
    import asyncio
    import openai

    async def many():
        client = openai.AsyncOpenAI(base_url=Scripted.server.url + "/v1", api_key="none", max_retries=0)

        async def one(i):
            stream = await client.chat.completions.create(
                model="fake", messages=user("say a%d\nsleep 20\nsay b" % i), stream=True)
            return "".join([c.choices[0].delta.content or "" async for c in stream])

        return await asyncio.gather(*[one(i) for i in range(8)])

    assert asyncio.run(many()) == ["a%db" % i for i in range(8)]


def a_real_model():
    client = client_of(Real.server)
    model = client.models.list().data[0].id
    extra = {"ignore_eos": True, "top_k": 20, "chat_template_kwargs": {"enable_thinking": False}}
    answer = client.chat.completions.create(model=model, messages=user("Hello"), temperature=0, max_tokens=12,
                                            extra_body=extra)
    assert answer.usage.completion_tokens == 12 and answer.choices[0].finish_reason == "length"
    chunks = list(client.chat.completions.create(model=model, messages=user("Hello"), temperature=0, max_tokens=12,
                                                 stream=True, tools=TOOLS, tool_choice="none", extra_body=extra))
    text = "".join(c.choices[0].delta.content or "" for c in chunks)
    assert text == answer.choices[0].message.content, (text, answer)


SCRIPTED = [whole, streamed, stream_helper, tools_round_trip, streamed_tools, errors, models, asynchronous]
REAL = [a_real_model]


def main():
    if "--in-venv" not in sys.argv:
        reason = enter_venv()
        print("skip: " + reason)
        print("0 passed, 0 failed, %d skipped" % len(SCRIPTED + REAL))
        return
    try:
        Scripted.server = hs.scripted("openai_sdk_scripted")
    except hs.Skip as e:
        print("skip: %s\n0 passed, 0 failed, %d skipped" % (e, len(SCRIPTED + REAL)))
        return
    try:
        Real.server = hs.serve("openai_sdk").wait_ready()
        hs.run(SCRIPTED + REAL)
    finally:
        for holder in (Scripted, Real):
            if holder.server:
                holder.server.stop()


if __name__ == "__main__":
    main()
