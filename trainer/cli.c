/* SPDX-License-Identifier: Apache-2.0 */
/* dptrain's option table, and argv to values. */
#include "trainer/cli.h"

#include "base/alloc.h"
#include "base/optloader.h"
#include "base/optnames.h"
#include "trainer/optim.h"

#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(dpt_options, member)

/* clang-format off */
static const dpl_opt table[] = {
    DPL_SOURCE_OPT_ROWS(dpt_options, load),
    { "val-list", 0, NULL, DPL_OPT_STRING, AT(val_list), 0, 0, NULL, "FILE",
      "the same for the pictures of validation", NULL, 0 },
    { "val-index", 0, NULL, DPL_OPT_STRING, AT(val_index), 0, 0, NULL, "FILE",
      "keep the listing of DIR/val in FILE, where --index keeps that of DIR/train [none]", NULL, 0 },
    DPL_LOADER_OPT_ROWS(dpt_options, load),
    { "arch", 'a', "model", DPL_OPT_STRING, AT(arch), 0, 0, NULL, "NAME",
      "resnet18, 34, 50, 101 or 152, or tinynet [resnet18]", "Model", 1 },
    { "weights", 0, "initial-checkpoint", DPL_OPT_STRING, AT(weights), 0, 0, NULL, "FILE",
      "begin with the weights of a .safetensors file, such as torchvision's [random]", NULL, 0 },
    { "size", 0, NULL, DPL_OPT_INT, AT(size), 8, 8192, NULL, "PIXELS",
      "width and height of the pictures as trained [224]", NULL, 1 },
    { "resize", 0, NULL, DPL_OPT_INT, AT(resize), 0, 16384, NULL, "PIXELS",
      "short side before the centre crop of validation; 0 = SIZE * 256 / 224 [0]", NULL, 0 },
    { "epochs", 0, NULL, DPL_OPT_INT, AT(epochs), 1, 1000000, NULL, "N",
      "passes over the training pictures [90]", "Training", 1 },
    { "steps", 0, NULL, DPL_OPT_UINT64, AT(steps), 0, 0, NULL, "N",
      "stop after N optimizer steps since the start; 0 = no limit [0]", NULL, 0 },
    { "opt", 0, "optimizer", DPL_OPT_CHOICE, AT(opt), 0, 0, "sgd|adamw|lars", "NAME",
      "sgd, adamw, or lars for large batches; as PyTorch's SGD and AdamW, timm's Lars [sgd]", NULL, 0 },
    { "lr", 0, "learning-rate", DPL_OPT_DOUBLE, AT(lr), 0, 1e6, NULL, "RATE",
      "learning rate for the whole batch; 1e-3 with adamw, 1 with lars, else [0.1]", NULL, 1 },
    { "momentum", 0, NULL, DPL_OPT_DOUBLE, AT(momentum), 0, 1, NULL, "M",
      "momentum of sgd and lars [0.9]", NULL, 0 },
    { "wd", 0, "weight-decay", DPL_OPT_DOUBLE, AT(weight_decay), 0, 1e6, NULL, "DECAY",
      "weight decay, on every parameter, with lars not on biases and norms; 1e-2 with adamw, else [1e-4]", NULL, 0 },
    { "nesterov", 0, NULL, DPL_OPT_FLAG, AT(nesterov), 0, 0, NULL, NULL,
      "sgd: Nesterov momentum [off]", NULL, 0 },
    { "opt-betas", 0, NULL, DPL_OPT_TWO, AT(betas), 0, 1, NULL, "B1,B2",
      "adamw: how long averages of the gradient and of its square last [0.9,0.999]", NULL, 0 },
    { "opt-eps", 0, NULL, DPL_OPT_DOUBLE, AT(eps), 0, 1, NULL, "EPS",
      "adamw, lars: what is added to the divisor [1e-8]", NULL, 0 },
    { "trust-coeff", 0, "trust-coefficient", DPL_OPT_DOUBLE, AT(trust), 1e-9, 1e3, NULL, "C",
      "lars: how far a layer may move, as a share of the norm of its weights [0.001]", NULL, 0 },
    { "sched", 0, "lr-scheduler", DPL_OPT_CHOICE, AT(sched), 0, 0, "step|cosine|const", "NAME",
      "learning rate over the run: step, cosine or const [step]", NULL, 0 },
    { "step-size", 0, "lr-step-size", DPL_OPT_DOUBLE, AT(step_size), 1e-3, 0, NULL, "EPOCHS",
      "step: epochs from one drop of the rate to the next [30]", NULL, 0 },
    { "gamma", 0, "lr-gamma", DPL_OPT_DOUBLE, AT(gamma), 0, 1, NULL, "FACTOR",
      "step: factor of each drop [0.1]", NULL, 0 },
    { "warmup", 0, "warmup-epochs", DPL_OPT_DOUBLE, AT(warmup), 0, 1e6, NULL, "EPOCHS",
      "linear rise of the rate at the start [0]", NULL, 0 },
    { "devices", 0, "device", DPL_OPT_STRING, AT(devices), 0, 0, NULL, "LIST",
      "cpu, cpu:2, sim:38ms; GPUs: 0,1 or 0-3, cuda = all;\nauto = GPUs that can be used, else cpu "
      "[auto]",
      "Devices", 1 },
    { "split", 0, NULL, DPL_OPT_STRING, AT(split), 0, 0, NULL, "LIST",
      "weight of each device's part of a batch, such as 3,1; auto = by measured speed [even]", NULL, 0 },
    { "threads", 0, NULL, DPL_OPT_INT, AT(threads), 0, 4096, NULL, "N",
      "compute threads over all devices; 0 = one per usable core [0]", NULL, 0 },
    { "backend", 0, NULL, DPL_OPT_STRING, AT(backend), 0, 0, NULL, "NAME",
      "auto, dnnl (oneDNN) or ref (plain C, slow) [auto]", NULL, 0 },
    { "amp", 0, NULL, DPL_OPT_CHOICE, AT(amp), 0, 0, "auto|off|bf16|fp16", "MODE",
      "numbers that GPUs compute in: bf16, fp16 (with a loss scale), off = fp32;\nauto = bf16 where the GPUs have it, else fp16. The CPU takes fp32 [auto]", NULL, 0 },
    { "rank", 0, NULL, DPL_OPT_INT, AT(rank), 0, 1048575, NULL, "N",
      "number of this process, from 0; with --world. Without both: what torchrun, mpirun or srun\nsay, else one process", "Several processes", 0 },
    { "world", 0, "world-size", DPL_OPT_INT, AT(world), 1, 1048576, NULL, "N",
      "number of processes that share the run and the batch, each with as many GPUs", NULL, 0 },
    { "local-rank", 0, "local_rank", DPL_OPT_INT, AT(local_rank), 0, 1048575, NULL, "N",
      "number of this process on its machine: its GPU with --devices auto", NULL, 0 },
    { "master-addr", 0, NULL, DPL_OPT_STRING, AT(master_addr), 0, 0, NULL, "HOST[:PORT]",
      "where all meet: the machine of process 0", NULL, 0 },
    { "master-port", 0, NULL, DPL_OPT_INT, AT(master_port), 1, 65535, NULL, "PORT",
      "its port, when --master-addr does not say it", NULL, 0 },
    { "dist-url", 0, NULL, DPL_OPT_STRING, AT(dist_url), 0, 0, NULL, "URL",
      "the same as tcp://HOST:PORT; env:// = what the environment says", NULL, 0 },
    { "output", 'o', "output-dir", DPL_OPT_STRING, AT(output), 0, 0, NULL, "DIR",
      "run folder: checkpoints and logs [runs/ARCH-DATE-N]", "Files", 1 },
    { "force", 'f', NULL, DPL_OPT_FLAG, AT(force), 0, 0, NULL, NULL,
      "write to a run folder that is not empty [off]", NULL, 0 },
    { "resume", 0, NULL, DPL_OPT_STRING, AT(resume), 0, 0, NULL, "PATH",
      "go on from a run folder or a .safetensors file", NULL, 1 },
    { "evaluate", 'e', "test-only", DPL_OPT_FLAG, AT(evaluate), 0, 0, NULL, NULL,
      "only measure the weights of --resume on val/", NULL, 1 },
    { "save-freq", 0, NULL, DPL_OPT_UINT64, AT(save_freq), 0, 0, NULL, "STEPS",
      "also save every STEPS steps; 0 = at epoch ends [0]", NULL, 0 },
    { "print-freq", 'p', "log-interval", DPL_OPT_INT, AT(print_freq), 1, 1000000000, NULL, "STEPS",
      "steps from one progress line to the next [10]", "Messages", 0 },
    { "progress", 0, NULL, DPL_OPT_STRING, AT(progress), 0, 0, NULL, "HOW",
      "auto = live line on a terminal, else lines; none; SECONDS between lines [auto]", NULL, 0 },
    { "color", 0, "colour", DPL_OPT_CHOICE, AT(color), 0, 0, "auto|always|never", "WHEN",
      "auto = on a terminal, unless NO_COLOR is set [auto]", NULL, 0 },
    { "json", 0, NULL, DPL_OPT_FLAG, AT(json), 0, 0, NULL, NULL,
      "one JSON object with the results on stdout, nothing else there", NULL, 0 },
    { "quiet", 'q', NULL, DPL_OPT_COUNT, AT(quiet), 0, 0, NULL, NULL,
      "no progress; twice: results and errors only", NULL, 0 },
    { "verbose", 'v', NULL, DPL_OPT_COUNT, AT(verbose), 0, 0, NULL, NULL,
      "memory plan and how each layer is computed", NULL, 0 },
    { "print-config", 0, NULL, DPL_OPT_FLAG, AT(print_config), 0, 0, NULL, NULL,
      "print every option with its value, and stop", NULL, 0 },
    { "version", 0, NULL, DPL_OPT_FLAG, AT(version), 0, 0, NULL, NULL,
      "print the version, and stop", NULL, 0 },
    { NULL, 0, NULL, DPL_OPT_FLAG, 0, 0, 0, NULL, NULL, NULL, NULL, 0 }
};
/* clang-format on */

_Static_assert(sizeof table / sizeof *table <= DPT_CLI_MAX, "given[] has no room for the table");

static const dpl_opt_spec spec = {
    .program = "dptrain",
    .usage = "[options] DIR",
    .summary = "Train a picture classifier from DIR/train/CLASS/*.jpg and DIR/val/CLASS/*.jpg.",
    .examples = "dptrain --workers 8 --batch 64 imagenet/\n"
                "dptrain --val-split 10% --size 128 --epochs 20 --lr 0.05 photos/\n"
                "dptrain --resume runs/resnet18-20260131-1 imagenet/\n",
    .see = "More: --help, man dptrain, dptrain devices",
    .env = "DPTRAIN_",
    .opts = table,
};

const dpl_opt_spec *dpt_cli_spec(void)
{
    return &spec;
}

int dpt_cli_index(const char *name)
{
    for (int i = 0; table[i].name; i++)
        if (!strcmp(table[i].name, name)) return i;
    abort(); /* a name that is not in the table is a mistake of ours */
}

int dpt_cli_given(const dpt_cli *c, const char *name)
{
    return c->given[dpt_cli_index(name)];
}

int dpt_exit_of(int status)
{
    switch (status) {
    case DPL_OK: return DPT_EXIT_DONE;
    case DPL_EINVAL: return DPT_EXIT_USAGE;
    case DPL_EIO:
    case DPL_EDATA: return DPT_EXIT_DATA;
    case DPL_EDEVICE:
    case DPL_ENOTSUP: return DPT_EXIT_DEVICE;
    default: return DPT_EXIT_FAILED;
    }
}

static void set_defaults(dpt_options *o)
{
    memset(o, 0, sizeof *o);
    dpl_options_init(&o->load, sizeof o->load);
    o->arch = "resnet18";
    o->epochs = 90;
    o->opt = DPT_RULE_SGD;
    o->lr = o->weight_decay = -1;
    o->momentum = 0.9;
    o->betas[0] = 0.9;
    o->betas[1] = 0.999;
    o->eps = 1e-8;
    o->trust = 0.001;
    o->sched = DPT_SCHED_STEP;
    o->step_size = 30;
    o->gamma = 0.1;
    o->size = 224;
    o->devices = "auto";
    o->backend = "auto";
    o->rank = o->world = o->local_rank = -1;
    o->print_freq = 10;
    o->progress = "auto";
}

int dpt_cli_progress(const char *text, double *seconds)
{
    int64_t ns;

    *seconds = -1;
    if (!strcmp(text, "auto")) return 0;
    *seconds = 0;
    if (!strcmp(text, "none")) return 0;
    if (dpl_parse_time_ns(text, &ns) || ns <= 0) return -1;
    *seconds = (double)ns / 1e9;
    return 0;
}

/* Names of files and folders, and which of them go together. */
static int check_names(const dpt_options *o, dpl_text *why)
{
    const struct {
        const char *name, *value;
    } all[] = { { "output", o->output },      { "resume", o->resume },
                { "weights", o->weights },    { "list", o->load.list },
                { "val-list", o->val_list },  { "index", o->load.index },
                { "val-index", o->val_index } };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].value && !*all[i].value)
            return dpl_fail(why, DPT_EXIT_USAGE, "--%s: the name is empty; give a path",
                            all[i].name);
    if (o->val_list && !o->load.list && !o->evaluate)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--val-list %s without --list: name the pictures to train on by a list too",
                        o->val_list);
    if (o->val_list && o->load.val_split > 0)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--val-split %g with --val-list %s: the list names the pictures of "
                        "validation already; leave one of the two out",
                        o->load.val_split, o->val_list);
    if ((o->load.list || o->val_list) && (o->load.index || o->val_index))
        return dpl_fail(why, DPT_EXIT_USAGE, "--%s: only a folder is indexed, not a list",
                        o->load.index ? "index" : "val-index");
    return DPT_EXIT_DONE;
}

/* Where the weights come from. */
static int check_start(const dpt_options *o, dpl_text *why)
{
    if (o->weights && o->evaluate)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--weights %s with --evaluate: weights to measure are named by --resume: "
                        "give --evaluate --resume %s",
                        o->weights, o->resume ? o->resume : o->weights);
    if (o->weights && o->resume)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--weights %s with --resume %s: one begins a run, the other goes on with "
                        "one; leave one of the two out (to measure weights: --evaluate --resume "
                        "FILE)",
                        o->weights, o->resume);
    if (o->evaluate && !o->resume)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--evaluate: of which weights? Give --resume FILE.safetensors or --resume "
                        "RUN-FOLDER");
    if (o->evaluate && o->output)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--evaluate with --output: nothing is written when only evaluating");
    return DPT_EXIT_DONE;
}

/* What needs neither files nor devices. */
static int check_values(const dpt_cli *c, dpl_text *why)
{
    const dpt_options *o = &c->opt;
    double seconds;
    int rc;

    if (dpt_cli_progress(o->progress, &seconds))
        return dpl_fail(why, DPT_EXIT_USAGE, "--progress %s: give auto, none or seconds (10, 1.5s)",
                        o->progress);
    if (o->warmup >= o->epochs && o->warmup > 0)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--warmup %g with --epochs %d: the warm-up must be shorter than the run",
                        o->warmup, o->epochs);
    if (o->resize && o->resize < o->size)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--resize %d with --size %d: the resized short side must not be smaller "
                        "than the crop",
                        o->resize, o->size);
    return (rc = check_names(o, why)) ? rc : check_start(o, why);
}

/* argv with the saved options of a resumed run before its own, so that argv wins. */
static char **join_argv(int argc, char **argv, char *const *saved, int n_saved)
{
    char **all = dpl_calloc((size_t)argc + (size_t)n_saved + 1, sizeof *all);

    if (!all) return NULL;
    all[0] = argv[0];
    for (int i = 0; i < n_saved; i++) all[1 + i] = saved[i];
    for (int i = 1; i < argc; i++) all[n_saved + i] = argv[i];
    return all;
}

/* may_lack: 1 = lists stand in for DIR, or the options of a resumed run may bring them. */
static int take_operand(dpt_cli *c, int argc, char **argv, int operand, int may_lack, dpl_text *why)
{
    if (operand >= argc && may_lack) return DPT_EXIT_DONE;
    if (operand >= argc || !*argv[operand])
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "no DIR given: name the folder of the pictures, as in `dptrain photos/` "
                        "(dptrain -h for help)");
    if (argc - operand > 1)
        return dpl_fail(why, DPT_EXIT_USAGE, "one DIR is expected, found %d: %s and %s",
                        argc - operand, argv[operand], argv[operand + 1]);
    c->opt.dir = argv[operand];
    return DPT_EXIT_DONE;
}

int dpt_cli_parse(dpt_cli *c, int argc, char **argv, char *const *saved, int n_saved, FILE *out,
                  int *helped, dpl_text *why)
{
    int operand = 0, rc;
    char *given = saved ? NULL : c->given; /* what the user gave is known from the first pass */

    *helped = 0;
    if (!saved) memset(c, 0, sizeof *c);
    set_defaults(&c->opt);
    free(c->held);
    if (!(c->held = join_argv(argc, argv, saved, n_saved)))
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    rc = dpl_opt_parse(&spec, argc + n_saved, c->held, &c->opt, given, &operand, out, why);
    if (rc == DPL_OPT_HELPED) {
        *helped = 1;
        return DPT_EXIT_DONE;
    }
    if (rc < 0) return dpt_exit_of(rc);
    if (c->opt.version) return DPT_EXIT_DONE;
    dpt_cli_optim_defaults(&c->opt);
    if ((rc = check_values(c, why))) return rc;
    /* before that of the run is known, options of its rule seem to be another's */
    if ((saved || !c->opt.resume) && (rc = dpt_cli_optim_check(c, why))) return rc;
    if (c->opt.print_config) return DPT_EXIT_DONE;
    return take_operand(c, argc + n_saved, c->held, operand,
                        c->opt.load.list || c->opt.val_list || (c->opt.resume && !saved), why);
}

int dpt_cli_loader_failed(int code, int status, const dpl_loader *l, dpl_text *why)
{
    dpl_fail(why, code, "%s", dpl_error_text(l));
    dpl_opt_name_fields(table, status, why);
    return code;
}

const char *dpt_cli_words(dpl_text *out, const char *text)
{
    snprintf(out->s, sizeof out->s, "%s", text);
    dpl_opt_name_fields(table, DPL_EDATA, out);
    return out->s;
}

void dpt_cli_fini(dpt_cli *c)
{
    free(c->held);
    c->held = NULL;
}

void dpt_cli_print_config(const dpt_cli *c, FILE *out)
{
    char value[512];

    for (int i = 0; table[i].name; i++) {
        if (!strcmp(table[i].name, "print-config") || !strcmp(table[i].name, "version")) continue;
        dpl_opt_format(&table[i], &c->opt, value, sizeof value);
        fprintf(out, "%-16s %-24s %s\n", table[i].name, *value ? value : "-",
                c->given[i] ? "set" : "default");
    }
}
