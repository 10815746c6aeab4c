/* All servers of a client: how many can vote, and why the others cannot
 * vote. */
#include "servers.h"

#include "hold.h"
#include "redlock.h"
#include "server.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

unsigned hf__rl_usable(const struct redlock *rl, hf__time now)
{
    unsigned these = 0;

    for (size_t i = 0; i < rl->len; i++)
        these |= (unsigned)hf__rl_is_usable(&rl->server[i], now) << i;
    return these;
}

bool hf__rl_has_majority(const struct redlock *rl, hf__time now)
{
    return (size_t)__builtin_popcount(hf__rl_usable(rl, now)) >= rl->majority;
}

void hf__rl_flush(struct redlock *rl)
{
    for (size_t i = 0; i < rl->len; i++)
        if (rl->server[i].pipe.link.state == NET_UP)
            hf__net_flush(&rl->server[i].pipe.link.stream);
}

size_t hf__rl_connected(const struct redlock *rl)
{
    size_t n = 0;

    for (size_t i = 0; i < rl->len; i++)
        n += rl->server[i].pipe.link.state == NET_UP;
    return n;
}

__attribute__((format(printf, 4, 5))) static void
servers_append(char *to, size_t size, size_t *len, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(to + *len, size - *len, format, args);
    va_end(args);
    *len += n > 0 ? (size_t)n : 0;
    *len = *len < size ? *len : size - 1;
}

static bool servers_find_fault(const struct rl_server *s,
                               const struct rl_poll *p, hf__time now, char *why,
                               size_t size)
{
    enum rl_vote vote = p ? p->vote[hf__rl_index(s)] : RL_FAILED;
    bool is_usable = hf__rl_is_usable(s, now);

    if (p ? vote == RL_YES || vote == RL_NO || vote == RL_SENT : is_usable)
        return false;
    if (vote == RL_UNSENT && is_usable)
        return false;
    if (vote == RL_ERROR)
        snprintf(why, size, "%s", s->error);
    else if (vote == RL_SLOW)
        snprintf(why, size, "no answer within %s",
                 hf__span(s->rl->server_timeout_ms).text);
    else
        hf__rl_trouble(s, now, why, size);
    return why[0];
}

void hf__rl_describe(const struct redlock *rl, const struct rl_poll *p,
                     hf__time now, char *to, size_t size)
{
    char why[HF__HOSTS][100];
    bool reported[HF__HOSTS] = {false};
    size_t len = 0;

    to[0] = '\0';
    for (size_t i = 0; i < rl->len; i++)
        reported[i] =
            !servers_find_fault(&rl->server[i], p, now, why[i], sizeof(why[i]));
    for (size_t i = 0; i < rl->len; i++) {
        const char *between = len ? "; " : "";

        if (reported[i])
            continue;
        for (size_t j = i; j < rl->len; j++) {
            if (reported[j] || strcmp(why[i], why[j]) != 0)
                continue;
            servers_append(to, size, &len, "%s%s", between,
                           rl->server[j].pipe.link.where);
            between = ", ";
            reported[j] = true;
        }
        servers_append(to, size, &len, ": %s", why[i]);
    }
}
