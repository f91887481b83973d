#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Floats and what PyTorch rounds them to as bfloat16 and half: bits in hexadecimal, one set a line.

Run once: make_convert16.py > tests/data/convert16.txt (PyTorch 1.13)."""
import struct
import torch


def bits(f):
    return struct.unpack("<I", struct.pack("<f", f))[0]


def of_bits(b):
    return struct.unpack("<f", struct.pack("<I", b & 0xFFFFFFFF))[0]


values = [0, 1, -1, 0.485, 2.64, -2.1179, 65504, 65519.996, 65520, 1e5, 1e-8, 3.4e38, of_bits(0x7F800000)]
values += [2.0**-24, 2.0**-25, 2.0**-25 * 1.0001, 2.0**-14, 2.0**-14 * 0.9999, 6.1e-5, 1.5 * 2.0**-24]
patterns = set()
for v in values:
    for sign in (0, 0x80000000):
        patterns.add(bits(v) ^ sign)
for exponent in (0, 1, 90, 102, 103, 104, 112, 113, 120, 127, 141, 142, 143, 254):  # ties, and beside them
    for mantissa in (0x0000, 0x0FFF, 0x1000, 0x1001, 0x2FFF, 0x3000, 0x3001, 0x7FFF, 0x8000, 0x8001, 0x17FFF,
                     0x18000, 0x18001, 0x7FEFFF, 0x7FF000, 0x7F7FFF, 0x7F8000, 0x7FFFFF):
        patterns.add(exponent << 23 | mantissa)
        patterns.add(0x80000000 | exponent << 23 | mantissa)
for b in sorted(patterns):
    t = torch.tensor([of_bits(b)], dtype=torch.float32)
    bf = t.to(torch.bfloat16).view(torch.int16).item() & 0xFFFF
    half = t.to(torch.float16).view(torch.int16).item() & 0xFFFF
    print(f"{b:08x} {bf:04x} {half:04x}")
