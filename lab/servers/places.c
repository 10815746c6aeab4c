#include "places.h"

#include "../../cli/shared/exit_code.h"
#include "../../cli/shared/message.h"
#include "../runner/lab.h"
#include "../runner/lab_state.h"
#include "../runner/progress.h"
#include "client.h"
#include "servers.h"
#include "tidy.h"

#include <ctype.h>
#include <holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    enum lab_engine engine;
} engines[] = {
    {"shm", LAB_SHM},          {"file", LAB_FILE},
    {"redis", LAB_REDIS},      {"rediss", LAB_REDIS},
    {"redis+unix", LAB_REDIS}, {"redlock", LAB_REDLOCK},
    {"zk", LAB_ZOOKEEPER},     {"zookeeper", LAB_ZOOKEEPER},
    {"etcd", LAB_ETCD},        {"etcds", LAB_ETCD},
    {"mariadb", LAB_MARIADB},  {"mysql", LAB_MARIADB},
};

static const char *const names[LAB_ENGINES] = {
    "shm", "file", "redis", "redlock", "zk", "etcd", "mariadb"};

/* Returns whether an element of a list begins here. A comma is not enough to
 * separate elements, because a URL may contain commas between its hosts. */
static bool places_begins_element(const char *text)
{
    size_t len = 0;

    while (isalpha((unsigned char)text[len]) || text[len] == '+')
        len++;
    if (len == 0)
        return false;
    if (text[len] == ':')
        return strncmp(text + len, "://", 3) == 0 ||
               strncmp(text, "shm:", 4) == 0;
    if (text[len] != ',' && text[len] != '\0')
        return false;
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strncmp(engines[i].name, text, len) == 0 && !engines[i].name[len])
            return true;
    return false;
}

/* Returns the length of the first element of a list. */
static size_t places_element_len(const char *list)
{
    size_t len = strcspn(list, ",");

    if (!memmem(list, len, "://", 3))
        return len;
    while (list[len] && !places_begins_element(list + len + 1))
        len += 1 + strcspn(list + len + 1, ",");
    return len;
}

static int places_engine_of(const char *element, size_t len)
{
    size_t scheme = 0;

    while (scheme < len && element[scheme] != ':')
        scheme++;
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++)
        if (strlen(engines[i].name) == scheme &&
            strncasecmp(engines[i].name, element, scheme) == 0)
            return (int)engines[i].engine;
    return -1;
}

static int places_take_wish(struct lab *lab, struct lab_wish *wish,
                            const char *text, size_t len, int engine)
{
    struct lab_place *place = &wish->place;
    bool has_url = memchr(text, ':', len) != NULL;

    *wish = (struct lab_wish){
        .place = {.engine = (enum lab_engine)engine, .name = names[engine]}};
    if (engine == LAB_SHM || engine == LAB_FILE) {
        wish->ready = engine == LAB_FILE;
    } else if (!has_url && !lab->servers) {
        return cli_misuse(&lab_verb,
                          "%s: which server? Give its URL, or --servers, which "
                          "starts a temporary one",
                          names[engine]);
    }
    if (has_url) {
        if (len >= sizeof place->url)
            return cli_misuse(&lab_verb, "the URL of %s is too long",
                              names[engine]);
        snprintf(place->url, sizeof place->url, "%.*s", (int)len, text);
        wish->ready = true;
        place->given = engine != LAB_SHM && engine != LAB_FILE;
    }
    return CLI_OK;
}

static int places_take_backend(struct lab *lab, const char *text, size_t len)
{
    int engine = places_engine_of(text, len);

    if (engine == LAB_FILE)
        return cli_misuse(&lab_verb,
                          "%s is a store, not a backend: --stores %s",
                          names[engine], names[engine]);
    if (engine < 0)
        return cli_misuse(&lab_verb,
                          "no backend is called `%.*s'; there are shm, "
                          "redis, redlock, zk, etcd and mariadb, or their URLs",
                          (int)len, text);
    if (lab->backends_len == PLACES_MAX)
        return cli_misuse(&lab_verb, "more than %d backends", PLACES_MAX);
    return places_take_wish(lab, &lab->backends[lab->backends_len++], text, len,
                            engine);
}

static int places_take_store(struct lab *lab, const char *text, size_t len)
{
    int engine = places_engine_of(text, len);

    if (engine == LAB_SHM || engine == LAB_REDLOCK || engine == LAB_ZOOKEEPER ||
        engine == LAB_ETCD)
        return cli_misuse(&lab_verb,
                          "%s is a backend, not a store: --backends %s",
                          names[engine], names[engine]);
    if (engine < 0)
        return cli_misuse(&lab_verb,
                          "no store is called `%.*s'; there are file, redis "
                          "and mariadb, or URLs of the last two",
                          (int)len, text);
    if (lab->stores[engine].place.name)
        return cli_misuse(&lab_verb,
                          "--stores has %s twice; give one of each kind",
                          names[engine]);
    if (engine == LAB_FILE && len != strlen(names[engine]))
        return cli_misuse(&lab_verb,
                          "file takes no path: the lab creates the file");
    return places_take_wish(lab, &lab->stores[engine], text, len, engine);
}

static int places_take_list(struct lab *lab, const char *list,
                            int (*take)(struct lab *, const char *, size_t))
{
    int status = CLI_OK;

    while (status == CLI_OK) {
        size_t len = places_element_len(list);

        status = take(lab, list, len);
        if (!list[len])
            break;
        list += len + 1;
    }
    return status;
}

int places_take_backends(struct lab *lab, const char *list)
{
    return places_take_list(lab, list, places_take_backend);
}

int places_take_stores(struct lab *lab, const char *list)
{
    return places_take_list(lab, list, places_take_store);
}

/* If a backend is a Redis with a URL and no store is a Redis, uses that Redis
 * as the store, too. Locks that are taken by hand are then on the same server
 * as the locks of holdfast. */
static void places_share_redis(struct lab *lab)
{
    for (size_t i = 0; i < lab->backends_len; i++) {
        const struct lab_place *place = &lab->backends[i].place;

        if (place->engine == LAB_REDIS && place->given &&
            !lab->stores[LAB_REDIS].place.name)
            lab->stores[LAB_REDIS] = lab->backends[i];
    }
}

int places_complete(struct lab *lab, bool backends_given, bool stores_given)
{
    const char *url = getenv("HOLDFAST_URL");
    int status = CLI_OK;

    if (!backends_given)
        status = places_take_backends(lab, lab->servers
                                               ? "shm,redis,redlock,zk,etcd,"
                                                 "mariadb"
                                           : url && *url ? url
                                                         : "shm");
    for (size_t i = 0; !backends_given && i < lab->backends_len; i++)
        lab->backends[i].by_default = lab->servers;
    if (status == CLI_OK && !stores_given)
        status = places_take_stores(lab, lab->servers ? "file,redis,mariadb"
                                                      : "file");
    if (status == CLI_OK && !stores_given && !lab->servers)
        places_share_redis(lab);
    return status;
}

bool places_lack(const struct lab *lab, const struct lab_scenario *scenario,
                 char out[LAB_TEXT_MAX])
{
    if (scenario->needs & LAB_NEEDS_SERVERS && !lab->servers)
        snprintf(out, LAB_TEXT_MAX,
                 "%s breaks servers, so it needs its own: --servers",
                 scenario->name);
    else if (scenario->needs & LAB_NEEDS_MARIADB &&
             !lab->stores[LAB_MARIADB].place.name)
        snprintf(out, LAB_TEXT_MAX,
                 "%s needs a MariaDB: --servers, or --stores "
                 "mariadb://user@host/database",
                 scenario->name);
    else
        return false;
    return true;
}

static struct lab_place places_start_redlock(struct lab *lab)
{
    static struct lab_server *servers[LAB_REDLOCK_SERVERS];
    struct lab_place place;

    lab_redlock_start(lab, servers, &place);
    return place;
}

/* Makes the place ready for use and returns it. If the backend and the store
 * are of one kind, and neither was given by a URL, both are the same temporary
 * server. */
static const struct lab_place *places_ready(struct lab *lab,
                                            struct lab_wish *wish)
{
    static struct lab_server *started[LAB_ENGINES];
    enum lab_engine engine = wish->place.engine;

    if (!wish->ready && engine == LAB_SHM) {
        /* Uses a directory of this run, so that nothing remains after it. */
        snprintf(wish->place.url, sizeof wish->place.url, "shm://%s/locks",
                 lab_directory(lab));
        wish->ready = true;
    } else if (!wish->ready && engine == LAB_REDLOCK) {
        wish->place = places_start_redlock(lab);
        wish->ready = true;
    } else if (!wish->ready) {
        if (!started[engine]) {
            lab_progress(lab, "starting %s", wish->place.name);
            started[engine] = lab_server_start(lab, engine, NULL);
        }
        wish->place = started[engine]->place;
        wish->place.name = names[engine];
        wish->ready = true;
    } else if (wish->place.given) {
        lab_place_tidy(lab, &wish->place);
    }
    return &wish->place;
}

/* Returns whether a temporary server of that kind must be started. */
static bool places_is_needed(const struct lab *lab, enum lab_engine engine)
{
    const struct lab_wish *store = &lab->stores[engine];

    for (size_t i = 0; i < lab->backends_len; i++)
        if (lab->backends[i].place.engine == engine && !lab->backends[i].ready)
            return true;
    return store->place.name && !store->ready;
}

void places_check(struct lab *lab)
{
    static const enum lab_engine kinds[] = {
        LAB_REDIS, LAB_REDLOCK, LAB_ZOOKEEPER, LAB_ETCD, LAB_MARIADB};
    enum lab_engine needed[sizeof kinds / sizeof *kinds];
    size_t n = 0;

    for (size_t i = 0; i < lab->backends_len; i++)
        if (lab->backends[i].place.given)
            hf_close(lab_open(places_ready(lab, &lab->backends[i]), 0));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (lab->stores[kinds[i]].place.given)
            places_ready(lab, &lab->stores[kinds[i]]);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (places_is_needed(lab, kinds[i]))
            needed[n++] = kinds[i];
    if (lab->all && lab->servers)
        lab_servers_check(needed, n);
}

bool lab_uses(const struct lab *lab, enum lab_engine engine)
{
    for (size_t i = 0; i < lab->backends_len; i++)
        if (lab->backends[i].place.engine == engine)
            return true;
    return false;
}

bool places_are_bare(const struct lab *lab)
{
    for (size_t i = 0; i < lab->backends_len; i++)
        if (lab->backends[i].place.engine != LAB_SHM)
            return false;
    return !lab->stores[LAB_REDIS].place.name &&
           !lab->stores[LAB_MARIADB].place.name;
}

static bool places_has_rows(const struct lab *lab, const struct lab_wish *wish)
{
    enum lab_engine engine = wish->place.engine;
    unsigned needs = lab->scenario->needs;

    return !wish->by_default ||
           ((engine != LAB_REDLOCK || needs & LAB_HAS_REDLOCK) &&
            (engine != LAB_MARIADB || needs & LAB_HAS_MARIADB));
}

const struct lab_place *lab_backend(struct lab *lab, size_t i)
{
    for (size_t at = 0; at < lab->backends_len; at++)
        if (places_has_rows(lab, &lab->backends[at]) && i-- == 0)
            return places_ready(lab, &lab->backends[at]);
    return NULL;
}

const struct lab_place *lab_store(struct lab *lab, enum lab_engine engine)
{
    struct lab_wish *wish = &lab->stores[engine];

    return wish->place.name ? places_ready(lab, wish) : NULL;
}
