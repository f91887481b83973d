#!/usr/bin/env python3
"""Write tests/data/safetensors_reference.safetensors with the reference writer (safetensors 0.8)."""
import os

import numpy as np
from safetensors.numpy import save_file

names = ["layer1.0.conv1.weight", "layer1.0.bn1.running_mean", "fc.bias", "a \"quoted\" \\ näme\t"]
tensors = {n: np.arange(6 + k, dtype=np.float32) * (k + 1) for k, n in enumerate(names)}
tensors["layer1.0.conv1.weight"] = tensors["layer1.0.conv1.weight"].reshape(1, 2, 3, 1)
tensors["bn1.num_batches_tracked"] = np.array(7, dtype=np.int64)
tensors["layer1.0.bn1.num_batches_tracked"] = np.array(-2, dtype=np.int64)
tensors["half"] = np.array([1, 2, 3], dtype=np.float16)
tensors["mask"] = np.array([[True, False, True]], dtype=np.bool_)
tensors["bytes"] = np.array([9, 8, 7, 6], dtype=np.uint8)
tensors["double"] = np.array([0.5, -0.25], dtype=np.float64)
tensors["int"] = np.array([-5], dtype=np.int32)
tensors["none"] = np.zeros((0, 3), dtype=np.float32)

data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
save_file(tensors, os.path.join(data, "safetensors_reference.safetensors"), {"format": "pt"})
