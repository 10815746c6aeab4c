/*
 * Handles a stuck holder. Prints what locks guarantee with the server's
 * settings (hf_diagnose), shows who holds NAME (hf_inspect), and takes the lock
 * away from exactly that holder (hf_break_hold). If another client has acquired
 * the lock in the meantime, nothing is broken.
 *
 *     operator URL NAME
 */
#include <holdfast.h>
#include <inttypes.h>
#include <stdio.h>

static int diagnose(hf_client *client, hf_error *err)
{
    static const char *const levels[] = {"ok", "warning", "error"};
    hf_diagnosis *found;
    int rc = hf_diagnose(client, &found, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < found->len; i++)
        printf("%-7s  %s: %s\n", levels[found->findings[i].level],
               found->findings[i].subject, found->findings[i].text);
    hf_diagnosis_free(found);
    return 0;
}

static int break_first(hf_client *client, const char *name, hf_error *err)
{
    const hf_party *holder;
    hf_info *info;
    int rc = hf_inspect(client, name, HF_CSTRING, &info, err);

    if (rc)
        return rc;
    if (info->holders_len == 0) {
        printf("%s is free\n", name);
    } else {
        holder = &info->holders[0];
        printf("%s is held by %s, process %" PRId64 " on %s, token %" PRIu64
               "\n",
               name, holder->label, holder->pid, holder->host, holder->token);
        rc = hf_break_hold(client, name, HF_CSTRING, holder->token,
                           holder->owner, err);
        if (!rc)
            puts("taken away from it");
    }
    hf_info_free(info);
    return rc;
}

int main(int argc, char **argv)
{
    hf_error err = HF_ERROR_INIT;
    hf_client *client = NULL;
    int rc;

    if (argc != 3) {
        fputs("usage: operator URL NAME\n", stderr);
        return 64;
    }
    rc = hf_open(argv[1], NULL, &client, &err);
    if (!rc)
        rc = diagnose(client, &err);
    if (!rc)
        rc = break_first(client, argv[2], &err);
    if (rc)
        fprintf(stderr, "%s: %s\n", hf_error_name(rc), err.text);
    hf_close(client);
    return rc ? 1 : 0;
}
