#include "finding.h"

#include "about.h"

#include <stdlib.h>
#include <string.h>

#define CLOCK_MS 1000 /* tolerated difference between two clocks */

#define FIND(level, subject, ...)                                              \
    core->find(client, q, HF_LEVEL_##level, subject, __VA_ARGS__)

static unsigned finding_count_hosts(const char *hosts)
{
    unsigned n = 1;

    while ((hosts = strchr(hosts, ','))) {
        hosts++;
        n++;
    }
    return n;
}

/* Returns whether one of the hosts is given by name. A name may resolve to
 * several servers. */
static bool finding_has_names(const char *hosts)
{
    return strspn(hosts, "0123456789.:,") != strlen(hosts) &&
           !strchr(hosts, '[');
}

static void find_hosts(const struct hf__core *core, hf_client *client,
                       struct hf__query *q, const struct hf__quorum *of)
{
    unsigned n = finding_count_hosts(of->hosts);

    if (n >= of->voters)
        FIND(OK, "hosts", "the URL names %u of %u %ss", n, of->voters, of->one);
    else if (finding_has_names(of->hosts))
        FIND(OK, "hosts",
             "the URL names %u host%s, and there are %u %ss: name all, unless "
             "one name resolves to several",
             n, n == 1 ? "" : "s", of->voters, of->one);
    else
        FIND(WARNING, "hosts",
             "the URL names %u of %u %ss: when %s down, this client has no "
             "locks. Name all of them in the URL",
             n, of->voters, of->one, n == 1 ? "it is" : "these are");
}

void hf__find_quorum(const struct hf__core *core, hf_client *client,
                     struct hf__query *q, const struct hf__quorum *of)
{
    if (of->voters < 2)
        FIND(WARNING, of->subject,
             "only one %s: no locks while it is down. Use three or five",
             of->one);
    else if (of->voters == 2)
        FIND(WARNING, of->subject,
             "2 %ss: no locks unless both are up. Use three or five", of->one);
    else if (of->voters % 2 == 0)
        FIND(WARNING, of->subject,
             "%u %ss, of which %u may be down, as with %u: use an odd number",
             of->voters, of->one, (of->voters - 1) / 2, of->voters - 1);
    else
        FIND(OK, of->subject, "%u %ss, of which %u may be down", of->voters,
             of->one, (of->voters - 1) / 2);
    if (of->voters > 1)
        find_hosts(core, client, q, of);
}

void hf__find_clock(const struct hf__core *core, hf_client *client,
                    struct hf__query *q, int64_t server_us, hf__time trip)
{
    long long ms = trip / HF__MS, apart;

    apart =
        llabs((long long)hf__wall_ms() - ms / 2 - (long long)server_us / 1000);
    if (apart > CLOCK_MS + ms)
        FIND(WARNING, "clock",
             "the server's clock and ours are %lld ms apart. Leases depend "
             "only on the server's clock, but it must not jump: run NTP on "
             "both machines",
             apart);
    else
        FIND(OK, "clock", "the server's clock and ours are %lld ms apart",
             apart);
}
