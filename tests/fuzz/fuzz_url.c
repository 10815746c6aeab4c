/*
 * Feeds the URL parser anything: it must not crash, and its results must be
 * valid.
 *
 * This is a target of clang's fuzzer; with PLAIN_MAIN it is a program that
 * mutates a few valid URLs at random, each some 50 000 times, and prints the
 * seed. Each case (TAP) is one of these URLs:
 *
 *     fuzz_url [TIMES [SEED]]
 */
#include "base/text.h"
#include "core/client.h"
#include "fuzz_main.h"
#include "loop/url.h"

#include <string.h>

static hf_client client;

/* Each part must begin and end inside the URL's block of memory. */
static void check_part(const struct hf__url *u, const char *part)
{
    must(part >= u->memory && part < u->memory + u->memory_len, "a stray part");
    must(memchr(part, 0, (size_t)(u->memory + u->memory_len - part)) != NULL,
         "a part without end");
}

static void check_url(const struct hf__url *u)
{
    check_part(u, u->scheme);
    check_part(u, u->user);
    check_part(u, u->password);
    check_part(u, u->path);
    must(u->scheme[0] != '\0', "an empty scheme");
    must(u->hosts_len <= 16 && u->options_len <= 32, "too many");
    for (size_t i = 0; i < u->hosts_len; i++) {
        check_part(u, u->hosts[i].name);
        must(u->hosts[i].name[0] != '\0', "an empty host");
    }
    for (size_t i = 0; i < u->options_len; i++) {
        check_part(u, u->options[i].key);
        check_part(u, u->options[i].value);
        must(u->options[i].key[0] != '\0', "an empty key");
        for (size_t k = 0; k < i; k++)
            must(strcmp(u->options[i].key, u->options[k].key) != 0,
                 "a key twice");
    }
}

/* Parses a text as a time; the result must be in bounds. */
static void check_times(const char *text)
{
    int64_t ms = -1;

    if (!hf__parse_ms(text, &ms))
        must(ms >= 0 && ms <= HF_TIME_MAX_MS, "a time out of bounds");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = malloc(len + 1); /* the exact size, for the sanitizer */
    hf_error err = HF_ERROR_INIT;
    struct hf__url url;
    int rc;

    if (!text)
        return 0;
    memcpy(text, data, len);
    text[len] = '\0';
    check_times(text);
    rc = hf__url_parse(&client, text, &url, &err);
    must(rc == 0 || (rc == HF_EINVAL && err.code == rc && err.text[0]),
         "a failure without a word");
    if (!rc) {
        check_url(&url);
        for (size_t i = 0; i < url.options_len; i++)
            check_times(url.options[i].value);
        hf__url_option(&url, "ttl");
    }
    hf__url_free(&client, &url);
    free(text);
    return 0;
}

#ifdef PLAIN_MAIN

static const char *const seeds[] = {
    "shm:",
    "shm:///run/app?mode=0660&group=app",
    "redis://user:pass%40word@host:6379/0?ttl=30s&prefix=a%2Fb",
    "redis://[::1]:6379,other,third:1/2?fair=yes",
    "redis+unix://:secret@/run/redis.sock?op_timeout=1500ms&dialect=string",
    "x:?a=1&b=2&c=3&d=&e=%41",
};

/* Changes a string of len bytes a little. Returns its new length. */
static size_t mutate(char *text, size_t len, size_t room)
{
    static const char odd[] = ":/?@[],&=%+ \0\n\xff"
                              "0aZ";
    size_t at = len ? draw(len) : 0, n = 1 + draw(8);
    char ch = draw(3) ? odd[draw(sizeof(odd))] : (char)draw(256);

    switch (draw(5)) {
    case 0: /* change a byte */
        if (len)
            text[at] = ch;
        return len;
    case 1: /* insert a byte */
        if (len == room)
            return len;
        memmove(text + at + 1, text + at, len - at);
        text[at] = ch;
        return len + 1;
    case 2: /* delete some bytes */
        n = n < len - at ? n : len - at;
        memmove(text + at, text + at + n, len - at - n);
        return len - n;
    case 3: /* repeat a part */
        n = n < len - at ? n : len - at;
        if (len + n > room)
            return len;
        memmove(text + len, text + at, n);
        return len + n;
    default: /* cut the rest */
        return at;
    }
}

static size_t not_quite(uint8_t *to, size_t which)
{
    char *text = (char *)to;
    size_t len = strlen(seeds[which]);

    memcpy(text, seeds[which], len);
    for (uint32_t k = 1 + draw(12); k; k--)
        len = mutate(text, len, 256);
    return len;
}

int main(int argc, char **argv)
{
    const struct fuzzer f = {sizeof(seeds) / sizeof(*seeds), 50000, not_quite,
                             "times not quite ", seeds};

    return run_fuzzer(&f, argc, argv);
}

#endif
