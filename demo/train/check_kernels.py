#!/usr/bin/env python3
"""The fast kernels against the plain definitions, values and gradients. Run before each training: seconds.

The delta rule's kernel package has been wrong on some pairs of GPU and compiler without a word, and a training with
slightly wrong gradients looks like a weak model.
"""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import model as m


def distance(a, b):
    a, b = a.float(), b.float()
    return ((a - b).norm() / b.norm().clamp_min(1e-9)).item()


def compare(name, fast, plain, inputs, limit=0.04):
    """Largest relative distance of outputs and gradients."""
    grads, out_grad = [], None
    for function, dtype in ((fast, torch.bfloat16), (plain, torch.float32)):
        xs = [(x.detach().bfloat16().to(dtype) if x.dim() > 2 else x.detach().clone()).requires_grad_() for x in inputs]
        out = function(*xs)
        out_grad = torch.randn_like(out, dtype=torch.float32) if out_grad is None else out_grad
        out.backward(out_grad.to(out.dtype))
        grads.append([out] + [x.grad for x in xs])
    worst = [distance(a, b) for a, b in zip(*grads)]
    print("%-24s output and gradients off by %s" % (name, " ".join("%.4f" % w for w in worst)))
    return max(worst) < limit


def check(device="cuda"):
    """Whether delta rule and attention agree with their definitions."""
    torch.manual_seed(0)
    cu = torch.tensor([0, 128, 192, 384], dtype=torch.int32, device=device)
    t = 384
    rand = lambda *shape: torch.randn(*shape, device=device)
    g, beta = -torch.rand(t, 6, device=device), torch.rand(t, 6, device=device)
    rule = m.delta_rule_fla(compiled=False)
    ok = compare("delta rule", lambda *x: rule(*x, cu), lambda *x: m.delta_rule_plain(*x, cu),
                 [m.unit(rand(t, 2, 128)), m.unit(rand(t, 2, 128)), rand(t, 6, 128), g, beta])
    q, k, v = rand(t, 6, 256), rand(t, 1, 256), rand(t, 1, 256)
    ok &= compare("attention", lambda *x: m.attention_flash(*x, cu, 192), lambda *x: m.attention_plain(*x, cu, 192), [q, k, v])
    more = [rand(t, 1, 256) for _ in range(4)]
    with_more = lambda f: lambda *x: f(x[0], x[1], x[2], cu, 192, ((x[3], x[4]), (x[5], x[6])))
    ok &= compare("attention, 2 more keys", with_more(m.attention_flash), with_more(m.attention_plain), [q, k, v, *more])
    return ok


if __name__ == "__main__":
    sys.exit(not check())
