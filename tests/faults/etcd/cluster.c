/* etcd_cluster [GROUP [PATTERN]] */
#include "cluster.h"

struct etcd_cluster etcd_three;
struct etcd_server *const etcd_locked = etcd_three.server;

int cluster_start_three(void)
{
    return etcd_cluster_start(&etcd_three);
}

static int start_locked(void)
{
    etcd_locked->args[0] = "--auth-token-ttl=1";
    etcd_locked->args[1] = "--quota-backend-bytes=3000000";
    return etcd_server_start(etcd_locked) ||
           etcd_server_lock(etcd_locked, PASSWORD, "p/");
}

static void end(void)
{
    etcd_cluster_end(&etcd_three);
    etcd_three = (struct etcd_cluster){0};
}

static bool is_cluster(void)
{
    return etcd_three.members[0];
}

/* Returns a member that answers. */
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
    struct etcd_server *s =
        is_cluster() ? etcd_cluster_follower(&etcd_three, 0) : etcd_locked;

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

static int mend(struct world *w)
{
    if (is_cluster() && etcd_cluster_heal(&etcd_three))
        return -1;
    return etcd_server_ctl(asked(), "del '' --prefix", NULL, 0);
}

static long left(struct world *w)
{
    return etcd_server_keys(asked(), false);
}

static void print_left(struct world *w)
{
    etcd_server_keys(asked(), true);
}

static const struct world_server etcd = {"etcd", start_locked, end, begin, mend,
                                         left,   print_left,   NULL};

const struct any_faults any_faults = {0};

int main(int argc, char **argv)
{
    return world_main(argc, argv, &etcd);
}
