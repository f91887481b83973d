/* SPDX-License-Identifier: Apache-2.0 */
/* Rank, size and address from what launchers set: tables of environments as the launchers make
 * them. */
#include "dpload.h"
#include "tests/testutil.h"
#include "trainer/launcher.h"

#include <string.h>

/* arg is "NAME=VALUE NAME=VALUE". */
static const char *lookup(void *arg, const char *name)
{
    static char value[8][128];
    static int turn;
    const size_t len = strlen(name);

    for (const char *s = arg; *s; s += strspn(s, " ")) {
        const size_t item = strcspn(s, " ");

        if (item > len && !strncmp(s, name, len) && s[len] == '=') {
            char *v = value[turn++ % 8];

            snprintf(v, sizeof value[0], "%.*s", (int)(item - len - 1), s + len + 1);
            return v;
        }
        s += item;
    }
    return NULL;
}

static const dpt_launcher_options nothing_said = { -1, -1, -1, NULL };

typedef struct found {
    const char *env;
    dpt_launcher want;
    dpt_launcher_options said;
} found;

static void check_right(const found *k)
{
    dpt_launcher l;
    dpl_text why = { "" };

    if (dpt_launcher_read(&l, &k->said, lookup, (void *)(uintptr_t)k->env, &why))
        fail_msg("%s: %s", k->env, why.s);
    if (l.family != k->want.family || l.rank != k->want.rank || l.world != k->want.world ||
        l.local_rank != k->want.local_rank || l.local_size != k->want.local_size ||
        l.restarts != k->want.restarts || strcmp(l.address, k->want.address) != 0)
        fail_msg("%s gave %s, rank %d of %d, local %d of %d, %d restarts, at \"%s\"", k->env,
                 dpt_launcher_name(l.family), l.rank, l.world, l.local_rank, l.local_size,
                 l.restarts, l.address);
}

#define SAID_NOTHING                                                                               \
    {                                                                                              \
        -1, -1, -1, NULL                                                                           \
    }
#define TORCH                                                                                      \
    "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=node1 MASTER_PORT=29500 "
#define OMPI                                                                                       \
    "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=2 "                  \
    "OMPI_COMM_WORLD_LOCAL_SIZE=4 OMPI_COMM_WORLD_NODE_RANK=2 OMPI_UNIVERSE_SIZE=4 PMIX_RANK=2 "
#define HYDRA "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 PMI_FD=6 "
#define SRUN                                                                                       \
    "SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1 SLURM_STEP_ID=0 SLURM_JOB_ID=1234567 "          \
    "SLURM_NODEID=1 SLURM_NNODES=2 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_TASKS_PER_NODE=4(x2) "        \
    "SLURM_STEP_NODELIST=gpu[07-08] SLURM_LAUNCH_NODE_IPADDR=10.1.0.1 "
#define SALLOC                                                                                     \
    "SLURM_JOB_ID=1234567 SLURM_NTASKS=8 SLURM_NNODES=2 SLURM_TASKS_PER_NODE=4(x2) "               \
    "SLURM_JOB_NODELIST=gpu[07-08] "

static const found understood[] = {
    { "", { DPT_LAUNCHER_NONE, 0, 1, -1, -1, 0, "" }, SAID_NOTHING },
    { "RANK= PATH=/bin", { DPT_LAUNCHER_NONE, 0, 1, -1, -1, 0, "" }, SAID_NOTHING },
    { "MASTER_ADDR=a MASTER_PORT=1", { DPT_LAUNCHER_NONE, 0, 1, -1, -1, 0, "" }, SAID_NOTHING },
    /* torchrun: the port behind MASTER_PORT, where its agent may listen */
    { TORCH, { DPT_LAUNCHER_TORCHRUN, 5, 8, 1, 4, 0, "node1:29501" }, SAID_NOTHING },
    { TORCH "TORCHELASTIC_RESTART_COUNT=3 GROUP_RANK=1",
      { DPT_LAUNCHER_TORCHRUN, 5, 8, 1, 4, 3, "node1:29501" },
      SAID_NOTHING },
    { "RANK=1 WORLD_SIZE=2 MASTER_ADDR=fd00::1 MASTER_PORT=65535",
      { DPT_LAUNCHER_TORCHRUN, 1, 2, -1, -1, 0, "[fd00::1]:65534" },
      SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=1 LOCAL_RANK=0",
      { DPT_LAUNCHER_TORCHRUN, 0, 1, 0, -1, 0, "" },
      SAID_NOTHING },
    { TORCH OMPI HYDRA SRUN,
      { DPT_LAUNCHER_TORCHRUN, 5, 8, 1, 4, 0, "node1:29501" },
      SAID_NOTHING },
    { TORCH, { DPT_LAUNCHER_TORCHRUN, 5, 8, 1, 4, 0, "other:7" }, { -1, -1, -1, "other:7" } },
    /* mpirun */
    { OMPI, { DPT_LAUNCHER_OPENMPI, 2, 4, 2, 4, 0, "127.0.0.1:29501" }, SAID_NOTHING },
    { OMPI "MASTER_ADDR=10.0.0.9 MASTER_PORT=4000",
      { DPT_LAUNCHER_OPENMPI, 2, 4, 2, 4, 0, "10.0.0.9:4000" },
      SAID_NOTHING },
    { "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_LOCAL_RANK=0 "
      "OMPI_COMM_WORLD_LOCAL_SIZE=1",
      { DPT_LAUNCHER_OPENMPI, 0, 1, 0, 1, 0, "" },
      SAID_NOTHING },
    { OMPI HYDRA SRUN, { DPT_LAUNCHER_OPENMPI, 2, 4, 2, 4, 0, "127.0.0.1:29501" }, SAID_NOTHING },
    { HYDRA, { DPT_LAUNCHER_MPICH, 1, 2, 1, 2, 0, "127.0.0.1:29501" }, SAID_NOTHING },
    { "PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 MASTER_ADDR=n0",
      { DPT_LAUNCHER_MPICH, 1, 4, 1, 2, 0, "n0:29501" },
      SAID_NOTHING },
    /* srun; 20000 + 1234567 % 10000 */
    { SRUN, { DPT_LAUNCHER_SLURM, 5, 8, 1, 4, 0, "gpu07:24567" }, SAID_NOTHING },
    { SRUN "SLURM_RESTART_COUNT=2",
      { DPT_LAUNCHER_SLURM, 5, 8, 1, 4, 2, "gpu07:24567" },
      SAID_NOTHING },
    { SRUN "MASTER_ADDR=gpu07-ib MASTER_PORT=12345",
      { DPT_LAUNCHER_SLURM, 5, 8, 1, 4, 0, "gpu07-ib:12345" },
      SAID_NOTHING },
    { "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_STEP_ID=2 SLURM_JOB_ID=9 "
      "SLURM_NODEID=1 SLURM_TASKS_PER_NODE=1(x2) SLURM_LAUNCH_NODE_IPADDR=10.1.0.1",
      { DPT_LAUNCHER_SLURM, 1, 2, 0, 1, 0, "10.1.0.1:20511" },
      SAID_NOTHING },
    /* a step smaller than its job */
    { "SLURM_PROCID=1 SLURM_NTASKS=16 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_STEP_ID=0 "
      "SLURM_JOB_ID=10000 SLURM_NODEID=0 SLURM_TASKS_PER_NODE=8(x2) SLURM_STEP_NODELIST=a",
      { DPT_LAUNCHER_SLURM, 1, 2, 1, -1, 0, "a:20000" },
      SAID_NOTHING },
    { "SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0 SLURM_LOCALID=0",
      { DPT_LAUNCHER_SLURM, 0, 1, 0, -1, 0, "" },
      SAID_NOTHING },
    /* a job without a step: salloc's shell, sbatch's script */
    { SALLOC, { DPT_LAUNCHER_NONE, 0, 1, -1, -1, 0, "" }, SAID_NOTHING },
    { SALLOC "SLURM_PROCID=0 SLURM_LOCALID=0",
      { DPT_LAUNCHER_NONE, 0, 1, -1, -1, 0, "" },
      SAID_NOTHING },
    /* srun --mpi=pmi2 sets MPICH's names too; hydra in a job is counted by machines in Slurm's */
    { "PMI_RANK=5 PMI_SIZE=8 " SRUN,
      { DPT_LAUNCHER_SLURM, 5, 8, 1, 4, 0, "gpu07:24567" },
      SAID_NOTHING },
    { HYDRA SRUN, { DPT_LAUNCHER_MPICH, 1, 2, 1, 2, 0, "127.0.0.1:29501" }, SAID_NOTHING },
    { "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 SLURM_PROCID=1 SLURM_NTASKS=2 "
      "SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_STEP_NODELIST=a",
      { DPT_LAUNCHER_MPICH, 1, 2, 1, 2, 0, "127.0.0.1:29501" },
      SAID_NOTHING },
    /* what the user says */
    { TORCH, { DPT_LAUNCHER_OPTIONS, 1, 2, -1, -1, 0, "h:9" }, { 1, 2, -1, "h:9" } },
    { TORCH, { DPT_LAUNCHER_OPTIONS, 1, 2, 0, -1, 0, "node1:29500" }, { 1, 2, 0, NULL } },
    { "", { DPT_LAUNCHER_OPTIONS, 0, 1, -1, -1, 0, "" }, { 0, 1, -1, NULL } },
    { "", { DPT_LAUNCHER_OPTIONS, 1, 2, -1, -1, 0, "[::1]:29501" }, { 1, 2, -1, "::1" } },
    { OMPI, { DPT_LAUNCHER_OPENMPI, 2, 4, 0, 4, 0, "127.0.0.1:29501" }, { -1, -1, 0, NULL } },
};

static void launchers_are_understood(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof understood / sizeof *understood; i++) check_right(&understood[i]);
}

static void half_a_family_is_refused(void **state)
{
    static const struct {
        const char *env, *text;
    } cases[] = {
        { "RANK=0", "RANK is set as torchrun does, and WORLD_SIZE is not: set it, or unset RANK" },
        { "WORLD_SIZE=2", "WORLD_SIZE is set as torchrun does, and RANK is not" },
        { "LOCAL_RANK=0", "LOCAL_RANK is set as torchrun does, and RANK is not" },
        { "RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1",
          "LOCAL_RANK is not" },
        { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a",
          "RANK is set as torchrun does, and MASTER_PORT is not" },
        { "RANK=0 WORLD_SIZE=2 MASTER_PORT=1",
          "RANK is set as torchrun does, and MASTER_ADDR is not" },
        { "OMPI_COMM_WORLD_SIZE=2 " HYDRA,
          "OMPI_COMM_WORLD_SIZE is set as Open MPI does, and OMPI_COMM_WORLD_RANK is not" },
        { "PMI_RANK=0", "PMI_RANK is set as MPICH does, and PMI_SIZE is not" },
        { "SLURM_PROCID=0 SLURM_STEP_ID=0",
          "SLURM_PROCID is set as Slurm does, and SLURM_NTASKS is not" },
        { "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 "
          "OMPI_COMM_WORLD_LOCAL_SIZE=2",
          "4 processes, and nothing says where they meet: give --master-addr HOST[:PORT]" },
        { "PMI_RANK=0 PMI_SIZE=2", "2 processes, and nothing says where they meet" },
        { "SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=2", "nothing says where they meet" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dpt_launcher l;
        dpl_text why = { "" };

        assert_int_equal(
            dpt_launcher_read(&l, &nothing_said, lookup, (void *)(uintptr_t)cases[i].env, &why),
            DPL_EINVAL);
        if (!strstr(why.s, cases[i].text)) fail_msg("%s: %s", cases[i].env, why.s);
    }
}

static const struct {
    const char *env, *text;
    dpt_launcher_options said;
} nonsense[] = {
    { "RANK=x WORLD_SIZE=2", "RANK=\"x\" is no number from 0 to", SAID_NOTHING },
    { "RANK=-1 WORLD_SIZE=2", "RANK=\"-1\" is no number", SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=0", "WORLD_SIZE=\"0\" is no number from 1 to", SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=99999999999999999999", "WORLD_SIZE=", SAID_NOTHING },
    { "RANK=0x1 WORLD_SIZE=2", "RANK=\"0x1\"", SAID_NOTHING },
    { "RANK=2 WORLD_SIZE=2", "RANK is 2 and WORLD_SIZE is 2: ranks count from 0", SAID_NOTHING },
    { "PMI_RANK=3 PMI_SIZE=2", "PMI_RANK is 3 and PMI_SIZE is 2", SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2",
      "LOCAL_RANK is 2 of 2 processes: they count from 0", SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=3",
      "torchrun says 3 processes on this machine, and WORLD_SIZE 2 in all", SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000",
      "MASTER_PORT=\"70000\" is no number from 1 to 65535", SAID_NOTHING },
    { "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a/b MASTER_PORT=7", "MASTER_ADDR \"a/b\" is no HOST",
      SAID_NOTHING },
    { SRUN "TORCHELASTIC_RESTART_COUNT=x", "", { -1, -1, 9, NULL } }, /* local rank 9 of 4 */
    { "", "--rank and --world go together: --world is missing", { 0, -1, -1, NULL } },
    { "", "--rank and --world go together: --rank is missing", { -1, 2, -1, NULL } },
    { "", "--rank is 2 and --world is 2", { 2, 2, -1, "a" } },
    { "", "--world 0 is no number", { 0, 0, -1, "a" } },
    { "", "nothing says where they meet", { 0, 2, -1, NULL } },
    { "", "--master-addr \"a:\" is no HOST", { 0, 2, -1, "a:" } },
    { "", "--master-addr \"[::1\" is no HOST", { 0, 2, -1, "[::1" } },
    { "", "--master-addr \"a:99999\" is no HOST", { 0, 2, -1, "a:99999" } },
    { "", "--master-addr: this is one process alone", { -1, -1, -1, "a" } },
    { "", "--local-rank: this is one process alone", { -1, -1, 0, NULL } },
};

static void nonsense_is_refused(void **state)
{
    (void)state;

    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        dpt_launcher l;
        dpl_text why = { "" };

        if (dpt_launcher_read(&l, &nonsense[i].said, lookup, (void *)(uintptr_t)nonsense[i].env,
                              &why) != DPL_EINVAL)
            fail_msg("%s %d was taken", nonsense[i].env, nonsense[i].said.rank);
        if (!strstr(why.s, nonsense[i].text)) fail_msg("%s: %s", nonsense[i].env, why.s);
    }
}

static void host_lists_give_their_first(void **state)
{
    static const char *const right[][2] = {
        { "n1", "n1" },
        { "n1,n2", "n1" },
        { "n[01-04,07]", "n01" },
        { "n[7]", "n7" },
        { "gpu-a[003,005-010],login", "gpu-a003" },
        { "rack[1-2]n[09-12]", "rack1n09" },
        { "rack[2,4]n[9-12]-ib.cluster,x[1-2]", "rack2n9-ib.cluster" },
    };
    static const char *const wrong[] = { "",       ",n1",     "n[",  "n[1-2", "n[]",
                                         "n[a-b]", "n[1-2]]", "n 1", "n[-1]" };
    char host[64];
    (void)state;

    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        assert_int_equal(dpt_launcher_first_host(right[i][0], host, sizeof host), DPL_OK);
        assert_string_equal(host, right[i][1]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (dpt_launcher_first_host(wrong[i], host, sizeof host) != DPL_EINVAL)
            fail_msg("%s gave %s", wrong[i], host);
        assert_string_equal(host, "");
    }
    for (size_t len = 1; len < 8; len++) /* "rack1n09" needs 9 */
        assert_int_equal(dpt_launcher_first_host("rack[1-2]n[09-12]", host, len), DPL_EINVAL);
}

static void counts_per_machine_are_expanded(void **state)
{
    static const int want[] = { 4, 4, 3, 2, 2, 2, -1 };
    static const char *const wrong[] = { "", "x", "4(", "4(x", "4(x0)", "0", "4;4", "-2" };
    (void)state;

    for (int i = 0; i < 7; i++)
        assert_int_equal(dpt_launcher_count_of("4(x2),3,2(x3)", i), want[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(dpt_launcher_count_of(wrong[i], 3), -1);
}

static void addresses_get_a_port_and_brackets(void **state)
{
    static const char *const cases[][2] = {
        { "a", "a:5" },
        { "a.b-c_d:80", "a.b-c_d:80" },
        { "10.0.0.1", "10.0.0.1:5" },
        { "::1", "[::1]:5" },
        { "[::1]", "[::1]:5" },
        { "[fe80::1%eth0]:65535", "[fe80::1%eth0]:65535" },
        { "fd00:1:2::3", "[fd00:1:2::3]:5" },
    };
    static const char *const wrong[] = { "",    ":5",      "[]",   "[]:5",   "a b",    "a:b",
                                         "a:0", "a:65536", "a:-1", "[::1]5", "[::1]:", "a\n" };
    char out[DPT_LAUNCHER_ADDRESS_MAX];
    dpl_text why;
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(dpt_launcher_join_address(out, "X", cases[i][0], 5, &why), DPL_OK);
        assert_string_equal(out, cases[i][1]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (dpt_launcher_join_address(out, "X", wrong[i], 5, &why) != DPL_EINVAL)
            fail_msg("%s was taken", wrong[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_understood),
        cmocka_unit_test(half_a_family_is_refused),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(host_lists_give_their_first),
        cmocka_unit_test(counts_per_machine_are_expanded),
        cmocka_unit_test(addresses_get_a_port_and_brackets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
