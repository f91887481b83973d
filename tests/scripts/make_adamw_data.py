#!/usr/bin/env python3
"""Write tests/data/optim_adamw.h: values of torch.optim.AdamW, for test_gpu_kernels_optim.

Run with PyTorch 1.13 or later. The script starts itself again with ATEN_CPU_CAPABILITY=default, which
chooses the kernels without fused multiply-add.
"""
import os
import sys

N, STEPS = 23, 4
CASES = [  # lr, beta1, beta2, eps, weight decay
    (1e-3, 0.9, 0.999, 1e-8, 0.01),
    (0.05, 0.8, 0.95, 1e-3, 0.0),
    (2e-2, 0.95, 0.9, 1e-6, 0.3),
]


def hexed(t):
    return [x.hex().replace("0000000p", "p") for x in t.tolist()]


def array(f, name, rows):
    dims = f"[{len(rows)}][{len(rows[0])}]"
    f.write(f"static const float {name}{dims} = {{\n")
    for row in rows:
        f.write("    {\n")
        for k in range(0, len(row), 5):
            f.write("    " + ", ".join(x + "f" for x in row[k:k + 5]) + ",\n")
        f.write("    },\n")
    f.write("};\n")


def write(path):
    import torch

    torch.manual_seed(2)
    start = torch.randn(N)
    grads = torch.randn(STEPS, N) * torch.logspace(-6, 1, N)
    last, first, second = [], [], []
    for lr, beta1, beta2, eps, decay in CASES:
        p = torch.nn.Parameter(start.clone())
        opt = torch.optim.AdamW([p], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=decay, foreach=False)
        for k in range(STEPS):
            p.grad = grads[k].clone()
            opt.step()
        last.append(hexed(p.detach()))
        first.append(hexed(opt.state[p]["exp_avg"]))
        second.append(hexed(opt.state[p]["exp_avg_sq"]))
    with open(path, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                "/* Made by tests/scripts/make_adamw_data.py with PyTorch's AdamW; do not edit. */\n"
                "#ifndef TESTS_DATA_OPTIM_ADAMW_H\n#define TESTS_DATA_OPTIM_ADAMW_H\n\n"
                "/* clang-format off */\n")
        f.write(f"enum {{ ADAMW_N = {N}, ADAMW_STEPS = {STEPS}, ADAMW_CASES = {len(CASES)} }};\n")
        f.write("/* lr, beta1, beta2, eps, weight decay */\n")
        f.write("static const double adamw_case[ADAMW_CASES][5] = {\n")
        for case in CASES:
            f.write("    { " + ", ".join(repr(x) for x in case) + " },\n")
        f.write("};\n")
        array(f, "adamw_start", [hexed(start)])
        array(f, "adamw_grads", [hexed(g) for g in grads])
        array(f, "adamw_last", last)
        array(f, "adamw_first_moment", first)
        array(f, "adamw_second_moment", second)
        f.write("/* clang-format on */\n\n#endif\n")


if __name__ == "__main__":
    if os.environ.get("ATEN_CPU_CAPABILITY") != "default":
        os.execve(sys.executable, [sys.executable] + sys.argv, dict(os.environ, ATEN_CPU_CAPABILITY="default"))
    write(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "optim_adamw.h"))
