#!/usr/bin/env python3
"""Write tests/data/safetensors_resnet18_keys.txt: what torchvision's resnet18(num_classes=2) holds."""
import os

import torch
import torchvision

dtypes = {torch.float32: "F32", torch.int64: "I64"}
data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
state = torchvision.models.resnet18(num_classes=2).state_dict()
with open(os.path.join(data, "safetensors_resnet18_keys.txt"), "w") as f:
    for name, t in state.items():
        f.write(f"{name} {dtypes[t.dtype]} {'x'.join(map(str, t.shape)) or '-'}\n")
