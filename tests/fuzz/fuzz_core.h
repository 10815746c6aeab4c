/* A fake core for the fuzzers of backends: it counts the requests that the
 * backend reports, and checks what the backend passes to the core. */
#ifndef FUZZ_CORE_H
#define FUZZ_CORE_H

#include "../lib/bare_core.h"
#include "fuzz_main.h"

static int reported;                        /* requests that were reported */
static void (*when_done)(struct hf__req *); /* called for each reported request,
                                               or NULL */
static hf_info info __attribute__((unused));
static hf_names names __attribute__((unused));
static hf_party parties[4096];
static size_t parties_len;

static void fake_done(hf_client *c, struct hf__req *req)
{
    (void)c;
    must(req->flying, "a request is reported twice");
    req->flying = false;
    reported++;
    if (when_done)
        when_done(req);
}

static void fake_bell(hf_client *c, struct hf__remote *remote)
{
    (void)c;
    must(remote->impl != NULL, "a bell of a name that is gone");
}

/* A real core would pass the request to the backend again later, which is not
 * tested here. */
static void fake_unsent(hf_client *c, struct hf__req *req)
{
    fake_done(c, req);
}

static void fake_go_on(hf_client *c)
{
    (void)c;
}

static void fake_refuse(hf_client *c, int code)
{
    (void)c, (void)code;
}

static void fake_session(hf_client *c, int event, const char *why)
{
    (void)c, (void)event, (void)why;
}

static void fake_trouble(hf_client *c, const char *text)
{
    (void)c, (void)text;
}

static void fake_lost(hf_client *c, struct hf__remote *remote, uint64_t hold_id,
                      const char *session)
{
    (void)c, (void)hold_id, (void)session;
    must(remote->impl != NULL, "a hold of a name that is gone is lost");
}

static void fake_changed(hf_client *c, struct hf__listener *l, const char *name,
                         size_t len)
{
    (void)c, (void)name;
    must(l->name != NULL && len < 1u << 30, "no listener");
}

static void fake_find(hf_client *c, struct hf__query *q, enum hf_level level,
                      const char *subject, const char *fmt, ...)
{
    va_list ap;

    (void)c, (void)q, (void)level, (void)subject;
    va_start(ap, fmt);
    write_text(fmt, ap);
    va_end(ap);
}

static hf_party *fake_party(hf_client *c, struct hf__query *q, bool holds)
{
    (void)c, (void)q, (void)holds;
    return &parties[parties_len++ % 4096];
}

static int fake_name(hf_client *c, struct hf__query *q, const char *text,
                     size_t len)
{
    (void)c, (void)q;
    must(text[len] != '\1' || len < 1u << 30, "a name without end");
    return 0;
}

static const struct hf__core fake = {
    .abi = HF__ABI,
    .now = now,
    .random = random_bytes,
    .alloc = take,
    .free = give,
    .log = note,
    .why = why,
    .lasts = why,
    .trouble = fake_trouble,
    .done = fake_done,
    .unsent = fake_unsent,
    .go_on = fake_go_on,
    .refuse = fake_refuse,
    .bell = fake_bell,
    .session = fake_session,
    .watch = watch,
    .due = due,
    .add_party = fake_party,
    .add_name = fake_name,
    .lost = fake_lost,
    .changed = fake_changed,
    .find = fake_find,
};

#endif
