/*
 * The owner of the connection of a `struct scene`, which the including file
 * defines. The owner sends a hello, and renews tokens.
 */
#ifndef TESTS_GRPC_OWNER_H
#define TESTS_GRPC_OWNER_H

static int owner_hello(struct grpc *g, hf__time at);
static int owner_renew(struct grpc *g, hf__time at);

static void owner_up(struct grpc *g, hf__time at)
{
    ((struct scene *)g->owner)->ups++;
}

static void owner_down(struct grpc *g, int code, bool was_up, hf__time at)
{
    struct scene *t = g->owner;

    t->downs++;
    t->down_code = code;
}

static bool owner_is_stale(struct grpc *g, const struct grpc_call *c)
{
    return c->status == GRPC_UNAUTHENTICATED;
}

static const struct grpc_owner owner = {.hello = owner_hello,
                                        .up = owner_up,
                                        .down = owner_down,
                                        .is_stale = owner_is_stale,
                                        .renew = owner_renew};

static void own(struct scene *t, uint32_t silence_ms, uint32_t ping_ms)
{
    static const struct grpc_header always = {"hasleader", "true"};

    t->peer.core = &core;
    assert_int_equal(hf__grpc_init(&t->g, &core, NULL, &owner, t), 0);
    t->g.link.peer = &t->peer;
    t->g.link.tags = &t->tags;
    t->g.link.lost = "test: lost it";
    t->g.link.doubt = "; is it etcd?";
    t->g.link.connect_ms = t->g.link.silence_ms = silence_ms;
    t->g.link.pause_ms = 100;
    t->g.headers = &always;
    t->g.headers_len = 1;
    t->g.token_name = "token";
    t->g.ping_ms = ping_ms;
}

#endif
