

#include "refusal.h"

#include "etcd.h"

#include <stdio.h>
#include <string.h>

bool hf__et_says(const struct grpc_call *c, const char *text)
{
    return strstr(c->text, text);
}

int hf__et_no_memory(struct etcd *e)
{
    return hf__link_why(&e->g.link, HF_ENOMEM, "out of memory");
}

int hf__et_odd(struct etcd *e)
{
    bool is_short = e->is_short;

    e->is_short = false;
    return is_short ? hf__et_no_memory(e)
                    : hf__link_why(&e->g.link, HF_EPROTO,
                                   "an answer we do not understand");
}

int hf__et_code_of(const struct grpc_call *c)
{
    switch (c->status) {
    case GRPC_UNAUTHENTICATED:
    case 7:
        return HF_EAUTH;
    case 3:
        return hf__et_says(c, "auth") || hf__et_says(c, "user name is empty")
                   ? HF_EAUTH
                   : HF_EBACKEND;
    case 12:
        return HF_EPROTO;
    }
    return HF_EBACKEND;
}

/* Builds the advice from the path of the URL, because the server names neither
 * the user nor the key. */
const char *hf__et_advice(const struct etcd *e, const struct grpc_call *c,
                          char text[ET_ADVICE])
{
    text[0] = '\0';
    if (c->status == 7 && e->root[0])
        snprintf(text, ET_ADVICE,
                 ": the user needs readwrite on all keys that begin with "
                 "\"%.60s\"",
                 e->root);
    else if (c->status == 7)
        snprintf(text, ET_ADVICE,
                 ": without a path the user needs readwrite on the keys of all "
                 "names, and on those that begin with \"" ET_OURS "\"");
    return text;
}

int hf__et_refusal(struct etcd *e, const struct grpc_call *c)
{
    int code = hf__et_code_of(c);
    char text[ET_ADVICE];

    return e->core->why(e->client, code, "%s: %s%s", e->g.link.where,
                        c->text[0] ? c->text : "refused",
                        hf__et_advice(e, c, text));
}

/* `sure` lists the statuses with which a request was certainly not carried out.
 * With any other status the request may have been carried out, at least if a
 * proxy has sent that status. */
bool hf__et_is_unsure(const struct grpc_call *c)
{
    static const uint32_t sure = 1u << 3 | 1u << 5 | 1u << 6 | 1u << 7 |
                                 1u << 8 | 1u << 9 | 1u << 11 | 1u << 12 |
                                 1u << 15 | 1u << 16;

    return c->status < 0 || c->status > 16 || !(sure >> c->status & 1);
}

int hf__et_leave_member(struct etcd *e, const struct grpc_call *c)
{
    static const uint32_t usual = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 14;

    return strstr(c->text, "no leader") || strstr(c->text, "server stopped") ||
                   c->status < 0 || c->status > 16 || !(usual >> c->status & 1)
               ? hf__link_why(&e->g.link, HF_EBACKEND, "%s", c->text)
               : 0;
}
