#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tree of very many pictures for measuring: hard links to one picture, named as ImageNet's.
   make_large_tree.py PICTURE ROOT CLASSES EACH     (EACH * CLASSES names, hardly any inodes)"""
import os
import shutil
import sys

LINKS = 60000  # ext4 takes 65000 names of one file


def main():
    picture, root = sys.argv[1], sys.argv[2]
    classes, each = int(sys.argv[3]), int(sys.argv[4])
    store = root + ".src"
    os.makedirs(store, exist_ok=True)
    made = 0
    for c in range(classes):
        title = f"n{1440000 + c * 137:08d}"
        folder = os.path.join(root, title)
        os.makedirs(folder, exist_ok=True)
        for i in range(each):
            if made % LINKS == 0:
                source = os.path.join(store, f"{made // LINKS}.jpg")
                shutil.copyfile(picture, source)
            os.link(source, f"{folder}/{title}_{(i * 7919) % (each * 13)}.JPEG")
            made += 1


main()
