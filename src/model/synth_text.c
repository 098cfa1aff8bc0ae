/* See synth_text.h. */
#include "model/synth_text.h"

#include "base/json.h"
#include "base/utf8.h"

/* Byte-level vocabularies write a byte as a printable character: itself where it is printable Latin-1, else U+0100 on,
 * in ascending order of the others. */
static uint32_t byte_symbol(int byte) {
    uint32_t shifted = 0x100;
    for (int b = 0; b < 256; b++) {
        bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == byte) return printable ? (uint32_t)b : shifted;
        if (!printable) shifted++;
    }
    return 0;
}

static const struct added {
    const char *text;
    bool special;
} added_tokens[] = {
    {"<|endoftext|>", true},     {"<|im_start|>", true},  {"<|im_end|>", true},
    {"<tool_call>", false},      {"</tool_call>", false}, {"<tool_response>", false},
    {"</tool_response>", false}, {"<think>", false},      {"</think>", false},
};

void synth_tokenizer_json(buffer *out) {
    buffer_text(out, "{\"version\": \"1.0\", \"added_tokens\": [");
    for (int i = 0; i < (int)(sizeof added_tokens / sizeof *added_tokens); i++)
        buffer_printf(out,
                      "%s\n{\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, "
                      "\"rstrip\": false, \"normalized\": false, \"special\": %s}",
                      i ? "," : "", 256 + i, added_tokens[i].text, added_tokens[i].special ? "true" : "false");
    buffer_text(out,
                "],\n\"normalizer\": {\"type\": \"NFC\"},\n\"pre_tokenizer\": {\"type\": \"ByteLevel\", "
                "\"add_prefix_space\": false, \"use_regex\": true},\n\"decoder\": {\"type\": \"ByteLevel\"},\n"
                "\"model\": {\"type\": \"BPE\", \"merges\": [], \"vocab\": {");
    for (int byte = 0; byte < 256; byte++) {
        char symbol[4];
        int length = utf8_encode(byte_symbol(byte), symbol);
        buffer_text(out, byte ? ", " : "");
        json_write_string(out, span_make(symbol, (size_t)length), JSON_COMPACT);
        buffer_printf(out, ": %d", byte);
    }
    buffer_text(out, "}}}\n");
}

const char synth_tokenizer_config[] =
    "{\"tokenizer_class\": \"Qwen2Tokenizer\", \"eos_token\": \"<|im_end|>\", \"pad_token\": \"<|endoftext|>\", "
    "\"bos_token\": null, \"unk_token\": null}\n";

/* Qwen's message form: <|im_start|>role, text, <|im_end|>; tools in the system message; calls as XML-like blocks; tool
 * results as user messages; the reasoning of the current task kept, that of earlier tasks dropped. */
const char synth_chat_template[] =
    "{%- macro text(content) -%}\n"
    "{%- if content is string -%}{{ content | trim }}{%- endif -%}\n"
    "{%- endmacro -%}\n"
    "{%- set state = namespace(task=-1) -%}\n"
    "{%- for message in messages -%}\n"
    "{%- if message.role == 'user' -%}{%- set state.task = loop.index0 -%}{%- endif -%}\n"
    "{%- endfor -%}\n"
    "{%- set has_system = messages and messages[0].role == 'system' -%}\n"
    "{%- if tools or has_system -%}\n"
    "{{- '<|im_start|>system\\n' -}}\n"
    "{%- if tools -%}\n"
    "{{- '# Tools\\n\\nThese functions can be called:\\n\\n<tools>\\n' -}}\n"
    "{%- for tool in tools -%}{{ tool | tojson }}{{ '\\n' }}{%- endfor -%}\n"
    "{{- '</tools>\\n\\nA call has this "
    "form:\\n\\n<tool_call>\\n<function=name>\\n<parameter=key>\\nvalue\\n</parameter>\\n"
    "</function>\\n</tool_call>' -}}\n"
    "{%- if has_system -%}{{ '\\n\\n' }}{%- endif -%}\n"
    "{%- endif -%}\n"
    "{%- if has_system -%}{{ text(messages[0].content) }}{%- endif -%}\n"
    "{{- '<|im_end|>\\n' -}}\n"
    "{%- endif -%}\n"
    "{%- for message in messages -%}\n"
    "{%- if message.role == 'system' -%}\n"
    "{%- if not loop.first -%}{{ raise_exception('A system message must come first.') }}{%- endif -%}\n"
    "{%- elif message.role == 'user' -%}\n"
    "{{- '<|im_start|>user\\n' + text(message.content) + '<|im_end|>\\n' -}}\n"
    "{%- elif message.role == 'assistant' -%}\n"
    "{%- set content = text(message.content) -%}\n"
    "{%- set reasoning = message.reasoning_content or '' -%}\n"
    "{%- if not reasoning and '</think>' in content -%}\n"
    "{%- set reasoning = content.split('</think>')[0].split('<think>')[-1] -%}\n"
    "{%- set content = content.split('</think>')[-1].lstrip('\\n') -%}\n"
    "{%- endif -%}\n"
    "{{- '<|im_start|>assistant\\n' -}}\n"
    "{%- if loop.index0 > state.task -%}\n"
    "{{- '<think>\\n' + reasoning | trim + '\\n</think>\\n\\n' -}}\n"
    "{%- endif -%}\n"
    "{{- content -}}\n"
    "{%- for call in message.tool_calls or [] -%}\n"
    "{%- if content or not loop.first -%}{{ '\\n' }}{%- endif -%}\n"
    "{{- '<tool_call>\\n<function=' + call.function.name + '>\\n' -}}\n"
    "{%- for key, value in call.function.arguments | items -%}\n"
    "{{- '<parameter=' + key + '>\\n' -}}\n"
    "{{- value if value is string else value | tojson -}}\n"
    "{{- '\\n</parameter>\\n' -}}\n"
    "{%- endfor -%}\n"
    "{{- '</function>\\n</tool_call>' -}}\n"
    "{%- endfor -%}\n"
    "{{- '<|im_end|>\\n' -}}\n"
    "{%- elif message.role == 'tool' -%}\n"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{ '<|im_start|>user' }}{%- endif -%}\n"
    "{{- '\\n<tool_response>\\n' + text(message.content) + '\\n</tool_response>' -}}\n"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{ '<|im_end|>\\n' }}{%- endif -%}\n"
    "{%- else -%}\n"
    "{{- raise_exception('Unknown role ' + message.role) -}}\n"
    "{%- endif -%}\n"
    "{%- endfor -%}\n"
    "{%- if add_generation_prompt -%}\n"
    "{{- '<|im_start|>assistant\\n<think>\\n' -}}\n"
    "{%- if enable_thinking is defined and enable_thinking is false -%}{{ '\\n</think>\\n\\n' }}{%- endif -%}\n"
    "{%- endif -%}\n";
