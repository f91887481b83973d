/* SPDX-License-Identifier: Apache-2.0 */
/* dpload show: a sheet of pictures as training or evaluation sees them, each over its class's name; a
 * mixed one over both, with their weights. */
#include "base/alloc.h"
#include "base/optaugment.h"
#include "tools/dpload_cli.h"
#include "tools/font.h"
#include "tools/png_write.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 6, ABOVE = 4, LINE = TOOL_FONT_HEIGHT };

static const dpl_opt rows[] = {
    { "output", 'o', NULL, DPL_OPT_STRING, CLI_AT(output), 0, 0, NULL, "FILE",
      "the PNG file to write; needed", NULL, 1 },
    CLI_OPT_SIZE("each picture is N x N pixels [128]"),
    CLI_OPT_RECIPE,
    CLI_OPT_SUBSET("which part of DIR; auto goes by the recipe [auto]"),
    { "columns", 0, "cols", DPL_OPT_INT, CLI_AT(columns), 1, 64, NULL, "N", "pictures in a row [8]",
      NULL, 1 },
    { "rows", 0, NULL, DPL_OPT_INT, CLI_AT(rows), 1, 64, NULL, "N", "rows of pictures [4]", NULL,
      1 },
    CLI_OPT_VERBOSE,
    CLI_OPT_END,
};
static const char *const loader_rows[] = {
    "list",
    "index",
    "workers",
    "seed",
    "shuffle",
    "val-split",
    "scale",
    "ratio",
    "hflip",
    "rotate",
    "rotate-filter",
    "filter",
    "decode",
    "exif",
    "max-bad",
    "strict",
    DPL_AUGMENT_OPT_NAMES,
    NULL,
};
static const cli_command command = {
    .program = "dpload show",
    .summary = "Write a sheet of augmented pictures with their class names, to look at.",
    .examples = "dpload show imagenet -o sheet.png\n"
                "dpload show --recipe eval --rows 8 imagenet -o val.png\n",
    .own = rows,
    .loader = loader_rows,
};

typedef struct sheet {
    uint8_t *rgb;
    int w, h;
    int side, columns, cells; /* of a picture; places */
    int label;                /* height of a caption */
    int used;
} sheet;

static int sheet_init(sheet *s, const cli_options *o)
{
    static const uint8_t paper = 24;
    size_t bytes;

    const int lines = o->loader.mixup > 0 || o->loader.cutmix > 0 ? 2 : 1;

    *s = (sheet){ .side = o->size,
                  .columns = o->columns,
                  .cells = o->columns * o->rows,
                  .label = ABOVE + lines * LINE };
    s->w = GAP + o->columns * (o->size + GAP);
    s->h = GAP + o->rows * (o->size + s->label + GAP);
    if (dpl_mul(3 * (size_t)s->w, (size_t)s->h, &bytes)) return DPL_ENOMEM;
    if (!(s->rgb = dpl_alloc_aligned(bytes, 1))) return DPL_ENOMEM;
    memset(s->rgb, paper, bytes);
    return DPL_OK;
}

static const char *class_name(const dpl_info *info, int32_t label)
{
    return label >= 0 && label < info->classes ? info->class_names[label] : "-";
}

int cli_caption(char line[2][CLI_CAPTION_MAX], const dpl_part *p, int i, const dpl_info *info)
{
    const char *first = class_name(info, p->labels[i]);

    if (p->mix[i] >= 1) {
        snprintf(line[0], CLI_CAPTION_MAX, "%s", first);
        return 1;
    }
    snprintf(line[0], CLI_CAPTION_MAX, "%.2f %s", (double)p->mix[i], first);
    snprintf(line[1], CLI_CAPTION_MAX, "%.2f %s", 1 - (double)p->mix[i],
             class_name(info, p->labels2[i]));
    return 2;
}

/* Picture i of the part. */
static void sheet_add(sheet *s, const dpl_part *p, int i, const dpl_info *info)
{
    static const uint8_t ink[3] = { 230, 230, 230 };
    const int x = GAP + s->used % s->columns * (s->side + GAP);
    const int y = GAP + s->used / s->columns * (s->side + s->label + GAP);
    const size_t row = 3 * (size_t)s->side, stride = 3 * (size_t)s->w;
    const uint8_t *pixels = (const uint8_t *)p->pixels + (size_t)i * row * (size_t)s->side;
    char line[2][CLI_CAPTION_MAX];
    const int lines = cli_caption(line, p, i, info);

    for (int v = 0; v < s->side; v++) {
        memcpy(s->rgb + (size_t)(y + v) * stride + 3 * (size_t)x, pixels + (size_t)v * row, row);
    }
    for (int k = 0; k < lines; k++)
        tool_font_draw(s->rgb, s->w, s->h, x, y + s->side + ABOVE + k * LINE, s->side, line[k],
                       ink);
    s->used++;
}

/* Take batches until the sheet is full or the epoch is over. */
static int sheet_fill(sheet *s, dpl_loader *l)
{
    dpl_info info;
    int err = DPL_OK;

    dpl_info_get(l, &info);
    while (s->used < s->cells) {
        dpl_batch b;

        if ((err = dpl_next(l, &b, -1))) break;
        for (int i = 0; i < b.n && s->used < s->cells; i++) sheet_add(s, &b.part[0], i, &info);
        dpl_release(l, &b, NULL);
    }
    return err == DPL_EOF ? DPL_OK : err;
}

static int make_sheet(dpl_loader *l, const cli_options *o)
{
    sheet s;
    dpl_text why = { "" };
    int err = sheet_init(&s, o), code;

    if (err) return cli_fail(err, "out of memory for the sheet");
    if ((err = sheet_fill(&s, l))) {
        code = cli_fail_loader(err, l);
    } else if ((err = tool_png_write(o->output, s.rgb, s.w, s.h, &why))) {
        cli_fail(err, why.s);
        code = CLI_FAILED; /* the data was all right */
    } else {
        cli_name_bad(l);
        printf("%s: %d pictures, %d x %d pixels\n", o->output, s.used, s.w, s.h);
        code = CLI_DONE;
    }
    free(s.rgb);
    return code;
}

int cli_show(int argc, char **argv)
{
    cli_options o = { .size = 128, .columns = 8, .rows = 4 };
    cli_data data = { NULL, NULL, 0 };
    dpl_loader *l = NULL;
    dpl_text why = { "" };
    const char *dir;
    int code, err;

    dpl_options_init(&o.loader, sizeof o.loader);
    if (cli_parse(&command, argc, argv, &o, &dir, &code)) return code;
    if (!o.output || !*o.output) {
        return cli_fail(DPL_EINVAL, "the file to write is missing: dpload show DIR -o sheet.png");
    }
    o.loader.epochs = 1;
    o.loader.batch = o.columns * o.rows;
    o.loader.prefetch = 1;
    if ((err = cli_data_choose(&data, dir, &o, &why))) {
        code = cli_fail(err, why.s);
    } else if ((err = dpl_open(&l, &o.loader))) {
        code = cli_fail_loader(err, NULL);
    } else {
        cli_announce(l, &o, stdout);
        code = make_sheet(l, &o);
    }
    dpl_close(&l);
    cli_data_free(&data);
    return code;
}
