"""Exactness and draft acceptance on held-out samples, by one forward over the right answer.

A turn counts as exact when every token that the assistant has to produce is the most likely one given the right ones
before it: that is the same as greedy decoding producing exactly the expected text, without decoding. Draft step d is
right at a token when the MTP chain, fed with right tokens, guesses it; it is accepted when the steps before it were
right too.
"""
import itertools

import numpy as np
import torch

import generate
from packing import Packer, padded


class Tally:
    def __init__(self):
        self.turns, self.exact = {}, {}
        self.drafts = np.zeros((3, 3))  # per step: chances, right, accepted

    def count(self, kind, exact):
        self.turns[kind] = self.turns.get(kind, 0) + 1
        self.exact[kind] = self.exact.get(kind, 0) + exact

    def lines(self, title):
        for kind in sorted(self.turns):
            yield "%-10s %-22s exact %5.1f %% of %d" % (title, kind, 100.0 * self.exact[kind] / self.turns[kind], self.turns[kind])
        if self.drafts[0, 0]:
            right = self.drafts[:, 1] / self.drafts[:, 0]
            accepted = self.drafts[:, 2] / self.drafts[:, 0]
            yield "%-10s drafts in calls: right %s, all so far %s" % (title, " ".join("%.3f" % x for x in right), " ".join("%.3f" % x for x in accepted))


def runs(target):
    """[start, end) of each contiguous stretch of targets."""
    edge = np.flatnonzero(np.diff(np.concatenate([[0], target, [0]])))
    return list(zip(edge[0::2], edge[1::2]))


@torch.no_grad()
def guesses(net, ids, pos, cu, max_len, rows):
    """Most likely token at each row of the trunk and the three draft steps, [4, rows] on the CPU."""
    hidden = net.trunk(ids, pos, cu, max_len)
    outs = [hidden] + net.chain(hidden, ids, pos, cu, max_len)
    return torch.stack([net.logits(o[rows]).argmax(-1) for o in outs]).cpu().numpy()


def evaluate(net, encoder, split, kinds, count, batch, seed="measure"):
    """Tally over `count` samples. batch(row) puts a packed row on the device: (ids, pos, cu, max_len)."""
    pad, call = (encoder.tokenizer.token_to_id(t) for t in ("<|endoftext|>", "<tool_call>"))
    tally, packer, waiting = Tally(), Packer(pad), []

    def flush(row):
        ids, target, _ = row
        inputs = batch(row)
        where = np.flatnonzero(target)
        rows = torch.from_numpy(where - 1).to(inputs[0].device)
        top = guesses(net, *inputs, rows)
        at = np.full(len(ids) + 1, -1)
        at[where] = np.arange(len(where))  # position of a target -> column of top, for the row just before it
        for start, kind in waiting:
            for a, b in start:
                cols = at[a:b]
                is_call = call in ids[a:b]
                tally.count(kind + (" call" if is_call else " text"), bool((top[0, cols] == ids[a:b]).all()))
                if is_call:
                    # The chain at the row of target i (whose guess of the trunk is token i) drafts tokens i + 1, i + 2, i + 3.
                    right = [top[d, cols[:-d]] == ids[a + d:b] for d in (1, 2, 3) if b - a > d]
                    so_far = None
                    for d, r in enumerate(right):
                        so_far = r if so_far is None else so_far[:len(r)] & r
                        tally.drafts[d] += len(r), r.sum(), so_far.sum()
        waiting.clear()

    for sample in itertools.islice(generate.samples(seed, split, kinds), count):
        ids, target = encoder.document(sample)
        if len(ids) > packer.row:
            continue
        row = packer.add(ids, target)
        if row:
            flush(row)
        start = packer.cu[-1] - padded(len(ids))
        waiting.append(([(start + a, start + b) for a, b in runs(target)], sample["kind"]))
    if waiting:
        flush(packer.finish())
    return tally
