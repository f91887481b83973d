#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/once_*.txt: crop, flips, affine map and rotation as one transform, as Pillow does it.

Made with Pillow 9.4.0 and torchvision 0.14; run in the root of the source tree. The pictures are those of
make_augment.py, results are CRC-32.
"""
import math
import random
from fractions import Fraction

from make_augment import crc, picture, side
from PIL import Image
from torchvision.transforms import functional as F

FILTERS = [Image.NEAREST, Image.BILINEAR]


def rotation(w, h, degrees):
    """The matrix that Image.rotate(degrees) makes, counter-clockwise."""
    angle = -math.radians(degrees % 360.0)
    a, b = round(math.cos(angle), 15), round(math.sin(angle), 15)
    return [a, b, a * -w / 2 + b * -h / 2 + w / 2, -b, a, -b * -w / 2 + a * -h / 2 + h / 2]


def then(m, inner):
    """Where m takes the point that inner gives."""
    a, b, c, d, e, f = inner
    return [m[0] * a + m[1] * d, m[0] * b + m[1] * e, m[0] * c + m[1] * f + m[2],
            m[3] * a + m[4] * d, m[3] * b + m[4] * e, m[3] * c + m[4] * f + m[5]]


def matrix(box_w, box_h, w, h, hflip, vflip, angle, affine):
    """From delivered pixels to pixels of the box: every step undone, the last one first."""
    m = rotation(w, h, angle)
    if affine:
        degrees, tx, ty, scale, shear = affine
        m = then(F._get_inverse_affine_matrix([w * 0.5, h * 0.5], degrees, [tx, ty], scale, list(shear)), m)
    if vflip:
        m[3:] = [-m[3], -m[4], h - m[5]]
    if hflip:
        m[:3] = [-m[0], -m[1], w - m[2]]
    return [v * (box_w / w) for v in m[:3]] + [v * (box_h / h) for v in m[3:]]


def draw(rnd, i):
    """Delivered size, flips, angle, affine map, filter, fill."""
    w, h = (rnd.choice([1, 2, 7, 16, 31, 40, 57]) for _ in range(2))
    angle = rnd.choice([0.0, 0.0, 90.0, 180.0, -90.0, 45.0, *(rnd.uniform(-180, 180) for _ in range(6))])
    affine = None
    if i % 4 == 0:
        shear = rnd.choice([(0.0, 0.0), (rnd.uniform(-60, 60), rnd.uniform(-60, 60))])
        affine = (rnd.choice([0.0, rnd.uniform(-180, 180)]), rnd.randint(-w, w), rnd.randint(-h, h),
                  rnd.choice([1.0, rnd.uniform(0.3, 3)]), shear)
    fill = (0, 0, 0) if i % 3 else tuple(rnd.randint(0, 255) for _ in range(3))
    return w, h, rnd.randint(0, 1), rnd.randint(0, 1), angle, affine, i % 2, fill


def text(affine):
    degrees, tx, ty, scale, shear = affine or (0.0, 0, 0, 1.0, (0.0, 0.0))
    return f"{int(bool(affine))} {degrees!r} {tx} {ty} {scale!r} {shear[0]!r} {shear[1]!r}"


def box_in(rnd, w, h, i):
    bw, bh = (w, h) if i % 7 == 0 else (rnd.randint(1, w), rnd.randint(1, h))
    return rnd.randint(0, w - bw), rnd.randint(0, h - bh), bw, bh


def pictures_cases(out, rnd):
    out.write("# w h seed  box x y w h  size w h  hflip vflip  angle  affine: 0|1 angle tx ty scale shear x y"
              "  bilinear  fill r g b  crc\n")
    for i in range(500):
        w, h = side(rnd, 181), side(rnd, 181)
        if i % 25 == 0:  # past the range of 16.16 fixed point too
            w, h = rnd.choice([(1, 4000), (4000, 1), (40000, 2), (3, 35000)])
        x, y, bw, bh = box_in(rnd, w, h, i)
        ow, oh, hflip, vflip, angle, affine, b, fill = draw(rnd, i)
        if i % 9 == 0:
            ow, oh = min(bw, 200), min(bh, 200)
        m = matrix(bw, bh, ow, oh, hflip, vflip, angle, affine)
        im = picture(w, h, i).crop((x, y, x + bw, y + bh)).transform((ow, oh), Image.AFFINE, m, FILTERS[b], fillcolor=fill)
        print(w, h, i, x, y, bw, bh, ow, oh, hflip, vflip, repr(angle), text(affine), b, *fill, crc(im), file=out)


def scaled_cases(out, rnd):
    """A source at 1/d: the picture drawn is the scaled one, the box ends at its whole pixels."""
    out.write("# w h seed  d  box x y w h  size w h  hflip vflip  angle  affine: 0|1 angle tx ty scale shear x y"
              "  bilinear  fill r g b  crc\n")
    for i in range(150):
        w, h, d = rnd.randint(80, 700), rnd.randint(80, 700), rnd.choice([2, 4, 8])
        x, y, bw, bh = box_in(rnd, w, h, i)
        ow, oh, hflip, vflip, angle, affine, b, fill = draw(rnd, i)
        m = [v / d for v in matrix(bw, bh, ow, oh, hflip, vflip, angle, affine)]
        m[2] += x / d - x // d
        m[5] += y / d - y // d
        im = picture((w + d - 1) // d, (h + d - 1) // d, i).crop((x // d, y // d, -(-(x + bw) // d), -(-(y + bh) // d)))
        im = im.transform((ow, oh), Image.AFFINE, m, FILTERS[b], fillcolor=fill)
        print(w, h, i, d, x, y, bw, bh, ow, oh, hflip, vflip, repr(angle), text(affine), b, *fill, crc(im), file=out)


def covered(n, resized, win, out):
    """Pixels of a side of n that a window covers when the side is resized."""
    return max(0, math.floor(Fraction(win * n, resized))), min(n, math.ceil(Fraction((win + out) * n, resized)))


def window_cases(out, rnd):
    """A window of the whole picture as resized: RandomCrop instead of RandomResizedCrop."""
    out.write("# w h seed  resized w h  window x y  size w h  hflip vflip  angle  affine: 0|1 angle tx ty scale shear x y"
              "  bilinear  fill r g b  crc\n")
    for i in range(200):
        w, h = side(rnd, 181), side(rnd, 181)
        ow, oh, hflip, vflip, angle, affine, b, fill = draw(rnd, i)
        rw, rh = (w, h) if i % 3 == 0 else (rnd.randint(1, 200), rnd.randint(1, 200))
        wx, wy = rnd.randint(1 - ow, rw - 1), rnd.randint(1 - oh, rh - 1)
        (x0, x1), (y0, y1) = covered(w, rw, wx, ow), covered(h, rh, wy, oh)
        m = matrix(ow, oh, ow, oh, hflip, vflip, angle, affine)
        m[2], m[5] = m[2] + wx, m[5] + wy
        m = [v * (w / rw) for v in m[:3]] + [v * (h / rh) for v in m[3:]]
        m[2], m[5] = m[2] - x0, m[5] - y0
        im = picture(w, h, i).crop((x0, y0, x1, y1)).transform((ow, oh), Image.AFFINE, m, FILTERS[b], fillcolor=fill)
        print(w, h, i, rw, rh, wx, wy, ow, oh, hflip, vflip, repr(angle), text(affine), b, *fill, crc(im), file=out)


def main():
    for make in (pictures_cases, scaled_cases, window_cases):
        name = make.__name__.removesuffix("_cases")
        with open(f"tests/data/once_{name}.txt", "w", encoding="ascii") as out:
            make(out, random.Random(name))


if __name__ == "__main__":
    main()
