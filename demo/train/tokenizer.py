#!/usr/bin/env python3
"""The bundled model's tokenizer: byte-level BPE of 6,144 entries, trained on generated text (needs `tokenizers`).

    tokenizer.py train DIR        writes DIR/tokenizer.json and DIR/tokenizer_config.json
    tokenizer.py check DIR build/hearth dump tokens DIR     compares the library with what hearth reads

It pre-tokenizes with Qwen's pattern, so that every reader of Qwen's files reads this one. That pattern glues one
preceding character to a word (" word", "_word", "=word"). Merges over that boundary would give the same word other
tokens after a space, an underscore or an equals sign, and a small model would have to learn each of them as a separate
thing to copy. So the merges are learned on text whose letters stand apart from everything else: no merge can then
contain both, and a word has one spelling wherever it stands.

The added tokens are Qwen's, at the end of the vocabulary.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data"))

VOCABULARY = 6144
PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
           r"|\s*[\r\n]+|\s+(?!\S)|\s+")
LETTERS = r"[\p{L}\p{M}]+"
# (text, special); those after the first 26 are listed in tokenizer_config.json alone, as Qwen does it.
ADDED = [("<|endoftext|>", True), ("<|im_start|>", True), ("<|im_end|>", True), ("<|object_ref_start|>", True),
         ("<|object_ref_end|>", True), ("<|box_start|>", True), ("<|box_end|>", True), ("<|quad_start|>", True),
         ("<|quad_end|>", True), ("<|vision_start|>", True), ("<|vision_end|>", True), ("<|vision_pad|>", True),
         ("<|image_pad|>", True), ("<|video_pad|>", True), ("<tool_call>", False), ("</tool_call>", False),
         ("<|fim_prefix|>", False), ("<|fim_middle|>", False), ("<|fim_suffix|>", False), ("<|fim_pad|>", False),
         ("<|repo_name|>", False), ("<|file_sep|>", False), ("<tool_response>", False), ("</tool_response>", False),
         ("<think>", False), ("</think>", False), ("<|audio_start|>", True), ("<|audio_end|>", True),
         ("<tts_pad>", True), ("<tts_text_bos>", True), ("<tts_text_eod>", True), ("<tts_text_bos_single>", True),
         ("<|audio_pad|>", True)]
IN_TOKENIZER_JSON = 26
FIRST_ADDED = VOCABULARY - len(ADDED)
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def corpus(samples):
    """Text of generated samples without the added tokens; each tool set once."""
    import generate
    from chat_text import pieces
    added = re.compile("|".join(re.escape(text) for text, _ in ADDED))
    for sample, _ in zip(generate.samples("tokenizer", "train", home_share=0.05), range(samples)):
        for text, _ in pieces(sample["messages"], sample["tools"] if sample["kind"] != "home" else ()):
            yield from (part for part in added.split(text) if part)


def learn(samples):
    """(vocabulary, merges) of the base BPE."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers, Regex
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERN), "isolated"), pre_tokenizers.Split(Regex(LETTERS), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(vocab_size=FIRST_ADDED, min_frequency=2, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(samples), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]


def write(folder, vocab, merges):
    added = [{"id": FIRST_ADDED + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": special} for i, (text, special) in enumerate(ADDED)]
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added[:IN_TOKENIZER_JSON],
           "normalizer": {"type": "NFC"}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split(PATTERN), BYTE_LEVEL]},
           "post_processor": BYTE_LEVEL, "decoder": BYTE_LEVEL,
           "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
                     "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": merges}}
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
    decoder = {str(e["id"]): {k: v for k, v in e.items() if k != "id"} for e in added}
    config = {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": decoder,
              "additional_special_tokens": [t for t, _ in ADDED[1:14]], "bos_token": None, "clean_up_tokenization_spaces": False,
              "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 262144, "pad_token": "<|endoftext|>",
              "split_special_tokens": False, "tokenizer_class": "Qwen3_5Tokenizer", "unk_token": None}
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f, ensure_ascii=False, indent=1)
        f.write("\n")


def load(folder):
    """The library's tokenizer, with the added tokens that only tokenizer_config.json lists."""
    from tokenizers import AddedToken, Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, _ in ADDED[IN_TOKENIZER_JSON:]])
    assert tokenizer.token_to_id(ADDED[-1][0]) == VOCABULARY - 1
    return tokenizer


def word_pool(tokenizer):
    """Tokens of Latin letters: what random words are drawn from (words.set_token_pool)."""
    names = (tokenizer.id_to_token(i) for i in range(FIRST_ADDED))
    return [n for n in names if n.isascii() and n.isalpha()]


def check(folder, command):
    """Ids of the library against the JSON array that `command` prints for a text on stdin, one case after the other."""
    import generate
    from chat_text import render
    tokenizer = load(folder)
    cases = [render(s["messages"], s["tools"]) for s, _ in zip(generate.samples("check", "unseen"), range(30))]
    cases += ["", " word _word =word\nword", "a  b   c \n\n d", "e\u0301t\u00e9 \u65e5\u672c\u8a9e \U0001f642", "<|im_start|>x<think>\n\n</think>"]
    bad = 0
    for text in cases:
        done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
        got = json.loads(done.stdout)
        bad += got != tokenizer.encode(text, add_special_tokens=False).ids
    print("%d texts, %d differ" % (len(cases), bad))
    return bad


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "train":
        vocab, merges = learn(int(os.environ.get("SAMPLES", "12000")))
        assert len(vocab) == FIRST_ADDED, len(vocab)
        write(sys.argv[2], vocab, merges)
        text = "".join(corpus(300))
        print("%d entries, %.2f bytes a token" % (VOCABULARY, len(text.encode()) / len(load(sys.argv[2]).encode(text).ids)))
    elif len(sys.argv) > 3 and sys.argv[1] == "check":
        sys.exit(check(sys.argv[2], sys.argv[3:]) != 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
