/*
 * The oversell race. Several processes of two threads each sell one stock:
 * read it, think, write it back. Each way of guarding those three steps is
 * tried on the same stock with the same buyers:
 *
 *   no lock          everybody reads what others are about to change
 *   process mutex    what a mutex (or a synchronized block) of one process is
 *                    worth when there are several processes: nothing
 *   holdfast         one lock for all of them
 */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLERKS = 2, THINK_NS = 50000 };

static const char usage[] =
    "usage: holdfast lab oversell [OPTION...]\n"
    "\n"
    "Sells a stock to buyers by several processes, guarded in three ways, and "
    "shows\nwho sells more than there is.\n"
    "\n"
    "  -b, --backend URL  where holdfast's lock lives (else HOLDFAST_URL, else "
    "shm:)\n"
    "      --stock N      what there is (500)\n"
    "      --buyers N     each wants one (1000)\n"
    "      --procs N      processes that sell (8)\n"
    "\n"
    "Exit status 0 if holdfast sold exactly what there was and the others did "
    "not;\n1 if not.\n";

enum way { NO_LOCK, PROCESS_MUTEX, HOLDFAST, WAYS };
static const char *const way_names[WAYS] = {"no lock", "process mutex",
                                            "holdfast"};

struct shop {
    volatile int64_t stock; /* plain, as a row in a table would be */
    _Atomic int64_t buyers; /* still to be served */
    _Atomic int64_t sold;
    _Atomic int failed; /* the first code of holdfast's */
    hf_error error;
};

struct setting {
    const char *url;
    uint64_t stock, buyers, procs;
    char lock_name[64];
    bool help;
};

/* What the clerks of one process share. */
struct branch {
    struct shop *shop;
    enum way way;
    pthread_mutex_t mutex;
    hf_lock *lock;
    int go; /* closed: start */
};

static void fail(struct shop *shop, int code, const hf_error *err)
{
    int none = 0;

    if (atomic_compare_exchange_strong(&shop->failed, &none, code))
        shop->error = *err;
}

/* What the lock is for. */
static void sell_one(struct shop *shop)
{
    struct timespec think = {0, THINK_NS};
    int64_t seen = shop->stock;

    if (seen <= 0)
        return;
    nanosleep(&think, NULL); /* the database, the payment, the network */
    shop->stock = seen - 1;
    atomic_fetch_add(&shop->sold, 1);
}

static int serve(struct branch *branch, hf_error *err)
{
    int rc;

    switch (branch->way) {
    case PROCESS_MUTEX:
        pthread_mutex_lock(&branch->mutex);
        sell_one(branch->shop);
        pthread_mutex_unlock(&branch->mutex);
        return HF_OK;
    case HOLDFAST:
        rc = hf_lock_acquire(branch->lock, NULL, err);
        if (rc != HF_OK)
            return rc;
        sell_one(branch->shop);
        return hf_lock_release(branch->lock, err);
    default:
        sell_one(branch->shop);
        return HF_OK;
    }
}

static void *clerk_main(void *arg)
{
    struct branch *branch = arg;
    hf_error err = HF_ERROR_INIT;
    int rc = HF_OK;
    char end;

    while (read(branch->go, &end, 1) < 0 && errno == EINTR) {
    }
    while (rc == HF_OK && atomic_fetch_sub(&branch->shop->buyers, 1) > 0)
        rc = serve(branch, &err);
    if (rc != HF_OK)
        fail(branch->shop, rc, &err);
    return NULL;
}

static void open_shop(struct branch *branch)
{
    pthread_t clerks[CLERKS];
    int started = 0;

    while (started < CLERKS &&
           pthread_create(&clerks[started], NULL, clerk_main, branch) == 0)
        started++;
    if (started < CLERKS)
        fail(branch->shop, HF_ENOMEM,
             &(hf_error){.text = "cannot make a thread"});
    for (int i = 0; i < started; i++)
        pthread_join(clerks[i], NULL);
}

static _Noreturn void branch_main(const struct setting *setting, enum way way,
                                  struct shop *shop, int go)
{
    struct branch branch = {.shop = shop, .way = way, .go = go};
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    int rc = HF_OK;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_mutex_init(&branch.mutex, NULL);
    if (way == HOLDFAST) {
        rc = hf_open(setting->url, NULL, &client, &err);
        if (rc == HF_OK)
            rc = hf_lock_new(client, setting->lock_name, HF_CSTRING, NULL,
                             &branch.lock, &err);
    }
    if (rc == HF_OK)
        open_shop(&branch);
    else
        fail(shop, rc, &err);
    hf_lock_free(branch.lock);
    hf_close(client);
    _exit(0);
}

/* 0, or -1 after having said what is wrong. */
static int run_branches(const struct setting *setting, enum way way,
                        struct shop *shop, double *seconds)
{
    pid_t *pids = calloc(setting->procs, sizeof *pids);
    int go[2], status, failed = 0;
    size_t n = 0;
    int64_t start;

    if (!pids || pipe2(go, O_CLOEXEC) < 0) {
        cli_say(&lab_oversell, "%s", strerror(errno));
        free(pids);
        return -1;
    }
    for (; n < setting->procs; n++) {
        pids[n] = fork();
        if (pids[n] == 0) {
            close(go[1]);
            branch_main(setting, way, shop, go[0]);
        }
        if (pids[n] < 0) {
            cli_say(&lab_oversell, "cannot fork: %s", strerror(errno));
            failed = -1;
            break;
        }
    }
    close(go[0]);
    start = cli_now_ns(CLOCK_MONOTONIC);
    close(go[1]);
    for (size_t i = 0; i < n; i++) {
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0) {
            cli_say(&lab_oversell, "process %d has died", (int)pids[i]);
            failed = -1;
        }
    }
    *seconds = (double)(cli_now_ns(CLOCK_MONOTONIC) - start) / 1e9;
    free(pids);
    return failed;
}

/* CLI_OK or an exit code; *oversold is negative if some were left unsold. */
static int try_way(const struct setting *setting, enum way way,
                   struct shop *shop, int64_t *oversold)
{
    int64_t stock = (int64_t)setting->stock, sold;
    double seconds;

    *shop = (struct shop){.stock = stock, .buyers = (int64_t)setting->buyers};
    if (run_branches(setting, way, shop, &seconds) < 0)
        return CLI_OSERR;
    if (shop->failed)
        return cli_failed(&lab_oversell, "cannot sell", shop->failed,
                          &shop->error);
    sold = atomic_load(&shop->sold);
    *oversold = sold - stock;
    printf("%-14s %8lld %9lld %9.3f %11.0f\n", way_names[way], (long long)sold,
           *oversold > 0 ? (long long)*oversold : 0LL, seconds,
           (double)sold / seconds);
    return CLI_OK;
}

static int judge(const struct setting *setting, const int64_t oversold[WAYS])
{
    bool raced = oversold[NO_LOCK] > 0 && oversold[PROCESS_MUTEX] > 0;
    int64_t expected = setting->buyers < setting->stock
                           ? (int64_t)(setting->buyers - setting->stock)
                           : 0;

    if (oversold[HOLDFAST] != expected) {
        printf("\nholdfast sold %lld too %s: that is a bug.\n",
               llabs((long long)(oversold[HOLDFAST] - expected)),
               oversold[HOLDFAST] > expected ? "many" : "few");
        return CLI_FAILED;
    }
    if (!raced) {
        printf("\nThe race did not show: without holdfast nothing was oversold "
               "either.\nTry more --procs, or more --buyers than --stock.\n");
        return CLI_FAILED;
    }
    printf("\nA lock inside one process does not help against the others; "
           "holdfast's is\none for all of them.\n");
    return CLI_OK;
}

static int sell(const struct setting *setting)
{
    struct shop *shop = mmap(NULL, sizeof *shop, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int64_t oversold[WAYS] = {0};
    int status = CLI_OK;

    if (shop == MAP_FAILED) {
        cli_say(&lab_oversell, "%s", strerror(errno));
        return CLI_OSERR;
    }
    printf("%llu processes sell a stock of %llu to %llu buyers\n\n",
           (unsigned long long)setting->procs,
           (unsigned long long)setting->stock,
           (unsigned long long)setting->buyers);
    printf("%-14s %8s %9s %9s %11s\n", "way", "sold", "oversold", "seconds",
           "per second");
    for (enum way way = 0; way < WAYS && status == CLI_OK; way++)
        status = try_way(setting, way, shop, &oversold[way]);
    if (status == CLI_OK)
        status = judge(setting, oversold);
    munmap(shop, sizeof *shop);
    return status;
}

enum { OPT_STOCK = 256, OPT_BUYERS, OPT_PROCS };

static const struct option long_options[] = {
    {"backend", required_argument, NULL, 'b'},
    {"stock", required_argument, NULL, OPT_STOCK},
    {"buyers", required_argument, NULL, OPT_BUYERS},
    {"procs", required_argument, NULL, OPT_PROCS},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int take_number(const char *text, uint64_t max, uint64_t *out)
{
    if (cli_number(text, 1, max, out) < 0)
        return cli_misuse(&lab_oversell, "`%s' is not a number from 1 to %llu",
                          text, (unsigned long long)max);
    return CLI_OK;
}

static int take_option(struct setting *setting, int option, const char *value)
{
    switch (option) {
    case 'b':
        setting->url = value;
        return CLI_OK;
    case OPT_STOCK:
        return take_number(value, 1000000, &setting->stock);
    case OPT_BUYERS:
        return take_number(value, 1000000, &setting->buyers);
    case OPT_PROCS:
        return take_number(value, 1000, &setting->procs);
    case 'h':
        setting->help = true;
        return CLI_OK;
    default: /* cli_option has said what is wrong */
        return CLI_USAGE;
    }
}

static int oversell_main(int argc, char **argv)
{
    struct setting setting = {.stock = 500, .buyers = 1000, .procs = 8};
    int option, status = CLI_OK;

    while (status == CLI_OK &&
           (option = cli_option(&lab_oversell, argc, argv, ":b:h",
                                long_options)) != -1)
        status = take_option(&setting, option, optarg);
    if (status != CLI_OK)
        return status;
    if (setting.help)
        return cli_help(&lab_oversell);
    if (optind < argc)
        return cli_misuse(&lab_oversell, "`%s': it takes options alone",
                          argv[optind]);
    setting.url = cli_url(setting.url);
    snprintf(setting.lock_name, sizeof setting.lock_name,
             "holdfast-lab-oversell-%d", (int)getpid());
    return sell(&setting);
}

const struct cli_verb lab_oversell = {"lab oversell",
                                      "a stock is sold by several processes",
                                      usage, oversell_main};
