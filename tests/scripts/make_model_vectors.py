#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes tests/data/model_<arch>_{eval,train}.txt: what PyTorch computes, in double precision, for
# networks whose weights and pictures follow a formula that tests/backend_cases.c repeats. Made with
# PyTorch 1.13 and torchvision 0.14.1. Usage: make_model_vectors.py [FOLDER]
import math
import os
import sys

import numpy as np
import torch
import torchvision
from torch import nn

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "data")
PIXELS, SAMPLES = 1 << 20, 5


def noise(stream, count):
    """count floats in [-1, 1) with 24 bits: a function of (stream, index)."""
    x = np.arange(count, dtype=np.uint64) + np.uint64(stream * 0x10000019 & 0xFFFFFFFFFFFFFFFF)
    x = (x * np.uint64(0x9E3779B97F4A7C15)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    x ^= x >> np.uint64(29)
    x = (x * np.uint64(0xBF58476D1CE4E5B9)) & np.uint64(0xFFFFFFFFFFFFFFFF)
    return (x >> np.uint64(40)).astype(np.float64) / (1 << 23) - 1


def values(name, shape, stream):
    u = noise(stream, int(np.prod(shape)))
    if name.endswith("running_var"):
        v = 1 + 0.5 * u
    elif name.endswith("running_mean"):
        v = 0.1 * u
    elif len(shape) == 1:
        v = (0.1 * u) if name.endswith("bias") else 1 + 0.25 * u
    else:
        v = math.sqrt(6 / np.prod(shape[1:])) * u
    return torch.from_numpy(v.astype(np.float32).astype(np.float64).reshape(shape))


class Tinynet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        width = [3, 16, 32, 64, 64]
        for i in range(4):
            setattr(self, f"conv{i + 1}", nn.Conv2d(width[i], width[i + 1], 3, padding=1))
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        for i in range(4):
            x = torch.relu(getattr(self, f"conv{i + 1}")(x))
            if i < 3:
                x = torch.max_pool2d(x, 2)
        return self.fc(x.mean((2, 3)))


def make(arch, classes):
    model = Tinynet(classes) if arch == "tinynet" else getattr(torchvision.models, arch)(num_classes=classes)
    model = model.double()
    with torch.no_grad():
        for i, (name, p) in enumerate(model.named_parameters()):
            p.copy_(values(name, p.shape, 1 + i))
        buffers = [(k, b) for k, b in model.named_buffers() if "running" in k]
        for i, (name, b) in enumerate(buffers):
            b.copy_(values(name, b.shape, 1000 + i))
    return model


def line(f, *parts):
    f.write(" ".join(p if isinstance(p, str) else format(p, ".9g") for p in parts) + "\n")


def summary(t):
    """Norm, then SAMPLES evenly spaced values."""
    t = t.detach().flatten()
    return [t.norm().item()] + [t[i * (len(t) - 1) // (SAMPLES - 1)].item() for i in range(SAMPLES)]


def write(arch, mode, height, width, n, classes):
    model = make(arch, classes)
    x = noise(5000, n * 3 * height * width) * 2
    x = torch.from_numpy(x.astype(np.float32).astype(np.float64).reshape(n, 3, height, width))
    y = torch.tensor([(i * 7 + 1) % classes for i in range(n)])
    model.train(mode == "train")
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = 1.0  # running statistics become those of the batch
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, y, reduction="sum")
    rank = (logits > logits.gather(1, y[:, None])).sum(1)
    with open(os.path.join(FOLDER, f"model_{arch}_{mode}.txt"), "w", encoding="ascii") as f:
        line(f, "case", height, width, n, classes)
        line(f, "sums", loss.item(), (rank < 1).sum().item(), (rank < 5).sum().item())
        if mode == "eval":
            for i in range(n):
                line(f, "logits", *logits[i].tolist())
            return
        (loss / 16).backward()
        for name, p in model.named_parameters():
            line(f, "grad", name, *summary(p.grad))
        for name, b in model.named_buffers():
            if "running" in name:
                line(f, "stat", name, *summary(b))


for a in ("resnet18", "resnet34", "resnet50"):
    write(a, "eval", 64, 64, 2, 10)
write("tinynet", "eval", 20, 28, 3, 7)
write("tinynet", "train", 20, 28, 3, 7)
write("resnet18", "train", 64, 64, 4, 10)
write("resnet50", "train", 64, 64, 4, 10)
