/* holdfast doctor: what a backend promises in its present configuration. */
#include "client.h"
#include "json.h"
#include "shared/args.h"
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/screen.h"
#include "shared/values.h"
#include "shared/verb.h"
#include "verbs.h"

#include <getopt.h>
#include <holdfast.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct cli_flag flags[] = {
    CLI_FLAG_BACKEND,
    CLI_FLAG_JSON,
    CLI_FLAG_END,
};

/* Indexed by enum hf_level, which is also the exit status. */
static const char *const levels[] = {"ok", "warning", "error"};
static const enum cli_colour colours[] = {CLI_GREEN, CLI_YELLOW, CLI_RED};

enum { LEVEL_WIDTH = 9 }; /* "warning  " */

static bool doctor_is_port(const char *text, size_t len)
{
    return len > 0 && len < 6 && strspn(text, "0123456789") >= len;
}

/* Returns whether the text is a host, perhaps with a port, such as
 * "[::1]:6379". */
static bool doctor_is_host(const char *text, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t name = strspn(text, letters);

    if (text[0] == '[') {
        name = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
        if (text[name] != ']')
            return false;
        name++;
    }
    return name >= len || (text[name] == ':' &&
                           doctor_is_port(text + name + 1, len - name - 1));
}

static bool doctor_are_hosts(const char *text, size_t len)
{
    for (size_t n; len; text += n, len -= n) {
        n = strcspn(text, ",");
        n = n < len ? n : len;
        if (!doctor_is_host(text, n))
            return false;
        n += n < len; /* the comma */
    }
    return true;
}

/* Writes the scheme, and also the hosts if the text in their place is certainly
 * a list of hosts. Otherwise that text might be part of a password: of one that
 * was not percent-encoded, or of one after which the host is missing. A
 * password must not be printed. */
static void doctor_show_place(const char *url, char *out, size_t size)
{
    const char *hosts = strstr(url, "://"), *end;
    char scheme[32];

    cli_scheme(url, scheme, sizeof scheme);
    snprintf(out, size, "%s:", scheme);
    if (!hosts)
        return;
    hosts += 3;
    /* These URLs name a path on this machine and have no password. */
    if (strcmp(scheme, "shm") == 0 || strcmp(scheme, "redis+unix") == 0) {
        if (!strchr(hosts, '@'))
            snprintf(out, size, "%s://%.*s", scheme, (int)strcspn(hosts, "?"),
                     hosts);
        return;
    }
    end = hosts + strcspn(hosts, "/?#");
    if (memrchr(hosts, '@', (size_t)(end - hosts)))
        hosts = (const char *)memrchr(hosts, '@', (size_t)(end - hosts)) + 1;
    if (!strchr(end, '@') && doctor_are_hosts(hosts, (size_t)(end - hosts)))
        snprintf(out, size, "%s://%.*s", scheme, (int)(end - hosts), hosts);
}

static void doctor_print_json(const char *url, const hf_diagnosis *d)
{
    char place[512];

    doctor_show_place(url, place, sizeof place);
    json_open(NULL, '{');
    json_text("url", place);
    json_text("level", levels[d->level]);
    json_open("findings", '[');
    for (const hf_finding *f = d->findings; f < d->findings + d->len; f++) {
        json_open(NULL, '{');
        json_text("level", levels[f->level]);
        json_text("subject", f->subject);
        json_text("text", f->text);
        json_close('}');
    }
    json_close(']');
    json_close('}');
    json_end();
}

/* Prints one line per finding. Lines are wrapped only on a terminal, because
 * programs read the output by lines. */
static void doctor_print_text(const char *url, const hf_diagnosis *d)
{
    int width = isatty(STDOUT_FILENO) ? cli_width(STDOUT_FILENO) : INT_MAX;
    size_t count[3] = {0}, subject = 0;
    char place[512];

    for (size_t i = 0; i < d->len; i++) {
        size_t len = strlen(d->findings[i].subject);

        subject = len > subject ? len : subject;
    }
    for (const hf_finding *f = d->findings; f < d->findings + d->len; f++) {
        count[f->level]++;
        printf("%s%s%s%*s%-*s  ", cli_colour(colours[f->level]),
               levels[f->level], cli_colour(CLI_PLAIN),
               LEVEL_WIDTH - (int)strlen(levels[f->level]), "", (int)subject,
               f->subject);
        cli_wrap(stdout, LEVEL_WIDTH + (int)subject + 2, width, f->text);
    }
    doctor_show_place(url, place, sizeof place);
    printf("%s: %zu warning%s, %zu error%s\n", place, count[HF_LEVEL_WARNING],
           count[HF_LEVEL_WARNING] == 1 ? "" : "s", count[HF_LEVEL_ERROR],
           count[HF_LEVEL_ERROR] == 1 ? "" : "s");
}

static int doctor_print(const char *url, const hf_diagnosis *d, bool json)
{
    if (json)
        doctor_print_json(url, d);
    else
        doctor_print_text(url, d);
    return (int)d->level;
}

/* Prints a failure to connect or to diagnose as a finding. */
static int doctor_print_failure(const char *url, const char *subject,
                                const hf_error *err, bool json)
{
    hf_finding f = {.level = HF_LEVEL_ERROR};
    hf_diagnosis d = {.level = HF_LEVEL_ERROR, .len = 1, .findings = &f};

    snprintf(f.subject, sizeof f.subject, "%s", subject);
    snprintf(f.text, sizeof f.text, "%s", err->text);
    return doctor_print(url, &d, json);
}

static int doctor_examine(const char *url, bool json)
{
    hf_error err = HF_ERROR_INIT;
    hf_diagnosis *d = NULL;
    hf_client *client = NULL;
    int rc = hf_open(url, NULL, &client, &err), status;

    if (rc && cli_exit_of(rc) == CLI_USAGE)
        return cli_cannot_open(&cli_doctor, url, rc, &err);
    if (rc)
        return doctor_print_failure(url, "connection", &err, json);
    rc = hf_diagnose(client, &d, &err);
    status = rc ? doctor_print_failure(url, "diagnosis", &err, json)
                : doctor_print(url, d, json);
    hf_diagnosis_free(d);
    hf_close(client);
    return status;
}

static int doctor(int argc, char **argv)
{
    const char *url = NULL;
    bool json = false;

    if (cli_few_flags(&cli_doctor, argc, argv, &url, &json) != CLI_OK)
        return CLI_USAGE;
    if (optind < argc) /* the message quotes no URL: it may contain a
                          password */
        return cli_misuse(&cli_doctor,
                          cli_is_url(argv[optind])
                              ? "the operand is a URL; is a -b missing?"
                              : "doctor takes no operand");
    return doctor_examine(cli_url(url), json);
}

const struct cli_verb cli_doctor = {
    .name = "doctor",
    .summary = "says what a backend promises as it is configured",
    .synopsis = "doctor [-b URL] [--json]",
    .about = "Asks the backend for the settings that matter to locks, acquires "
             "and\nreleases a lock, and says in plain words what is promised, "
             "what is\nnot, and what to change.",
    .flags = flags,
    .notes = "Each line is ok, warning (a promise is weaker than it could be) "
             "or error\n(locks do not work, or may be lost at any time).\n"
             "\n"
             "  holdfast doctor                      shared memory of this "
             "user\n"
             "  holdfast doctor -b redis://db1       a server\n"
             "  holdfast doctor --json | jq -r '.findings[] | "
             "select(.level!=\"ok\") | .text'\n"
             "\n"
             "Exit status: 0 all is well, 1 there are warnings, 2 there are "
             "errors or the\nbackend cannot be used, 64 usage.\n",
    .main = doctor,
};
