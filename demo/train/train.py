#!/usr/bin/env python3
"""Trains the bundled model on one GPU for a given number of minutes.

    train.py --tokenizer DIR --out DIR --minutes 6 [--resume DIR --from 0.5] [--to 1] [--seed 1]

A piece of training runs for `--minutes` and covers the part `--from` .. `--to` of the schedule (warm-up, constant, then
linear to zero over the last 45 %), so that a long training can be cut into pieces of any length: each ends with a usable
checkpoint in bf16, and the next one starts from it with `--resume`, new data (another seed) and fresh optimizers. The
learning rate follows the clock, not the step count, since the speed of a machine is not known before.

With --minutes 0 the checkpoint of --resume is only measured.

Written to --out: the checkpoint (files of at most 15 MiB), curve.csv, report.txt.
"""
import argparse
import os
import sys
import time

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import model as m
import packing
from check_kernels import check
from evaluate import evaluate
from muon import Optimizer

TARGETS = 16384  # tokens of a packed row whose loss is computed, at most
# The draft chain learns fast and costs three layers of attention: it sees the first documents of a row only.
MTP_ROW, MTP_TARGETS = 16384, 4096
MTP_WEIGHTS = (0.3, 0.2, 0.15)
WARM_UP, COOL_DOWN = 0.02, 0.45


def rate(progress):
    """Share of the full learning rate at a point of the schedule, 0 to 1."""
    return min(1.0, (progress + 1e-4) / WARM_UP, max(0.0, 1.0 - progress) / COOL_DOWN)


def positions(cu, length):
    """Position of each token in its document."""
    lengths = np.diff(cu)
    return (np.arange(length) - np.repeat(cu[:-1], lengths)).astype(np.int64)


def batch(row, device="cuda"):
    ids, _, cu = row
    pos = positions(cu, len(ids))
    put = lambda x: torch.from_numpy(x).to(device, non_blocking=True)
    return put(ids.astype(np.int64)), put(pos), put(cu), int(np.diff(cu).max())


def shortened(row, length):
    """The first `length` tokens of a row."""
    ids, target, cu = row
    return ids[:length], target[:length], np.append(cu[cu < length], length).astype(np.int32)


def targets(row, device="cuda"):
    """[(rows, weights)] of the trunk and the draft steps: where they have something to guess."""
    target = row[1].astype(bool)
    mask, out = np.ones(len(target), bool), []
    for d in range(4):
        if d == 1:
            mask, target = mask[:MTP_ROW], target[:MTP_ROW]
        # the trunk guesses token p + 1, step d token p + 1 + d, and only behind other targets
        mask &= np.append(target[d + 1:], np.zeros(d + 1, bool))
        size = MTP_TARGETS if d else TARGETS
        chosen = np.flatnonzero(mask)[:size]
        rows, weights = np.zeros(size, np.int64), np.zeros(size, np.float32)
        rows[:len(chosen)], weights[:len(chosen)] = chosen, 1.0
        out.append([torch.from_numpy(x).to(device, non_blocking=True) for x in (rows, weights)])
    return out


def losses(net, inputs, first, where):
    """(losses [4], shares of right guesses [4]); first: the inputs of the draft chain."""
    ids = inputs[0]
    hidden = net.trunk(*inputs)
    outs = [hidden] + net.chain(hidden[:len(first[0])], *first)
    loss, right = [], []
    for d, (out, (rows, weights)) in enumerate(zip(outs, where)):
        wanted = torch.clamp(rows + 1 + d, max=len(ids) - 1)
        total, hits = net.f["head_loss"](out[rows], net.p["lm_head.weight"], ids[wanted], weights)
        count = weights.sum().clamp_min(1)
        loss.append(total / count)
        right.append(hits / count)
    return torch.stack(loss), torch.stack(right).detach()


def train(a, log):
    device = "cuda"
    stream = packing.Stream(a.tokenizer, a.seed, a.workers)
    torch.manual_seed(a.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    config = dict(m.CONFIG)
    params = m.load(a.resume, device) if a.resume else m.create(config, a.seed, device)
    log("%.2f M parameters" % (sum(x.numel() for x in params.values()) / 1e6))
    net, optimizer = m.Model(params, config, kernels=True, compiled=True), Optimizer(params)
    mtp_weights = torch.tensor((1.0,) + MTP_WEIGHTS, device=device)
    rows = iter(stream)
    curve = open(os.path.join(a.out, "curve.csv"), "w", encoding="utf-8")
    curve.write("step,minutes,tokens,rate,loss,draft1,draft2,draft3,right,right1,right2,right3\n")
    end = started = None
    step, marks, sums = 0, time.time(), torch.zeros(8, device=device)
    while True:
        now = time.time()
        progress = a.start + (a.to - a.start) * ((now - started) / (a.minutes * 60) if started else 0.0)
        if started and now >= end:
            break
        row = next(rows)
        loss, right = losses(net, batch(row), batch(shortened(row, MTP_ROW)), targets(row))
        (loss * mtp_weights).sum().backward()
        scale = min(rate(progress), (step + 1) / 40)
        optimizer.step(scale)
        sums += torch.cat([loss.detach(), right])
        step += 1
        if step == 3:  # compiling and tuning are over: the clock starts
            torch.cuda.synchronize()
            log("ready after %.0f s, loss %.3f" % (time.time() - marks, loss[0].item()))
            started = marks = time.time()
            end = started + a.minutes * 60
            sums.zero_()
        elif step > 3 and (step - 3) % 25 == 0:
            v = (sums / 25).tolist()
            sums.zero_()
            speed = 25 * packing.ROW / (time.time() - marks)
            marks = time.time()
            curve.write("%d,%.3f,%d,%.4f,%s\n" % (step, (marks - started) / 60, step * packing.ROW, scale, ",".join("%.4f" % x for x in v)))
            curve.flush()
            if (step - 3) % 100 == 0:
                log("step %5d  %.1f min  loss %.4f  drafts %.3f %.3f %.3f  right %.4f  drafts %.3f %.3f %.3f  %.0f K tokens/s"
                    % (step, (marks - started) / 60, *v[:4], *v[4:], speed / 1e3))
            if not np.isfinite(v[0]):
                raise SystemExit("the loss is not finite")
    log("%d steps, %.1f M tokens, %.0f K tokens/s" % (step, step * packing.ROW / 1e6, (step - 3) * packing.ROW / (time.time() - started) / 1e3))
    curve.close()
    stream.close()
    return params, config


def measure(a, folder, config, log):
    """Of a checkpoint as it was written, in bf16."""
    net, encoder = m.Model(m.load(folder, "cuda"), config, kernels=True), packing.Encoder(a.tokenizer)
    for kind, count in (("single", a.samples), ("two", a.samples // 2), ("parallel", a.samples // 2), ("none", a.samples // 2),
                        ("missing", a.samples // 2), ("home", a.samples // 10)):
        for split in ("seen", "phrasings", "unseen"):
            for line in evaluate(net, encoder, split, (kind,), count, batch).lines(split):
                log(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=6)
    parser.add_argument("--resume")
    parser.add_argument("--from", dest="start", type=float, default=0.0)
    parser.add_argument("--to", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--samples", type=int, default=300, help="measured on each split after training")
    a = parser.parse_args()
    os.makedirs(a.out, exist_ok=True)
    report = open(os.path.join(a.out, "report.txt"), "w", encoding="utf-8")

    started = time.time()

    def log(text):
        text = "%5.0f s  %s" % (time.time() - started, text)
        print(text, flush=True)
        report.write(text + "\n")
        report.flush()

    if not check():
        raise SystemExit("a kernel is wrong on this machine")
    log("kernels checked")
    if a.minutes == 0:
        measure(a, a.resume, m.CONFIG, log)
        return
    params, config = train(a, log)
    m.save(a.out, params, config)
    log("saved")
    measure(a, a.out, config, log)


if __name__ == "__main__":
    main()
