#!/usr/bin/env python3
"""Write tests/data/weights_torch.safetensors: PyTorch's state of a small network with 5 classes, the one of
tests/checkpoint_net.h but for their number (torch 1.13, safetensors 0.8). Tensor k holds k, k + 1/8, ..."""
import os

import torch
from safetensors.torch import save_file
from torch import nn

net = nn.Sequential()
net.add_module("conv1", nn.Conv2d(3, 32, 3, bias=False))
net.add_module("bn1", nn.BatchNorm2d(32))
net.add_module("fc", nn.Linear(32, 5))
names = ["conv1.weight", "bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var", "fc.weight", "fc.bias"]
state = net.state_dict()
with torch.no_grad():
    for k, name in enumerate(names):
        count = state[name].numel()
        state[name].copy_((k + torch.arange(count) / 8).reshape(state[name].shape))
    state["bn1.num_batches_tracked"].fill_(11)

data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
save_file(state, os.path.join(data, "weights_torch.safetensors"))
