/*
 * HOLDFAST_HELD: entries "PID:START:KIND:MODE:PERMITS:HASH", separated by
 * spaces. START is the start time of the process (/proc/PID/stat), so that a
 * reused pid is not taken for the same process. HASH covers the lock's name and
 * the URL of its place, without user and password.
 */
#include "nested.h"

#include "client.h"
#include "shared/exit_code.h"
#include "shared/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "HOLDFAST_HELD"

enum { ENTRY_LEN = 96, ANCESTORS_MAX = 4096 };

struct entry {
    long long pid;
    unsigned long long start;
    unsigned kind, mode, permits;
    uint64_t hash;
};

/* FNV-1a. It is part of the format, because other versions of this program
 * compare its results with theirs. */
static const uint64_t FNV_BASIS = 14695981039346656037u;

static uint64_t nested_hash_bytes(uint64_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

static uint64_t nested_hash_lower(uint64_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = (char)tolower((unsigned char)text[i]);

        hash = nested_hash_bytes(hash, &c, 1);
    }
    return hash;
}

/* Adds to the hash those options of a URL that say where a lock is. */
static uint64_t nested_hash_options(uint64_t hash, const char *query)
{
    static const char *const places[] = {"prefix=", "db=", "socket="};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t name_len = strlen(places[i]);

        for (const char *at = query; *at; at += strcspn(at, "&")) {
            at += *at == '&' || *at == '?';
            if (strncmp(at, places[i], name_len) == 0)
                hash = nested_hash_bytes(hash, at, strcspn(at, "&"));
        }
    }
    return hash;
}

/* Hashes the scheme and the hosts in lower case, without user and password,
 * then the path, and the options that say where a lock is. */
static uint64_t nested_hash_url(const char *url)
{
    size_t scheme = strcspn(url, ":"), len;
    uint64_t hash = nested_hash_lower(FNV_BASIS, url, scheme);
    const char *at = url + scheme, *query = strchr(url, '?');
    uid_t user = geteuid();

    /* The default directory of shared memory depends on the user. */
    if (strncasecmp(url, "shm:", 4) == 0)
        hash = nested_hash_bytes(hash, (const char *)&user, sizeof user);
    if (strncmp(at, "://", 3) == 0) {
        at += 3;
        len = strcspn(at, "/?");
        for (size_t i = len; i > 0; i--)
            if (at[i - 1] == '@') {
                at += i;
                len -= i;
                break;
            }
        hash = nested_hash_lower(hash, at, len);
        at += len;
        hash = nested_hash_bytes(hash, at, strcspn(at, "?"));
    }
    return query ? nested_hash_options(hash, query) : hash;
}

static uint64_t nested_hash_lock(const struct lock_options *w, const char *name)
{
    return nested_hash_bytes(nested_hash_url(cli_url(w->url)), name,
                             strlen(name));
}

/* Reads the parent and the start time of a process. Returns false if they
 * cannot be read. */
static bool nested_look_up(pid_t pid, pid_t *parent, unsigned long long *start)
{
    char path[64], text[1024];
    const char *at;
    FILE *stat;
    size_t len;
    long ppid;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    stat = fopen(path, "re");
    if (!stat)
        return false;
    len = fread(text, 1, sizeof text - 1, stat);
    fclose(stat);
    text[len] = '\0';
    at = strrchr(text, ')'); /* the end of the process name, which may contain
                                any character */
    if (!at || sscanf(at,
                      ") %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
                      "%*u %*d %*d %*d %*d %*d %*d %llu",
                      &ppid, start) != 2)
        return false;
    *parent = (pid_t)ppid;
    return true;
}

static bool nested_is_ancestor(const struct entry *e)
{
    pid_t pid = getppid(), parent = 0;
    unsigned long long start;

    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++, pid = parent) {
        if (!nested_look_up(pid, &parent, &start))
            return false;
        if (pid == e->pid)
            return start == e->start;
    }
    return false;
}

/* Reads the next entry of a text and returns the text after it, or NULL if
 * there is none. Skips words that are not entries. */
static const char *nested_next_entry(const char *text, struct entry *e)
{
    for (;;) {
        text += strspn(text, " ");
        if (!*text)
            return NULL;
        if (sscanf(text, "%lld:%llu:%u:%u:%u:%" SCNx64, &e->pid, &e->start,
                   &e->kind, &e->mode, &e->permits, &e->hash) == 6)
            return text + strcspn(text, " ");
        text += strcspn(text, " ");
    }
}

/* Fills in `nested' if an ancestor holds the lock, or so many permits of a
 * semaphore that too few are left. This process might then wait forever,
 * because the ancestor may be waiting for this process to end. If `holder' is
 * not 0, it is the pid of the holder that the server names; otherwise entries
 * are compared by name and URL. */
static void nested_compare(struct nested *nested, const struct lock_options *w,
                           const char *name, const char *held, long long holder)
{
    uint64_t hash = nested_hash_lock(w, name), taken = 0;
    struct entry e;

    while ((held = nested_next_entry(held, &e))) {
        if (e.kind != (unsigned)w->kind ||
            (holder ? e.pid != holder : e.hash != hash) ||
            !nested_is_ancestor(&e))
            continue;
        taken = holder ? e.permits : taken + e.permits;
        if (w->kind == HF_SEMAPHORE && taken + w->permits <= w->of)
            continue;
        nested->name = name;
        nested->pid = (pid_t)e.pid;
        nested->may_share = w->kind == HF_RWLOCK && w->mode == HF_READ &&
                            e.mode == (unsigned)HF_READ;
        if (!nested->may_share)
            return;
    }
}

void nested_find(struct nested *nested, const struct lock_options *w)
{
    const char *held = getenv(VARIABLE);

    *nested = (struct nested){.name = NULL};
    for (size_t i = 0; held && i < w->len; i++) {
        nested_compare(nested, w, w->names[i], held, 0);
        if (nested->name && !nested->may_share)
            return;
    }
}

void nested_inspect(struct nested *nested, const struct lock_options *w,
                    hf_client *client)
{
    const char *held = getenv(VARIABLE);
    hf_info *info = NULL;

    for (size_t i = 0; held && *held && i < w->len && !nested->name; i++) {
        if (hf_inspect(client, w->names[i], HF_CSTRING, &info, NULL) != HF_OK)
            return;
        for (size_t k = 0; k < info->holders_len && !nested->name; k++)
            if (cli_is_here(&info->holders[k]))
                nested_compare(nested, w, w->names[i], held,
                               info->holders[k].pid);
        hf_info_free(info);
    }
}

/* Appends an entry to a text that has room for ENTRY_LEN more bytes. */
static void nested_append(char *text, const struct entry *e)
{
    size_t len = strlen(text);

    snprintf(text + len, ENTRY_LEN, "%s%lld:%llu:%u:%u:%u:%" PRIx64,
             len ? " " : "", e->pid, e->start, e->kind, e->mode, e->permits,
             e->hash);
}

static void nested_append_ours(char *text, const struct lock_options *w)
{
    struct entry e = {.pid = getpid(),
                      .kind = (unsigned)w->kind,
                      .mode = (unsigned)w->mode,
                      .permits = w->permits};
    pid_t parent;

    if (!nested_look_up(getpid(), &parent, &e.start))
        return;
    for (size_t i = 0; i < w->len; i++) {
        e.hash = nested_hash_lock(w, w->names[i]);
        nested_append(text, &e);
    }
}

int nested_export(const struct lock_options *w)
{
    const char *held = getenv(VARIABLE);
    /* The shortest entry, "1:1:1:0:0:1", has 11 bytes. */
    size_t most = w->len + (held ? strlen(held) / 11 : 0) + 1;
    char *text = calloc(most, ENTRY_LEN);
    struct entry e;
    int status = CLI_OSERR;

    if (!text)
        return status;
    while (held && (held = nested_next_entry(held, &e)))
        if (nested_is_ancestor(&e))
            nested_append(text, &e);
    nested_append_ours(text, w);
    if (setenv(VARIABLE, text, 1) == 0)
        status = CLI_OK;
    free(text);
    return status;
}

bool nested_is_held(const struct nested *nested, hf_client *client)
{
    hf_info *info = NULL;
    bool held = false;

    if (hf_inspect(client, nested->name, HF_CSTRING, &info, NULL) != HF_OK)
        return true;
    for (size_t i = 0; i < info->holders_len; i++)
        if (info->holders[i].pid <= 0 || info->holders[i].pid == nested->pid)
            held = true;
    hf_info_free(info);
    return held;
}
