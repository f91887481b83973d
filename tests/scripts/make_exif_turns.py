#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests/data/exif_turns.txt: how a stored 3 x 2 picture with the gray values 1..6 shows, by
Pillow's ImageOps.exif_transpose. One line each: orientation, width and height as shown, values."""
import io
import os

from PIL import Image, ImageOps

folder = os.path.join(os.path.dirname(__file__), "..", "data")
with open(os.path.join(folder, "exif_turns.txt"), "w", encoding="ascii") as out:
    for orientation in range(1, 9):
        stored = Image.new("L", (3, 2))
        stored.putdata([1, 2, 3, 4, 5, 6])
        exif = stored.getexif()
        exif[0x0112] = orientation
        packed = io.BytesIO()
        stored.save(packed, "PNG", exif=exif)
        shown = ImageOps.exif_transpose(Image.open(packed))
        print(orientation, *shown.size, *shown.getdata(), file=out)
