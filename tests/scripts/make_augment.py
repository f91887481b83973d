#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/augment_*.txt: CRC-32 of what Pillow and torchvision make of formula pictures.

Made with Pillow 9.4.0 and torchvision 0.14; run in the root of the source tree. The pictures are
drawn by tests/augment_picture.c with the same formula.
"""
import random
import zlib

import numpy as np
from PIL import Image
from torchvision.transforms import CenterCrop, InterpolationMode, Resize

FILTERS = [Image.BILINEAR, Image.BICUBIC]
SIDES = [1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 31, 33, 64, 97, 100, 128, 181]


def picture(w, h, seed):
    """Noise, slopes or black and white blocks, by seed modulo 3."""
    y, x, c = np.mgrid[0:h, 0:w, 0:3].astype(np.uint32)
    v = x * np.uint32(2654435761) + y * np.uint32(2246822519) + c * np.uint32(3266489917)
    v = v + np.uint32(seed * 668265263 & 0xFFFFFFFF)
    v ^= v >> np.uint32(15)
    v *= np.uint32(2246822519)
    v ^= v >> np.uint32(13)
    if seed % 3 == 1:
        v = x * np.uint32(3) + y * np.uint32(5) + c * np.uint32(40) + np.uint32(seed)
    elif seed % 3 == 2:
        v = ((x // np.uint32(3) + y // np.uint32(2) + c + np.uint32(seed)) % np.uint32(2)) * np.uint32(255)
    return Image.fromarray((v & np.uint32(255)).astype(np.uint8))


def crc(im):
    return "%08x" % zlib.crc32(np.ascontiguousarray(np.array(im)).tobytes())


def side(rnd, top):
    return rnd.choice([s for s in SIDES if s <= top] + [rnd.randint(1, top)])


def resize_cases(out, rnd):
    out.write("# w h seed  box x y w h  resized w h  window x y w h  filter flip  crc\n")
    for i in range(700):
        w, h = side(rnd, 181), side(rnd, 181)
        if i % 50 == 0:
            w, h = rnd.choice([(1, 4000), (4000, 1), (3000, 3), (2, 2500)])
        bw, bh = rnd.randint(1, w), rnd.randint(1, h)
        if i % 7 == 0:
            bw, bh = w, h
        x, y = rnd.randint(0, w - bw), rnd.randint(0, h - bh)
        ow, oh = side(rnd, 100), side(rnd, 100)
        rw, rh, wx, wy = ow, oh, 0, 0
        if i % 3 == 0:  # a window of the resized picture, which may stick out
            rw, rh = side(rnd, 181), side(rnd, 181)
            wx, wy = rnd.randint(-ow + 1, rw - 1), rnd.randint(-oh + 1, rh - 1)
        if i % 11 == 0:
            rw, ow, wx = bw, bw, 0  # nothing to do across
        if i % 13 == 0:
            rh, oh, wy = bh, bh, 0
        f, flip = rnd.randint(0, 1), rnd.randint(0, 1)
        im = picture(w, h, i).crop((x, y, x + bw, y + bh)).resize((rw, rh), FILTERS[f])
        im = im.crop((wx, wy, wx + ow, wy + oh))
        if flip:
            im = im.transpose(Image.FLIP_LEFT_RIGHT)
        print(w, h, i, x, y, bw, bh, rw, rh, wx, wy, ow, oh, f, flip, crc(im), file=out)


def box_cases(out, rnd):
    """Fractional boxes, which scaled sources have: eighths, so that single precision is exact."""
    out.write("# w h seed  box x0 y0 x1 y1 in eighths  out w h  filter  crc\n")
    for i in range(200):
        w, h = side(rnd, 128), side(rnd, 128)
        x0, y0 = rnd.randint(0, 8 * w - 8), rnd.randint(0, 8 * h - 8)
        x1, y1 = rnd.randint(x0 + 8, 8 * w), rnd.randint(y0 + 8, 8 * h)
        ow, oh, f = side(rnd, 100), side(rnd, 100), rnd.randint(0, 1)
        im = picture(w, h, i).resize((ow, oh), FILTERS[f], box=(x0 / 8, y0 / 8, x1 / 8, y1 / 8))
        print(w, h, i, x0, y0, x1, y1, ow, oh, f, crc(im), file=out)


def scaled_cases(out, rnd):
    """Sources that were decoded at 1/d: the picture is the scaled one, the box that of the full one."""
    out.write("# full w h seed  d  box x y w h  out w h  filter flip  crc\n")
    for i in range(150):
        d = rnd.choice([2, 4, 8])
        w, h = rnd.randint(d, 400), rnd.randint(d, 400)
        bw, bh = rnd.randint(d, w), rnd.randint(d, h)
        x, y = rnd.randint(0, w - bw), rnd.randint(0, h - bh)
        ow, oh = side(rnd, bw // d), side(rnd, bh // d)
        f, flip = rnd.randint(0, 1), rnd.randint(0, 1)
        x0, y0, x1, y1 = x // d, y // d, -(-(x + bw) // d), -(-(y + bh) // d)
        im = picture(-(-w // d), -(-h // d), i).crop((x0, y0, x1, y1))
        box = (x / d - x0, y / d - y0, (x + bw) / d - x0, (y + bh) / d - y0)
        im = im.resize((ow, oh), FILTERS[f], box=box)
        if flip:
            im = im.transpose(Image.FLIP_LEFT_RIGHT)
        print(w, h, i, d, x, y, bw, bh, ow, oh, f, flip, crc(im), file=out)


def eval_cases(out, rnd):
    out.write("# w h seed  resize  crop w h  filter  crc\n")
    sizes = [(1, 400), (400, 1), (3, 1000), (1, 1), (2, 3), (64, 64), (63, 64), (65, 64), (50, 51)]
    sizes += [(rnd.randint(1, 200), rnd.randint(1, 200)) for _ in range(90)]
    for i, (w, h) in enumerate(sizes):
        short = rnd.choice([1, 8, 20, 37, 64])
        cw, ch = rnd.choice([(short, short), (16, 16), (15, 15), (33, 20), (20, 33), (70, 71), (40, 8)])
        f = i % 2
        mode = [InterpolationMode.BILINEAR, InterpolationMode.BICUBIC][f]
        im = CenterCrop((ch, cw))(Resize(short, mode)(picture(w, h, i)))
        assert im.size == (cw, ch)
        print(w, h, i, short, cw, ch, f, crc(im), file=out)


def rotate_cases(out, rnd):
    out.write("# w h seed  degrees  bilinear  fill r g b  crc\n")
    angles = [0, 90, 180, 270, 360, -90, -180, 450, 45, -45, 1, -1, 30, 1e-14, 1e-6, 180.00000000000003]
    for i in range(300):
        w, h = side(rnd, 128), side(rnd, 128)
        if i % 3 == 0:
            h = w
        a = angles[i // 2 % len(angles)] if i < 100 else rnd.uniform(-180, 180)
        b = i % 2
        fill = (0, 0, 0) if i % 5 else tuple(rnd.randint(0, 255) for _ in range(3))
        mode = [Image.NEAREST, Image.BILINEAR][b]
        print(w, h, i, repr(float(a)), b, *fill, crc(picture(w, h, i).rotate(a, mode, fillcolor=fill)), file=out)


def main():
    for make in resize_cases, box_cases, scaled_cases, eval_cases, rotate_cases:
        name = make.__name__.removesuffix("_cases")
        with open(f"tests/data/augment_{name}.txt", "w", encoding="ascii") as out:
            make(out, random.Random(name))


if __name__ == "__main__":
    main()
