"""Optimizers: Muon for the matrices inside the network, AdamW for embedding, head, norms and the other small things.

Muon replaces a matrix's momentum by the nearest orthogonal one (five Newton-Schulz steps). Matrices of one shape are
stacked, so that a step is a few large products.
"""
import torch

MOMENTUM = 0.95
WEIGHT_DECAY = 0.02


def is_matrix(name, x):
    small = ("embed_tokens", "lm_head", "in_proj_a", "in_proj_b", "conv1d")
    return x.dim() == 2 and not any(s in name for s in small)


def orthogonal(g):
    """g [n, rows, columns] -> nearly orthogonal, in bf16."""
    x = g.bfloat16()
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x


class Optimizer:
    def __init__(self, params, matrix_lr=0.02, adam_lr=0.003):
        groups = {}
        for name, x in params.items():
            if is_matrix(name, x):
                groups.setdefault(tuple(x.shape), []).append(x)
        self.groups = [(xs, torch.zeros(len(xs), *shape, device=xs[0].device)) for shape, xs in groups.items()]
        rest = [x for n, x in params.items() if not is_matrix(n, x)]
        wide = [x for x in rest if x.dim() > 1]
        self.adam = torch.optim.AdamW([{"params": wide, "weight_decay": 0.01}, {"params": [x for x in rest if x.dim() == 1], "weight_decay": 0.0}],
                                      lr=adam_lr, betas=(0.9, 0.95), eps=1e-8, fused=xs_on_cuda(rest))
        self.matrix_lr, self.adam_lr = matrix_lr, adam_lr

    @torch.no_grad()
    def step(self, scale):
        """scale: of the learning rates, 0 to 1."""
        lr = self.matrix_lr * scale
        for xs, momentum in self.groups:
            g = torch.stack([x.grad for x in xs])
            momentum.lerp_(g, 1 - MOMENTUM)
            update = orthogonal(g.lerp_(momentum, MOMENTUM)).float()
            rows, columns = xs[0].shape
            update.mul_(-lr * max(1.0, rows / columns) ** 0.5)
            torch._foreach_mul_(xs, 1 - lr * WEIGHT_DECAY)
            torch._foreach_add_(xs, list(update.unbind(0)))
            torch._foreach_zero_([x.grad for x in xs])
        for group in self.adam.param_groups:
            group["lr"] = self.adam_lr * scale
        torch.nn.utils.clip_grad_norm_([x for g in self.adam.param_groups for x in g["params"]], 1.0)
        self.adam.step()
        self.adam.zero_grad(set_to_none=False)


def xs_on_cuda(xs):
    return all(x.is_cuda for x in xs)
