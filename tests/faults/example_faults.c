/* example_faults [GROUP [PATTERN]]: what has to go well with any server. */
#include "../lib/example_server.h"
#include "any_faults.h"

static struct example_server server;

static int group_begin(void **state)
{
    (void)state;
    return example_server_start(&server);
}

static int group_end(void **state)
{
    (void)state;
    example_server_end(&server);
    return 0;
}

static int begin(struct world *w)
{
    w->example = &server;
    w->port = server.port;
    snprintf(w->near_url, sizeof(w->near_url), "%s", server.url);
    return 0;
}

/* What a failed case has left behind must not fail the next. */
static int mend(struct world *w)
{
    example_server_continue(w->example);
    return example_server_break(w->example);
}

static long left(struct world *w)
{
    return example_server_holds(w->example) + example_server_places(w->example);
}

static void print_left(struct world *w)
{
    fprintf(stderr, "left behind: %ld\n", left(w));
}

static int setup(void **state)
{
    static const struct world_server kind = {"example", begin, mend, left,
                                             print_left};

    return world_begin(state, &kind);
}

static long holds(struct world *w)
{
    return example_server_holds(w->example);
}

static bool is_waited_for(struct world *w)
{
    return example_server_places(w->example) == 1;
}

static int take_away(struct world *w)
{
    return example_server_break(w->example);
}

static int stop(struct world *w)
{
    return example_server_stop(w->example);
}

static int go_on(struct world *w)
{
    return example_server_continue(w->example);
}

const struct any_faults any_faults = {
    .setup = setup,
    .begin = group_begin,
    .end = group_end,
    .op_ms = 400,
    .ttl_ms = 5500,
    .tick_ms = 500,
    .rounds = 500,
    .fair_only = true,
    .holds = holds,
    .is_waited_for = is_waited_for,
    .take_away = take_away,
    .stop = stop,
    .go_on = go_on,
};

int main(int argc, char **argv)
{
    static const struct world_group groups[] = {
        {"any", run_any_faults},
        {"loss", run_any_loss},
        {"names", run_any_names},
    };

    return world_main(argc, argv, groups, sizeof(groups) / sizeof(*groups));
}
