/* SPDX-License-Identifier: Apache-2.0 */
/* Help, man page and completions name the same options. BIN names the folder of the built programs. */
#include "tests/testutil.h"

#include "base/optdoc.h"
#include "trainer/cli.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { NAMES = 256, TEXT = 1 << 16 };

typedef struct names {
    char name[NAMES][48];
    int n;
} names;

/* Adds "--" no NAME, when NAME at s is one. */
static void add(names *set, const char *no, const char *s)
{
    int len = 0;

    while (islower((unsigned char)s[len]) || isdigit((unsigned char)s[len]) || s[len] == '-') len++;
    if (!len) return;
    assert_true(set->n < NAMES);
    snprintf(set->name[set->n++], sizeof set->name[0], "%s%.*s", no, len, s);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void assert_same(names *a, names *b, const char *what)
{
    qsort(a->name, (size_t)a->n, sizeof a->name[0], by_text);
    qsort(b->name, (size_t)b->n, sizeof b->name[0], by_text);
    for (int i = 0; i < a->n || i < b->n; i++) {
        const char *x = i < a->n ? a->name[i] : "(end)", *y = i < b->n ? b->name[i] : "(end)";
        if (strcmp(x, y) != 0) fail_msg("%s: --%s there, --%s in the help", what, x, y);
    }
    assert_true(a->n > 5);
}

/* Standard output of "BIN/words". */
static const char *output(int code, const char *words)
{
    static char text[TEXT];
    const char *bin = getenv("BIN");
    FILE *f = popen(test_format("%s/%s 2>&1", bin ? bin : "build/bin", words), "r");
    size_t n;
    int status;

    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    status = pclose(f);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) fail_msg("%s is not built", words);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code) fail_msg("%s: %s", words, text);
    return text;
}

/* Calls line for each line of text between one that starts with `from` (NULL = the beginning) and
 * the next that starts with `to` (NULL = the end). */
static void each_line(const char *text, const char *from, const char *to,
                      void (*line)(names *, const char *), names *set)
{
    char one[4096];

    while (from && *text && strncmp(text, from, strlen(from)) != 0) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    if (from && !*text) fail_msg("no line starts with %s", from);
    if (from) text += strcspn(text, "\n") + 1;
    while (*text && (!to || strncmp(text, to, strlen(to)) != 0)) {
        const size_t n = strcspn(text, "\n");
        assert_true(n < sizeof one);
        memcpy(one, text, n);
        one[n] = '\0';
        line(set, one);
        text += n + (text[n] == '\n');
    }
}

/* "  -j, --workers N", "      --[no-]shuffle" */
static void help_line(names *set, const char *s)
{
    const int indent = (int)strspn(s, " ");

    if (indent != 2 && indent != 6) return;
    s += indent;
    if (s[0] == '-' && s[1] != '-' && s[2] == ',') s += 4;
    if (strncmp(s, "--", 2) != 0) return;
    s += 2;
    if (!strncmp(s, "[no-]", 5)) add(set, "no-", s += 5);
    add(set, "", s);
}

/* ".It Fl j , Fl -workers Ar N" */
static void man_line(names *set, const char *s)
{
    if (strncmp(s, ".It ", 4) != 0) return;
    while ((s = strstr(s, "Fl -"))) add(set, "", s += 4);
}

/* "… compgen -W '-j --workers …' …", of options only */
static void bash_line(names *set, const char *s)
{
    const char *list = strstr(s, "-W '-");

    if (!list) return;
    for (s = list; (s = strstr(s, "--")) && islower((unsigned char)s[2]);) add(set, "", s += 2);
}

/* "'(-j --workers)'{-j+,--workers=}'[loader …" */
static void zsh_line(names *set, const char *s)
{
    const char *end = strchr(s, '['), *last = NULL;

    if (!end || s[strspn(s, " ")] != '\'') return;
    for (s = strstr(s, "--"); s && s < end; s = strstr(s + 2, "--")) last = s;
    assert_non_null(last);
    add(set, "", last + 2);
}

/* "complete -c dpload … -l workers …" */
static void fish_line(names *set, const char *s)
{
    const char *name = strstr(s, " -l "), *text = strstr(s, " -d ");

    if (name && (!text || name < text)) add(set, "", name + 4);
}

/* program: "dptrain" or "dpload bench". whole: the program whose --print-options has it. */
static void all_agree(const char *program, const char *whole)
{
    const char *command = strchr(program, ' '), *function;
    names help = { .n = 0 }, got;
    char head[64] = ".Sh OPTIONS";

    each_line(output(0, test_format("%s --help", program)), NULL, NULL, help_line, &help);
    if (command) {
        size_t n = strlen(strcat(head, " OF "));
        for (const char *c = command + 1; *c; c++) head[n++] = (char)toupper((unsigned char)*c);
        head[n] = '\0';
    }
    got.n = 0;
    each_line(output(0, test_format("%s --print-options=man", whole)), head, ".Sh", man_line, &got);
    assert_same(&got, &help, test_format("%s, man", program));

    function =
        command ? test_format("_%s_%s() {", whole, command + 1) : test_format("_%s() {", program);
    got.n = 0;
    each_line(output(0, test_format("%s --print-options=bash", whole)), function, "}", bash_line,
              &got);
    assert_same(&got, &help, test_format("%s, bash", program));
    got.n = 0;
    each_line(output(0, test_format("%s --print-options=zsh", whole)), function, "}", zsh_line,
              &got);
    assert_same(&got, &help, test_format("%s, zsh", program));

    snprintf(head, sizeof head, "complete -c %s -n '__fish_seen_subcommand_from %s'", whole,
             command ? command + 1 : "");
    got.n = 0;
    each_line(output(0, test_format("%s --print-options=fish | grep -F \"%s\"", whole,
                                    command ? head : "complete")),
              NULL, NULL, fish_line, &got);
    assert_same(&got, &help, test_format("%s, fish", program));
}

static void dptrain_agrees(void **state)
{
    (void)state;
    all_agree("dptrain", "dptrain");
}

static void dpload_agrees(void **state)
{
    (void)state;
    all_agree("dpload bench", "dpload");
    all_agree("dpload check", "dpload");
    all_agree("dpload show", "dpload");
}

/* The help is right, too: it names what the table holds. */
static void help_lists_the_table(void **state)
{
    names help = { .n = 0 }, table = { .n = 0 };
    (void)state;

    each_line(output(0, "dptrain --help"), NULL, NULL, help_line, &help);
    for (const dpl_opt *o = dpt_cli_spec()->opts; o->name; o++) {
        add(&table, "", o->name);
        if (o->type == DPL_OPT_FLAG) add(&table, "no-", o->name);
    }
    add(&table, "", "help");
    assert_same(&table, &help, "the table");
}

static void other_names_are_documented(void **state)
{
    char *man = strdup(output(0, "dptrain --print-options=man"));
    const char *bash = output(0, "dptrain --print-options=bash");
    (void)state;

    for (const dpl_opt *o = dpt_cli_spec()->opts; o->name; o++) {
        const int value = o->type != DPL_OPT_FLAG && o->type != DPL_OPT_COUNT;
        for (const char *a = o->aliases; a && *a; a += strspn(a, " ")) {
            const int n = (int)strcspn(a, " ");
            assert_non_null(strstr(man, test_format("\n.Fl -%.*s", n, a)));
            if (value) assert_non_null(strstr(bash, test_format("|--%.*s", n, a)));
            a += n;
        }
    }
    free(man);
}

static void bash_completes(void **state)
{
    static const char *const cases[][2] = {
        { "dptrain --sch", "--sched" },
        { "dptrain --sched ''", "step cosine const" },
        { "dptrain --sched = co", "cosine const" }, /* as bash splits --sched=co */
        { "dptrain --lr-scheduler s", "step" },
        { "dptrain --workers ''", "" },
        { "dptrain --no-s", "--no-shuffle --no-strict" },
        { "dptrain ph", "photos" },
        { "dptrain --resume n", "note" },
        { "dptrain --output n", "" }, /* a file is no folder */
        { "dpload b", "bench" },
        { "dpload bench --dty", "--dtype" },
        { "dpload bench --dtype u", "uint8" },
        { "dpload show --dty", "" },
        { "dpload check ph", "photos" },
    };
    const char *bin = getenv("BIN");
    char path[4000], from[4096];
    (void)state;

    if (system("command -v bash >/dev/null 2>&1")) skip();
    assert_non_null(realpath(bin ? bin : "build/bin", from));
    snprintf(path, sizeof path, "%s", test_tempdir());
    test_make_folder(test_format("%s/photos", path));
    test_write_file(test_format("%s/note", path), "", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        FILE *f = fopen(test_format("%s/script", path), "w");
        assert_non_null(f);
        fprintf(f, "cd '%s' || exit\n", path);
        fprintf(f, "eval \"$('%s'/dptrain --print-options=bash)\"\n", from);
        fprintf(f, "eval \"$('%s'/dpload --print-options=bash)\"\n", from);
        fprintf(f, "COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n", cases[i][0]);
        fprintf(f, "_$COMP_WORDS; got=${COMPREPLY[*]}\n");
        fprintf(f, "[ \"$got\" = '%s' ] || { echo \"$got\"; false; }\n", cases[i][1]);
        fclose(f);
        if (system(test_format("bash '%s/script'", path))) fail_msg("%s", cases[i][0]);
    }
}

/* Text that means something to mdoc or to a shell stays text. */
static void special_letters_are_escaped(void **state)
{
    static const dpl_opt opts[] = {
        { "odd", 'o', NULL, DPL_OPT_STRING, 0, 0, 0, NULL, "X", ".dot's [a:b] \\n -1", NULL, 1 },
        { NULL, 0, NULL, DPL_OPT_FLAG, 0, 0, 0, NULL, NULL, NULL, NULL, 0 }
    };
    static const dpl_opt_spec spec = { .program = "odd", .usage = "[options]", .opts = opts };
    static const char *const want[] = { "\n\\&.dot's [a:b] \\en \\-1.\n", "-o|--odd) return ;;",
                                        "{-o+,--odd=}'[.dot'\\''s \\[a\\:b\\] \\\\n -1]:X: '",
                                        " -s o -l odd -x -d '.dot\\'s [a:b] \\\\n -1'\n" };
    (void)state;

    for (int format = DPL_OPT_DOC_MAN; format <= DPL_OPT_DOC_FISH; format++) {
        char *text = NULL;
        size_t len;
        FILE *f = open_memstream(&text, &len);
        assert_non_null(f);
        dpl_opt_doc_table(&spec, (dpl_opt_doc)format, f);
        fclose(f);
        if (!strstr(text, want[format])) fail_msg("%s\nis not in\n%s", want[format], text);
        free(text);
    }
}

static void other_formats_are_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(output(2, "dptrain --print-options=html"), "man, bash, zsh or fish"));
    assert_non_null(strstr(output(2, "dpload --print-options="), "man, bash, zsh or fish"));
    assert_null(strstr(output(0, "dptrain --help"), "print-options"));
    assert_non_null(strstr(output(2, "dptrain --print-options=man DIR"), "unknown option"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dptrain_agrees),
        cmocka_unit_test(dpload_agrees),
        cmocka_unit_test(help_lists_the_table),
        cmocka_unit_test(other_names_are_documented),
        cmocka_unit_test(bash_completes),
        cmocka_unit_test(special_letters_are_escaped),
        cmocka_unit_test(other_formats_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
