#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/mix_*.txt: mixup, cutmix and the loss of soft labels as torch computes them.

Made with torch 1.13 on CPU; run in the root of the source tree. mixup() and cutmix() are RandomMixup and
RandomCutmix of torchvision 0.14's classification references (transforms.py), with lambda and the centre of
the box given, and with the batch rolled by one the other way: the partner of a sample is the next one.
"""
import math
import random
import zlib

import torch
from make_augment import picture

HEADER = "# written by tests/scripts/make_mix.py\n"


def mixup(batch, lambda_param):
    batch_rolled = batch.roll(-1, 0)
    batch_rolled.mul_(1.0 - lambda_param)
    return batch.clone().mul_(lambda_param).add_(batch_rolled)


def cutmix_box(lambda_param, r_x, r_y, width, height):
    r = 0.5 * math.sqrt(1.0 - lambda_param)
    r_w_half = int(r * width)
    r_h_half = int(r * height)
    x1 = int(torch.clamp(torch.tensor(r_x) - r_w_half, min=0))
    y1 = int(torch.clamp(torch.tensor(r_y) - r_h_half, min=0))
    x2 = int(torch.clamp(torch.tensor(r_x) + r_w_half, max=width))
    y2 = int(torch.clamp(torch.tensor(r_y) + r_h_half, max=height))
    return x1, y1, x2, y2, float(1.0 - (x2 - x1) * (y2 - y1) / (width * height))


def cutmix(batch, lambda_param, r_x, r_y):
    x1, y1, x2, y2, _ = cutmix_box(lambda_param, r_x, r_y, batch.shape[3], batch.shape[2])
    mixed = batch.clone()
    mixed[:, :, y1:y2, x1:x2] = batch.roll(-1, 0)[:, :, y1:y2, x1:x2]
    return mixed


def crc(t):
    return zlib.crc32(t.contiguous().numpy().tobytes())


def batch_of(n, w, h, seed):
    """[n][3][h][w] of uint8."""
    pictures = [torch.tensor(list(picture(w, h, seed + k).tobytes()), dtype=torch.uint8) for k in range(n)]
    return torch.stack([p.reshape(h, w, 3).permute(2, 0, 1) for p in pictures])


def levels(mixed):
    """Exact values, in double, to the nearest level, halves up."""
    return torch.floor(mixed + 0.5).to(torch.uint8)


def picture_cases(rnd):
    with open("tests/data/mix_pictures.txt", "w", encoding="utf-8") as out:
        out.write(HEADER + "# kind(1 mixup 2 cutmix) n w h seed lambda x y  crc: u8 nhwc, f32 nchw, f32 nhwc, bf16 nchw, f16 nhwc\n")
        for i in range(60):
            n, w, h = rnd.choice([2, 3, 5]), rnd.randint(1, 50), rnd.randint(1, 50)
            lam = rnd.choice([0.0, 0.5, 2.0**-15, 1 - 2.0**-15, 1.0] + 5 * [rnd.randint(0, 2**15) / 2**15])
            x, y = rnd.randrange(w), rnd.randrange(h)
            bytes_ = batch_of(n, w, h, i)
            floats = (bytes_.to(torch.float32) - 128) / 64
            kind = 1 + i % 2
            if kind == 1:
                u8, f32 = levels(mixup(bytes_.to(torch.float64), lam)), mixup(floats, lam)
            else:
                u8, f32 = cutmix(bytes_, lam, x, y), cutmix(floats, lam, x, y)
            # the levels are exact in 16 bits: mixed as float32, then rounded
            half = f32.permute(0, 2, 3, 1).to(torch.float16), f32.to(torch.bfloat16).view(torch.int16)
            sums = [crc(t) for t in (u8.permute(0, 2, 3, 1), f32, f32.permute(0, 2, 3, 1), half[1], half[0])]
            out.write(f"{kind} {n} {w} {h} {i} {lam!r} {x} {y} {' '.join(f'{s:08x}' for s in sums)}\n")


def box_cases(rnd):
    with open("tests/data/mix_box.txt", "w", encoding="utf-8") as out:
        out.write(HEADER + "# w h lambda x y  box: x1 y1 x2 y2  new lambda\n")
        for _ in range(200):
            w, h = rnd.choice([(1, 1), (224, 224), (32, 32), (rnd.randint(1, 400), rnd.randint(1, 400))])
            lam = rnd.choice([0.0, 1.0, 0.75, rnd.random(), rnd.random(), rnd.random()])
            x, y = rnd.randrange(w), rnd.randrange(h)
            x1, y1, x2, y2, new = cutmix_box(lam, x, y, w, h)
            out.write(f"{w} {h} {lam!r} {x} {y} {x1} {y1} {x2} {y2} {new!r}\n")


def loss_cases(rnd):
    with open("tests/data/mix_loss.txt", "w", encoding="utf-8") as out:
        out.write(HEADER + "# classes label label2 weight  top-1  loss, then for each class: logit gradient\n")
        for _ in range(40):
            classes = rnd.choice([2, 3, 7])
            a, b = rnd.randrange(classes), rnd.randrange(classes)
            mix = rnd.choice([0.0, 1.0, 0.5] + 5 * [rnd.randint(0, 2**15) / 2**15])
            x = torch.tensor([rnd.randint(-400, 400) / 64 for _ in range(classes)], dtype=torch.float64)
            x.requires_grad_(True)
            want = torch.zeros(classes, dtype=torch.float64)
            want[a] += mix
            want[b] += 1 - mix
            loss = torch.nn.functional.cross_entropy(x[None], want[None])
            loss.backward()
            hit = int(int(x.argmax()) == (a if mix >= 0.5 else b))
            out.write(f"{classes} {a} {b} {mix!r} {hit} {loss.item()!r}\n")
            for v, g in zip(x.tolist(), x.grad.tolist()):
                out.write(f"{v!r} {g!r}\n")


if __name__ == "__main__":
    picture_cases(random.Random(1))
    box_cases(random.Random(2))
    loss_cases(random.Random(3))
