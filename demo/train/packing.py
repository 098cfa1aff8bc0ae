"""Streams packed training rows: worker processes generate samples, tokenize them and lay them out.

A row is `ROW` tokens: documents one after the other, each filled up to a multiple of 64 (model.py says why). What comes
out of the queue: ids, target (1 where the token is one that the assistant produced), boundaries, longest document.

BPE dropout on copied words: some words that occur in a call or an answer are spelled with other, random tokens, the same
way everywhere in the document. The text stays the same, the model sees that any string of tokens can be a thing to
copy, and rare tokens become targets.
"""
import multiprocessing
import os
import random
import re
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "data"))
sys.path.insert(0, HERE)

ROW = 65536
CHUNK = 64
DROPOUT_DOCUMENTS = 0.3
DROPOUT_WORDS = 0.5
LONGEST_TOKEN = 10
PRESERVED_THINKING = 0.3
WORD = re.compile(r"[^\W\d_]{3,}")


class Encoder:
    """Samples to (ids, target) arrays."""

    def __init__(self, tokenizer_dir):
        import tokenizer as t
        from words import set_token_pool
        self.tokenizer = t.load(tokenizer_dir)
        pool = t.word_pool(self.tokenizer)
        set_token_pool(pool)
        self.ids = {name: self.tokenizer.token_to_id(name) for name in pool}
        self.cache = {}

    def encode(self, text):
        """The tool sets of the fixed world come again and again: remembered."""
        if len(text) < 4000:
            return self.tokenizer.encode(text, add_special_tokens=False).ids
        if text not in self.cache:
            if len(self.cache) > 64:
                self.cache.clear()
            self.cache[text] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return self.cache[text]

    def respelled(self, word, rng):
        """The word in random tokens of the vocabulary, or None where it cannot be."""
        out, at = [], 0
        while at < len(word):
            ends = [e for e in range(at + 1, min(len(word), at + LONGEST_TOKEN) + 1) if word[at:e] in self.ids]
            if not ends:
                return None
            end = ends[int(rng.random() * len(ends))]
            out.append(self.ids[word[at:end]])
            at = end
        return out

    def document(self, sample, rng=None):
        """rng: dropout and the variant of the think block are drawn from it; None: as a server renders it."""
        from chat_text import pieces
        preserve = rng is not None and rng.random() < PRESERVED_THINKING
        parts = pieces(sample["messages"], sample["tools"], preserve)
        encoded = [(self.encode(text), target) for text, target in parts]
        if rng is not None and rng.random() < DROPOUT_DOCUMENTS:
            encoded = self.dropout(parts, encoded, rng)
        ids = np.concatenate([np.asarray(e, np.int32) for e, _ in encoded])
        target = np.concatenate([np.full(len(e), t, np.uint8) for e, t in encoded])
        return ids, target

    def dropout(self, parts, encoded, rng):
        """Sequences of ids as strings of characters, so that replacing is one fast call."""
        words = sorted({w for text, target in parts if target for w in WORD.findall(text)} - PLAIN)
        swaps = []
        for word in words:
            if rng.random() < DROPOUT_WORDS:
                new = self.respelled(word, rng)
                old = self.tokenizer.encode(word, add_special_tokens=False).ids
                if new and new != old:
                    swaps.append(("".join(map(chr, old)), "".join(map(chr, new))))
        out = []
        for ids, target in encoded:
            text = "".join(map(chr, ids))
            for old, new in swaps:
                text = text.replace(old, new)
            out.append((list(map(ord, text)), target))
        return out


# Words of the format and of the assistant's fixed sentences: nothing to copy.
PLAIN = frozenset("function parameter tool call Could you tell the Done and None tools have can that The did not work cannot true false".split())


def padded(length):
    return -(-length // CHUNK) * CHUNK


class Packer:
    """Fills rows; a document that does not fit any more starts the next row."""

    def __init__(self, pad, row=ROW):
        self.pad, self.row = pad, row
        self.clear()

    def clear(self):
        self.ids = np.full(self.row, self.pad, np.int32)
        self.target = np.zeros(self.row, np.uint8)
        self.cu = [0]

    def add(self, ids, target):
        """A full row, when this document did not fit, else None."""
        if len(ids) > self.row:
            return None
        done = None
        if self.cu[-1] + padded(len(ids)) > self.row:
            done = self.finish()
        at = self.cu[-1]
        self.ids[at:at + len(ids)] = ids
        self.target[at:at + len(ids)] = target
        self.cu.append(at + padded(len(ids)))
        return done

    def finish(self):
        if self.cu[-1] < self.row:
            self.cu.append(self.row)
        row = self.ids, self.target, np.asarray(self.cu, np.int32)
        self.clear()
        return row


def work(tokenizer_dir, seed, queue):
    import generate
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    encoder = Encoder(tokenizer_dir)
    packer = Packer(encoder.tokenizer.token_to_id("<|endoftext|>"))
    rng = random.Random("dropout %s" % seed)
    for sample in generate.samples(seed, "train"):
        row = packer.add(*encoder.document(sample, rng))
        if row:
            queue.put(row)


class Stream:
    """Rows from `workers` processes; seeds are "train <seed> <worker>", so a new seed gives new data."""

    def __init__(self, tokenizer_dir, seed, workers):
        context = multiprocessing.get_context("spawn")
        self.queue = context.Queue(maxsize=48)
        self.processes = [context.Process(target=work, args=(tokenizer_dir, "%s %d" % (seed, i), self.queue), daemon=True)
                          for i in range(workers)]
        for process in self.processes:
            process.start()

    def __iter__(self):
        while True:
            yield self.queue.get(timeout=120)

    def close(self):
        for process in self.processes:
            process.terminate()
