#!/usr/bin/env python3
"""Writes the small tokenizer of this directory and its cases with Hugging Face's tokenizers library (pip: tokenizers).

    make.py

tokenizer.json, strings/tokenizer.json (the same with merges as "a b"), tokenizer_config.json (two added tokens more),
cases.jsonl: {"text", "ids", "decoded"}, each with the added tokens of both files. The runtime must give the same ids.
"""
import json
import os
import re

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Regex

HERE = os.path.dirname(os.path.abspath(__file__))
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PLAIN = ["<tool_call>", "</tool_call>", "<think>", "</think>", "<a", "<a>", "<a>b"]
CONFIG_ONLY = [("<|audio|>", True), ("<é>", False)]
TRAINING = [
    "The robot reads the file, runs the tests and writes what it has found into a report.",
    "A token that the model has seen before costs nothing; a token that it has not seen costs one step.",
    "def read(path):\n    with open(path) as f:\n        return f.read()\n\n\nif __name__ == '__main__':\n    main()\n",
    "for (int i = 0; i < count; i++) {\n\tsum += values[i];\n}\nreturn sum;\n",
    "They're sure it's what we've asked for, and they'll say they'd do it again.",
    "Größe, Straße, über; café, naïve, déjà vu. 你好世界。 Привет, мир!", "1 22 333 2024-11-30 0x1F    \n\n   \n\t\tx\r\n\r\n",
    "aaaaaaaaaaaaaaaa bbbbbbbb abababababab ================ --------",
]
TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n \n", " \n x", "x   y", "\ta\r\nb\r\n\r\n c  ", "Hello, world!", "The file that the robot has read",
    "They're IT'S we'Ve 'LL it'ſ can't've'd", "1234 12.5 x1y2 ٣٤ Ⅳ½", "==== a=b+c; }\n\n)", "snake_case CamelCase",
    "a\u00a0b\u0085c\u180ed\u200be\ufefff\u2028g\u3000h\u2003i\u001cj\u000bk", "\u180e\u180e x\u180e", " \u0085 \u0085x",
    "e\u0301 \u00e9 a\u0323\u0307 a\u0307\u0323 \u212b \u1100\u1161\u11a8 \uac00\u11a8", "\u0958 \u0344 q\u0301\u0316\u0301",
    "你好，世界！ Привет नमस्ते ภาษาไทย 한국어 😀👩‍💻🇫🇷", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "<a<a><a>b<a>c<a>", "<<a", "<a>\u0338b", "e<|im_end|>\u0301e", "<think>\u0338", "<|im_end", "<|im_en<|im_end|>", "</tool_call><tool_call>",
    "<|audio|>x<é>y<e\u0301>", "a" * 100, "ab" * 60, " " * 70 + "x", "=" * 100, "\u0301\u0316" * 40, "the\u0301\u0316" * 30,
]


def main():
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    trainer = trainers.BpeTrainer(vocab_size=420, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(TRAINING, trainer)
    tok.add_special_tokens([AddedToken(t, normalized=False) for t in SPECIAL])
    tok.add_tokens([AddedToken(t, normalized=False) for t in PLAIN])
    data = json.loads(tok.to_str())
    write("tokenizer.json", data)
    data["model"]["merges"] = [" ".join(m) for m in data["model"]["merges"]]
    os.makedirs(os.path.join(HERE, "strings"), exist_ok=True)
    write("strings/tokenizer.json", data)
    entries = {str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in data["added_tokens"]}
    for text, special in CONFIG_ONLY:
        token = AddedToken(text, normalized=False, special=special)
        (tok.add_special_tokens if special else tok.add_tokens)([token])
        entries[str(tok.token_to_id(text))] = {"content": text, "lstrip": False, "normalized": False, "rstrip": False,
                                               "single_word": False, "special": special}
    write("tokenizer_config.json", {"added_tokens_decoder": entries, "tokenizer_class": "PreTrainedTokenizerFast"})
    added = [e["content"] for e in entries.values()]
    with open(os.path.join(HERE, "cases.jsonl"), "w", encoding="utf-8") as f:
        for text in TEXTS:
            ids = tok.encode(text, add_special_tokens=False).ids
            case = {"text": text, "ids": ids, "decoded": normalized_between(text, added)}
            f.write(json.dumps(case) + "\n")


def normalized_between(text, added):
    """NFC of what is left when the added tokens are cut out, longest first; they stay as they are."""
    cut = "(" + "|".join(re.escape(t) for t in sorted(added, key=len, reverse=True)) + ")"
    return "".join(p if p in added else normalizers.NFC().normalize_str(p) for p in re.split(cut, text))


def write(name, data):
    with open(os.path.join(HERE, name), "w", encoding="utf-8") as f:
        json.dump(data, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
