# SPDX-License-Identifier: Apache-2.0
"""Make tests/data/decode: small pictures of every kind, and beside each NAME.ext a NAME.rgb with the
pixels Pillow reads from it, upright, as 8-bit RGB. Run in the repository root; needs Pillow, gcc, and
libjpeg. The committed files came from Pillow 9.4 with libjpeg-turbo 2.1.5."""
import glob
import os
import subprocess

from PIL import Image, ImageOps

OUT = "tests/data/decode/"
WRITER = r"""
#include "tools/jpeg_write.h"
#include <stdio.h>
#include <stdlib.h>
static void put(const char *path, tool_jpeg_spec s)
{
    enum { W = 45, H = 37 };
    static unsigned char rgb[W * H * 3];
    unsigned char *out;
    size_t len;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            unsigned char *p = rgb + (y * W + x) * 3;
            p[0] = x * 5; p[1] = y * 6; p[2] = (x / 8 + y / 8) % 2 ? 220 : 40 + (x * y) % 50;
        }
    s.quality = 90;
    if (tool_jpeg_write(&s, rgb, W, H, &out, &len)) exit(1);
    FILE *f = fopen(path, "wb");
    fwrite(out, 1, len, f);
    fclose(f);
    free(out);
}
int main(void)
{
    put("tests/data/decode/ycc_420.jpg", (tool_jpeg_spec){ 0 });
    put("tests/data/decode/ycc_422.jpg", (tool_jpeg_spec){ .h_samp = 2, .v_samp = 1 });
    put("tests/data/decode/ycc_440.jpg", (tool_jpeg_spec){ .h_samp = 1, .v_samp = 2 });
    put("tests/data/decode/ycc_411.jpg", (tool_jpeg_spec){ .h_samp = 4, .v_samp = 1 });
    put("tests/data/decode/ycc_410.jpg", (tool_jpeg_spec){ .h_samp = 4, .v_samp = 2 });
    put("tests/data/decode/progressive.jpg", (tool_jpeg_spec){ .progressive = 1 });
    put("tests/data/decode/arithmetic.jpg", (tool_jpeg_spec){ .arithmetic = 1 });
    put("tests/data/decode/restart.jpg", (tool_jpeg_spec){ .restart_rows = 1 });
    put("tests/data/decode/gray.jpg", (tool_jpeg_spec){ .color = TOOL_JPEG_GRAY });
    put("tests/data/decode/rgb.jpg", (tool_jpeg_spec){ .color = TOOL_JPEG_RGB });
    put("tests/data/decode/cmyk.jpg", (tool_jpeg_spec){ .color = TOOL_JPEG_CMYK });
    put("tests/data/decode/ycck.jpg", (tool_jpeg_spec){ .color = TOOL_JPEG_YCCK });
    for (int o = 1; o <= 8; o++) {
        char path[64];
        sprintf(path, "tests/data/decode/turn_%d.jpg", o);
        put(path, (tool_jpeg_spec){ .orientation = o });
    }
    return 0;
}
"""


def write_jpegs():
    subprocess.run(["gcc", "-x", "c", "-", "-x", "c", "tools/jpeg_write.c", "-Iinclude", "-I.",
                    "-D_GNU_SOURCE", "-o", "/tmp/decode_writer", "-ljpeg"],
                   input=WRITER.encode(), check=True)
    subprocess.run(["/tmp/decode_writer"], check=True)


def write_others():
    base = Image.open(OUT + "ycc_422.jpg").convert("RGB")
    base.save(OUT + "png_rgb.png")
    alpha = Image.linear_gradient("L").resize(base.size)
    rgba = base.copy()
    rgba.putalpha(alpha)
    rgba.save(OUT + "png_rgba.png")
    base.convert("LA").save(OUT + "png_gray_alpha.png")
    palette = base.quantize(64)
    palette.save(OUT + "png_palette.png", transparency=bytes(range(64)))
    base.convert("1").save(OUT + "png_bits.png")
    exif = Image.Exif()
    exif[0x112] = 6
    base.save(OUT + "png_turn.png", exif=exif)
    base.save(OUT + "webp_lossless.webp", lossless=True)
    rgba.save(OUT + "webp_lossy.webp", quality=70)
    base.save(OUT + "webp_turn.webp", quality=70, exif=exif)
    base.save(OUT + "animated.webp", save_all=True, append_images=[ImageOps.mirror(base)])


def write_expected():
    for path in sorted(glob.glob(OUT + "*.[jpw]*")):
        picture = Image.open(path)
        if not getattr(picture, "is_animated", False):
            with open(os.path.splitext(path)[0] + ".rgb", "wb") as f:
                f.write(ImageOps.exif_transpose(picture).convert("RGB").tobytes())


os.makedirs(OUT, exist_ok=True)
write_jpegs()
write_others()
write_expected()
