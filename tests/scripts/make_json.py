#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/json_strings.txt and tests/data/json_numbers.txt.

Strings: bytes in hex, then the JSON string that Python's json module makes of
them after decoding as UTF-8 with "replace", in hex.
Numbers: a double as hexadecimal float, then its shortest decimal text (repr).
"""
import json
import random
import struct
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
rng = random.Random(20240607)


def strings():
    yield from (bytes([c]) for c in range(1, 256))
    yield from (s.encode() for s in ("", "a\"b\\c/d", "grün", "€", "日本", "😀", "\u2028", "\x7f"))
    broken = ["c080", "e08080", "eda080", "f0808080", "f4908080", "f880808080", "e282", "e28241",
              "f09f98", "f09f9841", "80bf", "c3", "c3c3a9", "ff41fe", "e0a0", "f0908d20", "edb080"]
    yield from map(bytes.fromhex, broken)
    lead = [0x41, 0xC3, 0xE2, 0xE0, 0xED, 0xF0, 0xF4, 0x80, 0x90, 0xA0, 0xBF, 0x82, 0xAC, 0xFF]
    for _ in range(300):
        yield bytes(rng.choice(lead) for _ in range(rng.randint(1, 12)))


def numbers():
    yield from (0.0, -0.0, 1.0, -1.0, 100.0, 0.1, 1 / 3, 2 / 3, 1e15, 1e16, 1e21, 1e22, 1e23, 1e300)
    yield from (5e-324, 2.2250738585072014e-308, 2.225073858507201e-308, 1.7976931348623157e308)
    yield from (9007199254740993.0, 123456789012345680.0, 0.30000000000000004, 4.35, 0.001)
    for _ in range(300):
        v = struct.unpack("<d", rng.getrandbits(64).to_bytes(8, "little"))[0]
        if v - v == 0:
            yield v
    for _ in range(100):
        yield round(rng.uniform(-1000, 1000), rng.randint(0, 9))


with open(DATA / "json_strings.txt", "w", encoding="ascii") as f:
    for s in strings():
        text = json.dumps(s.decode("utf-8", "replace"), ensure_ascii=False)
        print(s.hex() or "-", text.encode().hex(), file=f)
with open(DATA / "json_numbers.txt", "w", encoding="ascii") as f:
    for v in numbers():
        print(v.hex(), repr(v), file=f)
