/* SPDX-License-Identifier: Apache-2.0 */
/* A run from its options to its exit code. */
#include "trainer/run.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"
#include "trainer/loop.h"
#include "trainer/split_auto.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder of a checkpoint path; a run folder is its own. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder;

    if (is_folder(path)) return dpl_strdup(path);
    if (!slash) return dpl_strdup(".");
    if (!(folder = dpl_strdup(path))) return NULL;
    folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

/* Options that the checkpoint knows and nobody else said. */
static void take_from_peek(dpt_run *r)
{
    if (!dpt_cli_given(r->cli, "arch") && r->peek.arch) r->opt->arch = r->peek.arch;
    if (!dpt_cli_given(r->cli, "size") && r->peek.width > 0) r->opt->size = r->peek.width;
}

/* A resumed run may be told to go on differently, but not without saying so. */
static void say_changes(const dpt_run *r, char **saved, int n)
{
    char *argv[] = { r->argv[0], (char *)(size_t) ".", NULL };
    char was_text[512], is_text[512];
    dpt_cli was = { .held = NULL };
    int helped;

    if (dpt_cli_parse(&was, 2, argv, saved, n, stdout, &helped, NULL)) return;
    for (const dpl_opt *o = dpt_cli_spec()->opts; n && o->name; o++) {
        if (!dpt_cli_given(r->cli, o->name) || !dpt_runlog_is_taken(o->name)) continue;
        dpl_opt_format(o, &was.opt, was_text, sizeof was_text);
        dpl_opt_format(o, r->opt, is_text, sizeof is_text);
        if (strcmp(was_text, is_text))
            dpt_report_note(r->report, "resume: --%s was %s, is %s from here on", o->name,
                            *was_text ? was_text : "not given", is_text);
    }
    dpt_cli_fini(&was);
}

/* What cannot be opened is not always missing. */
static void say_not_found(const dpt_run *r, dpl_text *why)
{
    char *file = is_folder(r->opt->resume) ? dpl_path_join(r->opt->resume, "model.safetensors")
                                           : dpl_strdup(r->opt->resume);
    const dpl_text found = *why;

    if (file && access(file, F_OK))
        dpt_report_note(r->report, "=> no checkpoint found at '%s'", r->opt->resume);
    free(file);
    dpl_fail(why, 0, "--resume %s: %s; give a run folder or a .safetensors file", r->opt->resume,
             found.s);
}

int dpt_run_resume(dpt_run *r, dpl_text *why)
{
    char **saved = NULL;
    int n = 0, helped, rc, err;

    if (!r->opt->resume) return DPT_EXIT_DONE;
    if (!(r->resume_folder = folder_of(r->opt->resume)))
        return dpl_fail(why, DPT_EXIT_FAILED, "out of memory");
    if ((err = dpt_checkpoint_peek_open(&r->peek, r->opt->resume, why))) {
        if (err == DPL_EIO) say_not_found(r, why);
        return err == DPL_ENOMEM ? DPT_EXIT_FAILED : DPT_EXIT_DATA;
    }
    dpt_report_note(r->report, "=> loading checkpoint '%s'", r->opt->resume);
    if (dpt_runlog_saved(r->resume_folder, r->peek.recipe, &saved, &n, why)) {
        dpt_runlog_saved_free(saved, n);
        return DPT_EXIT_DATA;
    }
    rc = dpt_cli_parse(r->cli, r->argc, r->argv, saved, n, stdout, &helped, why);
    r->saved_options = saved; /* options point into them */
    r->n_saved_options = n;
    if (rc) return rc;
    take_from_peek(r);
    say_changes(r, saved, n);
    return rc;
}

/* What is no such file is told before the pictures are listed, which may take long. */
static int check_weights(const dpt_run *r, dpl_text *why)
{
    const char *file = r->opt->weights;
    dpt_checkpoint_peek p;
    dpl_text found;
    int err;

    if (!file) return DPT_EXIT_DONE;
    if (is_folder(file))
        return dpl_fail(why, DPT_EXIT_DATA,
                        "--weights %s: this is a folder; give a file, such as best.safetensors of "
                        "a run folder",
                        file);
    err = dpt_checkpoint_peek_open(&p, file, &found);
    dpt_checkpoint_peek_free(&p);
    if (!err) return DPT_EXIT_DONE;
    return dpl_fail(why, err == DPL_ENOMEM ? DPT_EXIT_FAILED : DPT_EXIT_DATA, "--weights: %s%s",
                    found.s,
                    err == DPL_EIO ? "; give a .safetensors file (nothing is downloaded)" : "");
}

void dpt_run_release(dpt_run *r)
{
    dpt_team_destroy(&r->team);
    dpl_close(&r->train);
    dpl_close(&r->val);
    dpt_graph_destroy(&r->graph);
    dpt_checkpoint_peek_free(&r->peek);
    dpt_runlog_close(&r->log, NULL);
    dpt_runlog_saved_free(r->saved_options, r->n_saved_options);
    free(r->params);
    free(r->momentum);
    free(r->second);
    free(r->buffers);
    free(r->device);
    free(r->gpu);
    free(r->weight);
    free(r->part);
    free(r->part_most);
    free(r->train_path);
    free(r->val_path);
    free(r->resume_folder);
    free(r->folder);
    if (r->folder_locked) closedir(r->folder_locked);
}

static void say_loaded(const dpt_run *r)
{
    if (r->resumed && r->progress.sample)
        dpt_report_note(
            r->report, "=> loaded checkpoint '%s' (epoch %lld, and %llu pictures of the next)",
            r->opt->resume, (long long)r->progress.epoch, (unsigned long long)r->progress.sample);
    else if (r->resumed)
        dpt_report_note(r->report, "=> loaded checkpoint '%s' (epoch %lld)", r->opt->resume,
                        (long long)r->progress.epoch);
    else if (r->opt->resume)
        dpt_report_note(r->report, "=> loaded checkpoint '%s'", r->opt->resume);
}

int dpt_run_check_kind(const dpt_run *r, dpl_text *why)
{
    static const char *const amp[] = { "auto", "off", "bf16", "fp16" };
    const char *const only_cpu = dpt_cli_given(r->cli, "backend")   ? "backend"
                                 : dpt_cli_given(r->cli, "threads") ? "threads"
                                                                    : NULL;

    if (!r->cuda && r->world > 1)
        return dpl_fail(
            why, DPT_EXIT_USAGE,
            "%d processes (%s) with --devices %s: there one process drives all replicas "
            "(cpu:2); several processes are joined by NCCL only, between GPUs",
            r->world, dpt_launcher_name(r->launcher.family), r->opt->devices);
    if (!r->cuda && r->opt->amp > DPT_AMP_OFF)
        return dpl_fail(
            why, DPT_EXIT_USAGE,
            "--amp %s with --devices %s: layers compute in fp32 there; leave --amp out, "
            "give --amp auto, or use GPUs (--devices cuda)",
            amp[r->opt->amp], r->opt->devices);
    if (r->cuda && only_cpu)
        return dpl_fail(why, DPT_EXIT_USAGE,
                        "--%s with --devices %s: it is for training on the CPU; leave it out",
                        only_cpu, r->opt->devices);
    return DPT_EXIT_DONE;
}

/* Everything that can be refused is refused here, before the first step. */
static int prepare(dpt_run *r, dpl_text *why)
{
    int rc;

    if ((rc = dpt_run_processes(r, why)) || (rc = dpt_run_resume(r, why)) ||
        (rc = dpt_run_devices(r, why)) || (rc = dpt_run_check_kind(r, why)) ||
        (rc = dpt_run_folder_check(r, why)) || (rc = check_weights(r, why)) ||
        (rc = dpt_run_find(r, why)) || (r->split_auto && (rc = dpt_run_split_auto(r, why))) ||
        (rc = dpt_run_meet(r, why)) || (rc = dpt_run_data(r, why)))
        return rc;
    if (r->sim) return DPT_EXIT_DONE;
    dpt_report_note(r->report, "=> creating model '%s'", r->opt->arch);
    if ((rc = dpt_run_model(r, why))) return rc;
    say_loaded(r);
    return r->opt->evaluate ? DPT_EXIT_DONE : dpt_run_folder(r, why);
}

int dpt_run_main(dpt_cli *cli, int argc, char **argv, dpt_report *report, dpl_text *why)
{
    dpt_run r = {
        .cli = cli, .opt = &cli->opt, .report = report, .argc = argc, .argv = argv, .world = 1
    };
    int rc;

    r.started_ns = dpl_now_ns();
    if ((rc = prepare(&r, why))) goto done;
    dpt_run_first_lines(&r);
    if (r.sim)
        rc = dpt_loop_simulate(&r, why);
    else if (r.opt->evaluate)
        rc = dpt_run_evaluate(&r, why);
    else
        rc = dpt_run_train(&r, why);
    if (dpt_runlog_close(&r.log, rc ? NULL : why) && !rc) rc = DPT_EXIT_FAILED;
    dpt_run_note_stats(&r);
    if (r.opt->json && !r.rank) dpt_run_result(&r, rc, report->out);
done:
    dpt_run_release(&r);
    return rc;
}
