/* The steps of a model in words. See redlock.h. */
#include "redlock.h"

#include <stdio.h>

static const char *servers_of(unsigned set)
{
    static const char *const names[] = {
        "none", "1", "2", "1 and 2", "3", "1 and 3", "2 and 3", "1, 2 and 3"};

    return names[set & 7];
}

static void tell_client(const struct step *t)
{
    const struct client *c = &t->after.client[t->client];
    enum action action = t->lead ? t->lead : t->action;
    char name = (char)('A' + t->client);
    const char *set = servers_of(t->majority);

    switch (action) {
    case START:
        printf("%c sends a grant to every server; its deadline is %u", name,
               c->deadline);
        break;
    case GIVE_UP:
        printf("%c gives up and sends an undo to every server", name);
        break;
    case USE:
        printf("%c has the grants of %s and uses token %u", name, set,
               c->token);
        break;
    case SECOND_ROUND:
        printf("%c has the grants of %s and sends a raise to %u", name, set,
               c->token);
        break;
    case USE_RAISED:
        printf("%c has the raise of %s confirmed and uses token %u", name, set,
               c->token);
        break;
    case START_RENEWAL:
        printf("%c sends a renewal to every server", name);
        break;
    case RENEWED:
        printf("%c is renewed by %s; its deadline is %u", name, set,
               c->deadline);
        break;
    default:
        printf("%c sends a %s to every server", name,
               t->after.server[0].mail[t->client] & UNDO ? "undo" : "release");
        break;
    }
}

static void tell_server(const struct state *before, const struct step *t)
{
    static const char *const names[] = {"grant", "raise", "renewal", "release",
                                        "undo"};
    const struct server *was = &before->server[t->server];
    const struct server *v = &t->after.server[t->server];

    printf("server %u runs the %s of %c", t->server + 1u,
           names[t->action - RUN_GRANT], 'A' + t->client);
    if (t->action == RUN_GRANT && v->mail[t->client] & GRANTED)
        printf(" and answers base %u", v->answer[t->client]);
    else if (t->action == RUN_GRANT && was->owner)
        printf(" and refuses it");
    if (v->owner)
        printf(": key of %c until %u", 'A' + v->owner - 1, v->expiry);
    else
        printf(": no key");
    if (v->owner)
        printf(", base %u", v->base);
    printf(", top %u -> %u", was->top, v->top);
}

void model_tell(const struct state *before, const struct step *t)
{
    printf("#   %u  ", before->now);
    if (t->action == TICK)
        printf("time advances to %u", t->after.now);
    else if (t->action == EXPIRE_EARLY)
        printf("the clock of server %u jumps: its key expires", t->server + 1u);
    else if (t->action == RESTART)
        printf("server %u restarts empty; it stays out until %u",
               t->server + 1u, t->after.server[t->server].out);
    else if (t->lead || t->action < RUN_GRANT)
        tell_client(t);
    if (t->lead)
        printf("; ");
    if (t->action >= RUN_GRANT)
        tell_server(before, t);
    putchar('\n');
}
