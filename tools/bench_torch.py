#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Images per second of PyTorch beside dptrain's: channels_last, AMP, cudnn.benchmark, SGD with momentum.

  tools/bench_torch.py --arch resnet50 --batch 256 --steps 100 [--data DIR --workers N] [--device cuda:0]

Without --data one batch of random numbers on the device is used again and again. With it,
DIR/train/CLASS/* goes through torchvision's ImageFolder, RandomResizedCrop and flip. Prints one line
"images_per_s VALUE": the median of the steps of the second half. Exit 77: torch or the device is missing."""
import argparse
import statistics
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--arch", default="resnet50")
parser.add_argument("--batch", type=int, default=256)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--data")
parser.add_argument("--workers", type=int, default=8)
parser.add_argument("--device", default="cuda:0")
args = parser.parse_args()

try:
    import torch
    import torchvision
except ImportError as e:
    print(f"not possible here: {e}", file=sys.stderr)
    sys.exit(77)
if args.device.startswith("cuda") and not torch.cuda.is_available():
    print(f"not possible here: torch {torch.__version__} has no GPU", file=sys.stderr)
    sys.exit(77)

device = torch.device(args.device)
gpu = device.type == "cuda"
torch.backends.cudnn.benchmark = True
model = getattr(torchvision.models, args.arch)(num_classes=1000).to(device)
model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
loss_of = torch.nn.CrossEntropyLoss()


def random_batches():
    x = torch.randn(args.batch, 3, args.size, args.size, device=device)
    x = x.to(memory_format=torch.channels_last)
    y = torch.randint(0, 1000, (args.batch,), device=device)
    while True:
        yield x, y


def picture_batches():
    t = torchvision.transforms
    data = torchvision.datasets.ImageFolder(
        args.data + "/train",
        t.Compose([t.RandomResizedCrop(args.size), t.RandomHorizontalFlip(), t.ToTensor(),
                   t.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    loader = torch.utils.data.DataLoader(data, args.batch, shuffle=True, drop_last=True, pin_memory=gpu,
                                         num_workers=args.workers, persistent_workers=args.workers > 0)
    while True:
        for x, y in loader:
            yield (x.to(device, non_blocking=True).to(memory_format=torch.channels_last),
                   y.to(device, non_blocking=True))


def step(x, y):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=gpu):
        loss = loss_of(model(x), y)
    loss.backward()
    optimizer.step()


CHUNK = 10 if gpu and args.steps >= 40 else 1  # steps between two looks at the clock
times = []
batches = picture_batches() if args.data else random_batches()
for k in range(args.steps):
    step(*next(batches))
    if (k + 1) % CHUNK == 0:
        if gpu:
            torch.cuda.synchronize(device)
        times.append(time.perf_counter())
spans = [b - a for a, b in zip(times, times[1:])][len(times) // 2 - 1:]
print(f"torch {torch.__version__}, {args.arch}, batch {args.batch}, {'bf16' if gpu else 'fp32'}", file=sys.stderr)
print(f"images_per_s {args.batch * CHUNK / statistics.median(spans):.1f}")
