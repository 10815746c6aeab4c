/*
 * Prints the holders and waiters of every lock that is in use, or of the locks
 * whose names begin with PREFIX.
 *
 *     inspect [URL [PREFIX]]
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

static void show_party(const char *role, const hf_party *p)
{
    printf("    %s %s", role, p->label[0] ? p->label : p->owner);
    if (p->pid)
        printf(", process %" PRId64 " on %s", p->pid, p->host);
    if (p->token)
        printf(", token %" PRIu64, p->token);
    putchar('\n');
}

static int show(hf_client *client, const struct hf_name *name, hf_error *err)
{
    static const char *const kinds[] = {"free", "mutex", "read-write lock",
                                        "semaphore", "latch"};
    hf_info *info;
    int rc = hf_inspect(client, name->bytes, name->len, &info, err);

    if (rc)
        return rc;
    printf("%s: %s\n", name->bytes, kinds[info->kind]);
    if (info->kind == HF_LATCH)
        printf("    %" PRIu64 " left\n", info->count);
    for (size_t i = 0; i < info->holders_len; i++)
        show_party("held by", &info->holders[i]);
    for (size_t i = 0; i < info->waiters_len; i++)
        show_party("wanted by", &info->waiters[i]);
    if (info->waiters_unknown)
        puts("    the backend cannot tell who waits");
    hf_info_free(info);
    return 0;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "shm:";
    const char *prefix = argc > 2 ? argv[2] : NULL;
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    hf_names *names = NULL;
    int rc = hf_open(url, NULL, &client, &err);

    if (!rc)
        rc = hf_list(client, prefix, &names, &err);
    for (size_t i = 0; !rc && i < names->len; i++)
        rc = show(client, &names->names[i], &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_names_free(names);
    hf_close(client);
    return rc ? 1 : 0;
}
