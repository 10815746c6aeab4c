/* holdfast show: who holds a lock, and who waits for it. */
#include "client.h"
#include "json.h"
#include "lock_error.h"
#include "lock_print.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/screen.h"
#include "shared/verb.h"
#include "verbs.h"

#include <getopt.h>
#include <holdfast.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct cli_flag flags[] = {
    CLI_FLAG_BACKEND,
    {CLI_JSON, "json", NULL, "print one JSON object with all that is known"},
    CLI_FLAG_END,
};

static void show_print_kind(const hf_info *info)
{
    const char *fair = info->fairness == HF_FAIR     ? "fair "
                       : info->fairness == HF_UNFAIR ? "unfair "
                                                     : "";

    if (info->kind == HF_SEMAPHORE)
        printf("Kind:     %ssemaphore of %u permit%s\n", fair, info->permits,
               info->permits == 1 ? "" : "s");
    else if (info->kind == HF_RWLOCK)
        printf("Kind:     %sread-write lock\n", fair);
    else if (info->kind == HF_LATCH)
        printf("Kind:     latch\nCount:    %" PRIu64 " left\n", info->count);
    else
        printf("Kind:     %smutex\n", fair);
}

static void show_print_moment(int64_t unix_ms)
{
    char text[32];
    time_t s = (time_t)(unix_ms / 1000);
    struct tm parts;

    if (unix_ms > 0 && localtime_r(&s, &parts) &&
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) > 0)
        printf("since %s (%s), ", text, lock_age_since(unix_ms).text);
}

static void show_print_share(const hf_info *info, const hf_party *p)
{
    if (info->kind == HF_RWLOCK)
        fputs(p->mode == HF_READ ? ", read" : ", write", stdout);
    if (info->kind == HF_SEMAPHORE)
        printf(", %u permit%s", p->permits, p->permits == 1 ? "" : "s");
}

static void show_print_holder(const hf_info *info, const hf_party *p)
{
    printf("Holder:   %s", cli_party(p).text);
    show_print_share(info, p);
    printf("\n          ");
    show_print_moment(p->since_unix_ms);
    if (p->token > 0)
        printf("token %" PRIu64 ", ", p->token);
    if (p->left_ms >= 0)
        printf("%s left",
               p->left_ms < 1000 ? "less than 1s" : lock_age(p->left_ms).text);
    else
        printf("no time limit");
    if (p->owner[0])
        printf("\n          owner %s", p->owner);
    putchar('\n');
}

static void show_print_waiters(const hf_info *info)
{
    if (info->waiters_unknown) {
        puts("Waiting:  not known, the backend cannot tell");
        return;
    }
    printf("Waiting:  %zu\n", info->waiters_len);
    for (size_t i = 0; i < info->waiters_len; i++) {
        const hf_party *p = &info->waiters[i];

        printf("%8zu. %s", i + 1, cli_party(p).text);
        show_print_share(info, p);
        if (p->since_unix_ms > 0)
            printf(", for %s", lock_age_since(p->since_unix_ms).text);
        putchar('\n');
    }
}

static void show_print_text(const char *name, const hf_info *info)
{
    bool is_used = lock_is_used(info);

    if (is_used)
        fputs("Name:     ", stdout);
    cli_print_bytes(stdout, name, strlen(name));
    puts(is_used ? "" : ": no client holds it or waits for it");
    if (!is_used)
        return;
    show_print_kind(info);
    if (info->holders_len == 0 && info->kind != HF_LATCH)
        puts("Holder:   none");
    for (size_t i = 0; i < info->holders_len; i++)
        show_print_holder(info, &info->holders[i]);
    show_print_waiters(info);
}

static int show(hf_client *client, const char *url, const char *name, bool json)
{
    hf_error err = HF_ERROR_INIT;
    static hf_info none;
    hf_info *info = &none;
    int rc = client ? hf_inspect(client, name, HF_CSTRING, &info, &err) : HF_OK;
    int status;

    if (rc != HF_OK)
        return cli_lock_failed(&cli_show, url, name, rc, &err);
    if (json) {
        json_open(NULL, '{');
        lock_print_json(name, strlen(name), info);
        json_close('}');
        json_end();
    } else {
        show_print_text(name, info);
    }
    status = lock_is_used(info) ? CLI_OK : CLI_FAILED;
    if (client)
        hf_info_free(info);
    return status;
}

static int show_main(int argc, char **argv)
{
    const char *url = NULL, *name;
    hf_client *client;
    bool json = false;
    int status = cli_few_flags(&cli_show, argc, argv, &url, &json);

    if (status == CLI_OK)
        status = cli_name(&cli_show, argc - optind, argv + optind, url, &name);
    if (status == CLI_OK)
        status = cli_open_existing(&cli_show, url, &client);
    if (status != CLI_OK)
        return status;
    status = show(client, url, name, json);
    hf_close(client);
    return status;
}

const struct cli_verb cli_show = {
    .name = "show",
    .summary = "shows who holds a lock and who waits for it",
    .synopsis = "show [OPTION...] NAME",
    .about = "Shows who holds the lock NAME, since when, with which token and "
             "for how long, and who waits for it, in the order of the queue.",
    .flags = flags,
    .notes =
        "Exit status 1 if no client holds the lock or waits for it.\n"
        "\n"
        "  holdfast show nightly\n"
        "  holdfast show -b redis://db1 --json nightly | jq .holders[0].host\n",
    .operand = CLI_NAME,
    .main = show_main,
};
