#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Writes tests/data/model_keys_<arch>.txt: every key of torchvision's state_dict with its shape, in
# order. Made with torchvision 0.14.1. Usage: make_model_keys.py [FOLDER]
import os
import sys

import torchvision

folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "data")
for arch in ("resnet18", "resnet50"):
    state = getattr(torchvision.models, arch)().state_dict()
    with open(os.path.join(folder, f"model_keys_{arch}.txt"), "w", encoding="ascii") as f:
        for name, value in state.items():
            f.write(" ".join([name, *map(str, value.shape)]) + "\n")
