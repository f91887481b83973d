#!/usr/bin/env python3
"""Write tests/data/optim_lars.h: LARS as timm's Lars has it (its defaults, plus momentum), in float64.

The rule, for a tensor with weight decay wd (timm adapts no other):
    ratio = trust * |p| / (|g| + wd * |p| + eps), 1 where a norm is 0;  g = (g + wd * p) * ratio
and for all tensors SGD with momentum: v = momentum * v + g (v = g at first);  p -= lr * v
timm's groups of parameters give no weight decay to tensors of one dimension. Run with PyTorch 1.13 or later.
"""
import os

import torch

SHAPES, STEPS = [(4, 6), (6,), (5, 2, 3)], 4
CASES = [  # lr, momentum, weight decay, trust coefficient, eps
    (1.0, 0.9, 1e-4, 0.001, 1e-8),
    (2.5, 0.0, 5e-2, 0.02, 1e-8),
    (0.5, 0.8, 1e-2, 0.1, 1e-2),
]


def train(start, grads, case):
    lr, momentum, decay, trust, eps = case
    ps, vs = [p.clone() for p in start], [None] * len(start)
    for step in range(STEPS):
        for i, p in enumerate(ps):
            g = grads[step][i].clone()
            if p.dim() > 1:
                w_norm, g_norm = p.norm(), g.norm()
                assert w_norm > 0 and g_norm > 0
                g = (g + decay * p) * (trust * w_norm / (g_norm + decay * w_norm + eps))
            if momentum:
                vs[i] = g if vs[i] is None else momentum * vs[i] + g
                g = vs[i]
            p -= lr * g
    return torch.cat([p.flatten() for p in ps])


def array(f, kind, name, rows):
    f.write(f"static const {kind} {name}[{len(rows)}][{len(rows[0])}] = {{\n")
    for row in rows:
        text = [f"{x!r}" for x in row.tolist()]
        f.write("    {\n")
        for k in range(0, len(text), 4):
            f.write("    " + ", ".join(text[k:k + 4]) + ",\n")
        f.write("    },\n")
    f.write("};\n")


def main():
    torch.manual_seed(3)
    exact = lambda t: t.float().double()  # what a test can hold as float
    start = [exact(torch.randn(s) + 0.25) for s in SHAPES]
    grads = [[exact(torch.randn(s)) for s in SHAPES] for _ in range(STEPS)]
    flat = lambda ts: torch.cat([t.flatten() for t in ts])
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "optim_lars.h")
    with open(path, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                "/* Made by tests/scripts/make_lars_data.py, the rule of timm's Lars; do not edit. */\n"
                "#ifndef TESTS_DATA_OPTIM_LARS_H\n#define TESTS_DATA_OPTIM_LARS_H\n\n"
                "#include \"trainer/optim.h\"\n\n/* clang-format off */\n")
        f.write(f"/* Tensors of {SHAPES}, one behind the other. */\n")
        f.write(f"enum {{ LARS_N = {flat(start).numel()}, LARS_STEPS = {STEPS}, LARS_CASES = {len(CASES)} }};\n")
        f.write("static const dpt_update lars_case[LARS_CASES] = {\n")
        for lr, momentum, decay, trust, eps in CASES:
            f.write(f"    {{ .rule = DPT_RULE_LARS, .lr = {lr}, .momentum = {momentum}, .weight_decay = {decay}, "
                    f".trust = {trust}, .eps = {eps} }},\n")
        f.write("};\n")
        array(f, "double", "lars_start", [flat(start)])
        array(f, "double", "lars_grads", [flat(g) for g in grads])
        array(f, "double", "lars_last", [train(start, grads, c) for c in CASES])
        f.write("/* clang-format on */\n\n#endif\n")


main()
