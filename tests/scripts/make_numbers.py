#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/number_sizes.txt and tests/data/number_times.txt.

Each line: a text, then its value (exact fractions, rounded down), or "-" when
the text is not a size or time or does not fit.
"""
import random
from fractions import Fraction
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"
rng = random.Random(7)
SIZES = {"": 1, "B": 1}
for power, letter in enumerate("kMGT", 1):
    for b in ("", "B"):
        SIZES[letter + b] = 1000**power
        SIZES[letter + "i" + b] = 1024**power
TIMES = {"": 10**9, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def value(number, factor, limit):
    if "." in number and factor == 1:
        return "-"
    v = Fraction(number) * factor
    return str(v.numerator // v.denominator) if v <= limit else "-"


def number():
    whole = str(rng.getrandbits(rng.choice([1, 4, 10, 20, 34, 45, 64, 66])))
    if rng.random() < 0.1:
        whole = "0" * rng.randint(1, 5) + whole
    digits = "".join(rng.choice("0123456789") for _ in range(rng.choice([1, 2, 3, 9, 18, 25])))
    return whole + "." + digits if rng.random() < 0.4 else whole


def any_case(unit):
    return "".join(rng.choice([c.lower(), c.upper()]) for c in unit)


def write(name, units, limit, change):
    with open(DATA / name, "w", encoding="ascii") as f:
        for n in (0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30):
            print(n, value(str(n), units[""], limit), file=f)
        for _ in range(400):
            n, unit = number(), rng.choice(list(units))
            print(n + change(unit), value(n, units[unit], limit), file=f)


write("number_sizes.txt", SIZES, 2**64 - 1, any_case)
write("number_times.txt", TIMES, 2**63 - 1, lambda unit: unit)
