#!/usr/bin/env python3
"""Is the exported checkpoint the model that was trained? Compares PyTorch's logits and MTP chain with a reference.

    check_export.py DIR REFERENCE_DIR     REFERENCE_DIR holds reference.py, an independent implementation in numpy

Without DIR's weights (an empty directory) a small random model is exported first: a test of the export alone.
"""
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import model as m


def main():
    folder, reference_dir = sys.argv[1:3]
    sys.path.insert(0, reference_dir)
    import reference
    config = dict(m.CONFIG)
    if not os.path.exists(os.path.join(folder, "config.json")):
        config.update(layers=4)
        params = m.create(config)
        generator = torch.Generator().manual_seed(3)
        params = {n: (x + 0.05 * torch.randn(x.shape, generator=generator)).detach() for n, x in params.items()}
        m.save(folder, params, config)
    params = m.load(folder)
    config["layers"] = 1 + max(int(n.split(".")[3]) for n in params if n.startswith(m.STEM + "layers."))
    rng = np.random.default_rng(5)
    ids = rng.integers(0, config["vocab"], 40)
    net = m.Model(params, config, dtype=torch.float32)
    t = torch.tensor(ids)
    pos, cu = torch.arange(len(ids)), torch.tensor([0, len(ids)], dtype=torch.int32)
    with torch.no_grad():
        hidden = net.trunk(t, pos, cu, len(ids))
        logits = net.logits(hidden).numpy()
        chain = [net.logits(x).numpy() for x in net.chain(hidden, t, pos, cu, len(ids))]
    ref = reference.Model(folder)
    state = ref.new_state()
    h = ref.forward(ids.tolist(), state)
    worst = np.abs(ref.logits(h) - logits).max()
    # the chain after the first 30 tokens, fed with the true tokens
    n, mtp = 30, ref.new_mtp_state()
    out = ref.mtp_forward(ids[1:n + 1].tolist(), h[:n], mtp)[-1:]
    steps = []
    for d in range(3):
        steps.append(np.abs(ref.logits(out, "mtp")[0] - chain[d][n - 1]).max())
        out = ref.mtp_forward([int(ids[n + 1 + d])], out, mtp)
    print("largest difference of a logit: %.2e; MTP steps: %s" % (worst, " ".join("%.2e" % s for s in steps)))
    print("largest logit: %.2f" % np.abs(logits).max())
    sys.exit(not (worst < 1e-3 and max(steps) < 1e-3))


if __name__ == "__main__":
    main()
