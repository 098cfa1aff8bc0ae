#!/usr/bin/env python3
"""Write tests/golden/small: a checkpoint of odd sizes (tails in every loop) and its golden numbers.

    make_small.py ORACLE            ORACLE = the folder with make_checkpoint.py, reference.py and make_golden.py

Needs numpy. The checkpoint is kept in the repository so that a plain clone can test the model; this script is how it was
made, and gives the same bytes again.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])

import make_checkpoint as mc
import make_golden as mg

PRESET = dict(seed=77, layers=3, interval=3, hidden=36, inter=44, vocab=120, used_vocab=109, heads=4, kv_heads=2,
              head_dim=24, nk=2, nv=4, dk=12, dv=20)
TREES = (
    ("breadth", "p9", [-1, 0, 0, 0, 1, 1, 2, 4, 4, 5, 7, 7], [0, 1, 0, 2, 0, 1, 0, 0, 1, 0, 0, 1]),
    ("depth", "p2", [-1, 0, 1, 2, 3, 4, 5, 1, 7, 2, 9, -1], [0, 0, 1, 0, 0, 0, 0, 0, 0, 2, None, None]),
)

out = os.path.join(os.path.dirname(os.path.abspath(__file__)), "small")
shutil.rmtree(out, ignore_errors=True)
preset = mc.settings("small", {"small": PRESET})
mc.write(out, mc.config_json(preset), mc.build_tensors(preset), 1)
mg.golden("small", out, os.path.join(out, "golden"), "exact", preset, lengths=(1, 2, 9, 67),
          mtp_prompts=("p2", "p9", "p67"), trees=TREES, state_prompt="p67")
