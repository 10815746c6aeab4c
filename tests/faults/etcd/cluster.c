/* etcd_cluster [GROUP [PATTERN]] */
#include "cluster.h"

struct etcd_cluster etcd_three;
struct etcd_server *const etcd_locked = etcd_three.server;

int group_three(void **state)
{
    (void)state;
    return etcd_cluster_start(&etcd_three);
}

int group_locked(void **state)
{
    (void)state;
    etcd_locked->args[0] = "--auth-token-ttl=1";
    etcd_locked->args[1] = "--quota-backend-bytes=3000000";
    return etcd_server_start(etcd_locked) ||
           etcd_server_lock(etcd_locked, PASSWORD, "p/");
}

int group_end(void **state)
{
    (void)state;
    etcd_cluster_end(&etcd_three);
    etcd_three = (struct etcd_cluster){0};
    return 0;
}

/* One that answers. */
static struct etcd_server *asked(void)
{
    struct etcd_server *s = etcd_three.server;

    while (s < etcd_three.server + ETCD_CLUSTER - 1 &&
           (!s->pid || s->is_stopped))
        s++;
    return s;
}

static int begin(struct world *w)
{
    struct etcd_server *s = etcd_locked->password
                                ? etcd_locked
                                : etcd_cluster_follower(&etcd_three, 0);

    if (!s)
        return -1;
    w->port = s->port;
    if (s->password)
        snprintf(w->near_url, sizeof(w->near_url),
                 "etcd://worker:" PASSWORD "@127.0.0.1:%d/p", s->port);
    else
        snprintf(w->near_url, sizeof(w->near_url), "%s", etcd_three.url);
    return 0;
}

/* What a failed case has left behind must not fail the next. */
static int mend(struct world *w)
{
    (void)w;
    if (!etcd_locked->password && etcd_cluster_heal(&etcd_three))
        return -1;
    return etcd_server_ctl(asked(), "del '' --prefix", NULL, 0);
}

static long left(struct world *w)
{
    (void)w;
    return etcd_server_keys(asked(), false);
}

static void print_left(struct world *w)
{
    (void)w;
    etcd_server_keys(asked(), true);
}

int setup(void **state)
{
    static const struct world_server kind = {"etcd", begin, mend, left,
                                             print_left};

    return world_begin(state, &kind);
}

/* Of refusals. */
const struct any_faults any_faults = {
    .setup = setup, .begin = group_locked, .end = group_end};

int main(int argc, char **argv)
{
    static const struct world_group groups[] = {
        {"cluster", run_cluster_faults},
        {"auth", run_auth_faults},
        {"tls", run_tls_faults},
        {"refusals", run_any_refusals},
    };

    return world_main(argc, argv, groups, sizeof(groups) / sizeof(*groups));
}
