"""Messages to text in Qwen's format, in pieces that say which of it the assistant wrote.

Equal to what Qwen's chat template renders (thinking off): the `<think>` block stands in assistant turns after the last
user message (in all of them with `preserve_thinking`), since that is what a server's prompt holds. Only what the model
has to produce is a target: the text or calls of assistant turns and their <|im_end|>, not the empty think block, which
the server's prompt already has.
"""
import json

TOOLS_HEAD = "# Tools\n\nYou have access to the following functions:\n\n<tools>"
TOOLS_TAIL = """\n</tools>\n
If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within """ \
    """<tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell """ \
    """the user about function calls
</IMPORTANT>"""
NO_THINKING = "<think>\n\n</think>\n\n"


def to_json(value):
    return json.dumps(value, ensure_ascii=False)


def call_text(function):
    out = "<tool_call>\n<function=%s>\n" % function["name"]
    for name, value in function["arguments"].items():
        out += "<parameter=%s>\n%s\n</parameter>\n" % (name, value if isinstance(value, str) else to_json(value))
    return out + "</function>\n</tool_call>"


def assistant_text(message):
    """What the model produces for an assistant message, without the end token."""
    content = message.get("content", "").strip()
    calls = "\n".join(call_text(c["function"]) for c in message.get("tool_calls", ()))
    return content + "\n\n" + calls if content and calls else content + calls


def pieces(messages, tools=(), preserve_thinking=False):
    """[(text, is_target)]; joined it is the rendered conversation."""
    out = []
    system = messages[0]["content"].strip() if messages[0]["role"] == "system" else None
    if tools:
        text = "<|im_start|>system\n" + TOOLS_HEAD + "".join("\n" + to_json(t) for t in tools) + TOOLS_TAIL
        out.append((text + ("\n\n" + system if system else "") + "<|im_end|>\n", False))
    elif system is not None:
        out.append(("<|im_start|>system\n%s<|im_end|>\n" % system, False))
    last_user = max(i for i, m in enumerate(messages) if m["role"] == "user")
    for i, message in enumerate(messages):
        role, content = message["role"], message.get("content", "").strip()
        if role == "user":
            out.append(("<|im_start|>user\n%s<|im_end|>\n" % content, False))
        elif role == "tool":
            first = messages[i - 1]["role"] != "tool"
            last = i + 1 == len(messages) or messages[i + 1]["role"] != "tool"
            out.append((("<|im_start|>user" if first else "") + "\n<tool_response>\n%s\n</tool_response>" % content
                        + ("<|im_end|>\n" if last else ""), False))
        elif role == "assistant":
            out.append(("<|im_start|>assistant\n" + (NO_THINKING if preserve_thinking or i > last_user else ""), False))
            out.append((assistant_text(message) + "<|im_end|>", True))
            out.append(("\n", False))
    return out


def render(messages, tools=(), preserve_thinking=False, add_generation_prompt=False):
    text = "".join(t for t, _ in pieces(messages, tools, preserve_thinking))
    return text + "<|im_start|>assistant\n" + NO_THINKING if add_generation_prompt else text
