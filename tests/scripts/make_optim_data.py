#!/usr/bin/env python3
"""Write tests/data/optim_sgd.h and tests/data/optim_schedule.h: values of torch.optim, for test_optim.

Run with PyTorch 1.13 or later; ATEN_CPU_CAPABILITY=default chooses the kernels without fused
multiply-add, ATEN_CPU_CAPABILITY=avx2 those with. The script starts itself once for each.
"""
import json
import os
import subprocess
import sys

N, STEPS = 40, 5
CASES = [  # lr, momentum, weight decay, nesterov
    (0.1, 0.0, 0.0, False),
    (0.1, 0.0, 1e-4, False),
    (0.1, 0.9, 0.0, False),
    (0.1, 0.9, 1e-4, False),
    (0.05, 0.9, 5e-4, True),
    (0.037, 0.85, 0.01, True),
]


def sgd_values():
    import torch

    torch.manual_seed(1)
    start = torch.randn(N)
    grads = torch.randn(STEPS, N) * 3
    out = {"start": start, "grads": grads.flatten(), "first": [], "last": [], "velocity": []}
    for lr, momentum, decay, nesterov in CASES:
        p = torch.nn.Parameter(start.clone())
        opt = torch.optim.SGD([p], lr=lr, momentum=momentum, weight_decay=decay, nesterov=nesterov)
        for k in range(STEPS):
            p.grad = grads[k].clone()
            opt.step()
            if k == 0:
                out["first"].append(p.detach().clone())
        out["last"].append(p.detach().clone())
        out["velocity"].append(opt.state[p].get("momentum_buffer") if momentum else torch.zeros(N))
    hexed = lambda t: [x.hex().replace('0000000p', 'p') for x in t.tolist()]
    return {k: [hexed(t) for t in v] if isinstance(v, list) else hexed(v) for k, v in out.items()}


def run(level):
    env = dict(os.environ, ATEN_CPU_CAPABILITY=level)
    return json.loads(subprocess.check_output([sys.executable, __file__, "sgd"], env=env))


def array(f, name, rows):
    dims = f"[{len(rows)}][{len(rows[0])}]" if isinstance(rows[0], list) else f"[{len(rows)}]"
    f.write(f"static const float {name}{dims} = {{\n")
    for row in rows if isinstance(rows[0], list) else [rows]:
        f.write("    {\n" if isinstance(rows[0], list) else "")
        for k in range(0, len(row), 5):
            f.write("    " + ", ".join(x + "f" for x in row[k:k + 5]) + ",\n")
        f.write("    },\n" if isinstance(rows[0], list) else "")
    f.write("};\n")


def write_sgd(path):
    plain, fused = run("default"), run("avx2")
    with open(path, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                "/* Made by tests/scripts/make_optim_data.py with PyTorch's SGD; do not edit. */\n"
                "#ifndef TESTS_DATA_OPTIM_SGD_H\n#define TESTS_DATA_OPTIM_SGD_H\n\n"
                "#include \"trainer/optim.h\"\n\n/* clang-format off */\n")
        f.write(f"enum {{ SGD_N = {N}, SGD_STEPS = {STEPS}, SGD_CASES = {len(CASES)} }};\n")
        f.write("static const dpt_update sgd_case[SGD_CASES] = {\n")
        for lr, momentum, decay, nesterov in CASES:
            f.write(f"    {{ .lr = {lr}, .momentum = {momentum}, .weight_decay = {decay}, "
                    f".nesterov = {int(nesterov)} }},\n")
        f.write("};\n")
        array(f, "sgd_start", plain["start"])
        array(f, "sgd_grads", plain["grads"])
        array(f, "sgd_first", plain["first"])
        array(f, "sgd_last", plain["last"])
        array(f, "sgd_velocity", plain["velocity"])
        array(f, "sgd_fused_last", fused["last"])
        f.write("/* clang-format on */\n\n#endif\n")


def schedule_values(make, epochs):
    import torch

    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    sched = make(torch.optim.lr_scheduler, opt)
    out = []
    for _ in range(epochs):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        sched.step()
    return out


def write_schedule(path):
    cases = {
        "sched_step": (95, lambda s, o: s.StepLR(o, 30, 0.1)),
        "sched_step7": (20, lambda s, o: s.StepLR(o, 7, 0.5)),
        "sched_cosine": (90, lambda s, o: s.CosineAnnealingLR(o, 90, eta_min=0.001)),
        "sched_warm_cosine": (60, lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.01, total_iters=5), s.CosineAnnealingLR(o, 55)], milestones=[5])),
        "sched_warm_const": (8, lambda s, o: s.LinearLR(o, 0.01, total_iters=5)),
    }
    with open(path, "w") as f:
        f.write("/* SPDX-License-Identifier: Apache-2.0 */\n"
                "/* Made by tests/scripts/make_optim_data.py with torch.optim.lr_scheduler, one value\n"
                " * per epoch, base rate 0.1; do not edit. */\n"
                "#ifndef TESTS_DATA_OPTIM_SCHEDULE_H\n#define TESTS_DATA_OPTIM_SCHEDULE_H\n\n"
                "/* clang-format off */\n")
        for name, (epochs, make) in cases.items():
            values = schedule_values(make, epochs)
            f.write(f"static const double {name}[{epochs}] = {{\n")
            for k in range(0, epochs, 5):
                f.write("    " + ", ".join(repr(x) for x in values[k:k + 5]) + ",\n")
            f.write("};\n")
        f.write("/* clang-format on */\n\n#endif\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["sgd"]:
        print(json.dumps(sgd_values()))
    else:
        data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
        write_sgd(os.path.join(data, "optim_sgd.h"))
        write_schedule(os.path.join(data, "optim_schedule.h"))
