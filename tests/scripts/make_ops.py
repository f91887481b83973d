#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/ops_*.txt: what Pillow and torchvision make of formula pictures, parameters injected.

Made with Pillow 9.4.0, torchvision 0.14 and torch 1.13 on CPU; run in the root of the source tree. The
pictures are those of make_augment.py; results are CRC-32, or the bytes in hexadecimal.
"""
import random

import numpy as np
import torch
from make_augment import crc, picture, side
from torchvision.transforms import InterpolationMode, RandomErasing, autoaugment
from torchvision.transforms import functional as F

# As enum dpl_op_kind (augment/ops.h) and enum dpl_policy_name (augment/policy.h) number them.
KINDS = ["brightness", "contrast", "saturation", "hue", "sharpness", "grayscale", "invert", "posterize",
         "solarize", "autocontrast", "equalize", "blur", "rotate", "affine"]
NAMES = ["Identity", "ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast",
         "Sharpness", "Posterize", "Solarize", "AutoContrast", "Equalize", "Invert"]
MODES = [InterpolationMode.NEAREST, InterpolationMode.BILINEAR]
POLICIES = {1: autoaugment.RandAugment(), 2: autoaugment.TrivialAugmentWide(), 3: autoaugment.AutoAugment()}


def space(policy, w, h):
    """Magnitudes of a policy for pictures of w x h."""
    if policy == 1:
        return POLICIES[1]._augmentation_space(31, (h, w))
    if policy == 2:
        return POLICIES[2]._augmentation_space(31)
    return POLICIES[3]._augmentation_space(10, (h, w))


def color(im, kind, value):
    """Apply an operation that has one parameter at most."""
    simple = {"grayscale": lambda: F.to_grayscale(im, 3), "invert": lambda: F.invert(im),
              "autocontrast": lambda: F.autocontrast(im), "equalize": lambda: F.equalize(im),
              "posterize": lambda: F.posterize(im, int(value)), "solarize": lambda: F.solarize(im, value),
              "hue": lambda: F.adjust_hue(im, value), "sharpness": lambda: F.adjust_sharpness(im, value),
              "brightness": lambda: F.adjust_brightness(im, value), "contrast": lambda: F.adjust_contrast(im, value),
              "saturation": lambda: F.adjust_saturation(im, value)}
    return simple[kind]()


def value_for(kind, rnd, i):
    if kind == "hue":
        return rnd.choice([0.0, 0.5, -0.5, rnd.uniform(-0.5, 0.5)])
    if kind == "posterize":
        return float(i % 9)
    if kind == "solarize":
        return rnd.choice([0.0, 128.0, 255.0, 256.0, rnd.uniform(0, 255)])
    if KINDS.index(kind) < 5:
        return rnd.choice([0.0, 1.0, rnd.uniform(0, 1), rnd.uniform(1, 3)])
    return 0.0


def sizes(rnd):
    return rnd.choice([(1, 1), (1, 40), (40, 1), (2, 9), (3, 3), (side(rnd, 128), side(rnd, 128)), (64, 48)])


def color_cases(out, rnd):
    """Dim pictures and pictures of few values too, which histograms treat in their own way."""
    out.write("# w h seed  dim  kind value  crc\n")
    for i in range(440):
        kind = KINDS[i % 11]
        w, h = sizes(rnd)
        dim = rnd.choice([0, 0, 1, 2])
        im = picture(w, h, i)
        if dim:  # value -> 100 + value / 4, or 77
            im = im.point([100 + v // 4 if dim == 1 else 77 for v in range(256)] * 3)
        v = value_for(kind, rnd, i // 11)
        print(w, h, i, dim, KINDS.index(kind), repr(v), crc(color(im, kind, v)), file=out)


def jitter_cases(out, rnd):
    """ColorJitter with a given order and factors."""
    out.write("# w h seed  order  brightness contrast saturation hue  crc\n")
    for i in range(60):
        w, h = sizes(rnd)
        order = rnd.sample(range(4), 4)
        factors = [float(np.float32(rnd.uniform(0.6, 1.4))) for _ in range(3)] + [float(np.float32(rnd.uniform(-0.1, 0.1)))]
        im = picture(w, h, i)
        for k in order:
            im = color(im, KINDS[k], factors[k])
        print(w, h, i, *order, *map(repr, factors), crc(im), file=out)


def affine_cases(out, rnd):
    out.write("# w h seed  angle tx ty scale shear x y  at corner  bilinear  fill r g b  crc\n")
    for i in range(240):
        w, h = sizes(rnd)
        angle = rnd.choice([0.0, 90.0, 180.0, rnd.uniform(-180, 180)])
        tx, ty = rnd.randint(-w, w), rnd.randint(-h, h)
        scale = rnd.choice([1.0, 1.0, 0.5, 2.0, 0.001, rnd.uniform(0.3, 3)])
        shear = rnd.choice([(0.0, 0.0), (rnd.uniform(-60, 60), 0.0), (rnd.uniform(-60, 60), rnd.uniform(-60, 60))])
        if i % 3 == 0:
            angle, shear = 0.0, (0.0, 0.0)
        corner, b = int(i % 4 == 1), i % 2
        fill = (0, 0, 0) if i % 5 else tuple(rnd.randint(0, 255) for _ in range(3))
        im = F.affine(picture(w, h, i), angle, [tx, ty], scale, list(shear), MODES[b], list(fill), [0, 0] if corner else None)
        print(w, h, i, repr(angle), tx, ty, repr(scale), repr(shear[0]), repr(shear[1]), corner, b, *fill, crc(im), file=out)


def policy_cases(out, rnd):
    """Every operation of every policy, at several magnitudes and both signs."""
    out.write("# policy name bin negative  w h seed  bilinear  crc\n")
    for policy in POLICIES:
        for name, (magnitudes, signed) in space(policy, 1, 1).items():
            bins = len(magnitudes) if magnitudes.ndim else 1
            chosen = range(bins) if policy == 2 and bins > 1 else sorted({0, bins // 3, bins // 2, bins - 1})
            for k in chosen:
                for negative in range(2 if signed else 1):
                    w, h, b = side(rnd, 100), side(rnd, 100), rnd.randint(0, 1)
                    m = space(policy, w, h)[name][0]
                    m = float(m[k].item()) if m.ndim else 0.0
                    im = autoaugment._apply_op(picture(w, h, k), name, -m if negative else m, MODES[b], [0, 0, 0])
                    print(policy, NAMES.index(name), k, negative, w, h, k, b, crc(im), file=out)


def magnitude_cases(out, _):
    out.write("# policy name bin  w h  magnitude\n")
    for policy in POLICIES:
        for w, h in [(224, 37)]:
            for name, (magnitudes, _) in space(policy, w, h).items():
                for k in range(len(magnitudes) if magnitudes.ndim else 1):
                    m = float(magnitudes[k].item()) if magnitudes.ndim else 0.0
                    print(policy, NAMES.index(name), k, w, h, m.hex(), file=out)


def translate_cases(out, _):
    """Whole pixels by which RandAugment moves at each magnitude, for widths up to 600."""
    out.write("# width  pixels of bin 0..30\n")
    for w in [*range(1, 600, 7), 224, 331]:
        print(w, *[int(float(v)) for v in space(1, w, 1)["TranslateX"][0]], file=out)


def imagenet_cases(out, _):
    out.write("# pair  first: name p bin  second: name p bin\n")
    for i, pair in enumerate(POLICIES[3].policies):
        print(i, *[v for n, p, k in pair for v in (NAMES.index(n), p, k or 0)], file=out)


def crop_cases(out, rnd):
    """RandomCrop with padding, then flips: window and flips given."""
    out.write("# w h seed  padding  fill r g b  left top  crop w h  hflip vflip  crc\n")
    for i in range(80):
        w, h = sizes(rnd)
        pad = rnd.choice([0, 4, 9])
        tw, th = rnd.randint(1, w + 2 * pad), rnd.randint(1, h + 2 * pad)
        left, top = rnd.randint(0, w + 2 * pad - tw), rnd.randint(0, h + 2 * pad - th)
        fill = (0, 0, 0) if i % 2 else tuple(rnd.randint(0, 255) for _ in range(3))
        im = F.crop(F.pad(picture(w, h, i), pad, fill), top, left, th, tw)
        hf, vf = rnd.randint(0, 1), rnd.randint(0, 1)
        im = F.hflip(im) if hf else im
        im = F.vflip(im) if vf else im
        print(w, h, i, pad, *fill, left, top, tw, th, hf, vf, crc(im), file=out)


def erase_cases(out, rnd):
    """Size of RandomErasing's box for a given area and ratio; 0 0 = not smaller than the picture."""
    out.write("# w h  area ratio  box w h\n")
    for i in range(200):
        w, h = rnd.choice([(224, 224), (32, 32), (rnd.randint(1, 300), rnd.randint(1, 300))])
        area = rnd.choice([1.0, rnd.uniform(0.02, 0.33), rnd.uniform(0.02, 0.33)])
        ratio = rnd.choice([0.3, 3.3, rnd.uniform(0.3, 3.3), rnd.uniform(0.3, 3.3)])
        pic = torch.zeros(3, h, w)
        _, _, bh, bw, v = RandomErasing.get_params(pic, (area, area), (ratio, ratio), [0.0])
        if v is pic:  # ten tries failed
            bh = bw = 0
        print(w, h, repr(area), repr(ratio), bw, bh, file=out)


def blur_cases(out, rnd):
    """Not bit-equal: the bytes."""
    out.write("# w h seed  kernel sigma  bytes\n")
    for i in range(40):
        kernel = rnd.choice([1, 3, 5, 7, 13])
        w, h = rnd.randint(kernel // 2 + 1, 18), rnd.randint(kernel // 2 + 1, 12)
        sigma = rnd.choice([0.1, 2.0, rnd.uniform(0.1, 2.0), rnd.uniform(0.1, 2.0)])
        im = F.gaussian_blur(picture(w, h, i), [kernel, kernel], [sigma, sigma])
        print(w, h, i, kernel, repr(sigma), np.array(im).tobytes().hex(), file=out)


def main():
    for make in (color_cases, jitter_cases, affine_cases, policy_cases, magnitude_cases, translate_cases, imagenet_cases,
                 crop_cases, erase_cases, blur_cases):
        name = make.__name__.removesuffix("_cases")
        with open(f"tests/data/ops_{name}.txt", "w", encoding="ascii") as out:
            make(out, random.Random(name))


if __name__ == "__main__":
    main()
