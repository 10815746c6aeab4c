/* Reads the user, the password, the database and the files for TLS from a
 * client's URL, and passes them to pipes. */
#include "login.h"

#include "net/tls.h"
#include "pipe.h"

#include <stdlib.h>
#include <string.h>

#define BACKOFF_MAX_MS 1000

static char *login_copy(const struct hf__core *core, hf_client *client,
                        const char *text)
{
    size_t size = strlen(text) + 1;
    char *p = core->alloc(client, size);

    return p ? memcpy(p, text, size) : NULL;
}

static int login_parse_db(const struct hf__core *core, hf_client *client,
                          struct hf__url *url, uint32_t *db)
{
    const char *option = core->option(url, "db");
    bool in_path = url->hosts_len && url->path[0] && url->path[1];
    const char *text = in_path ? url->path + 1 : option ? option : "0";
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (in_path && option)
        return core->why(client, HF_EINVAL,
                         "the database is given twice, in the path and by "
                         "db=; it must be given once");
    if (*text < '0' || *text > '9' || *end || n > 65535)
        return core->why(client, HF_EINVAL,
                         "database \"%.40s\": must be a number from 0 to 65535",
                         text);
    *db = (uint32_t)n;
    return 0;
}

static int login_parse_tls(const struct hf__core *core, hf_client *client,
                           struct hf__url *url, const char *only,
                           struct net_tls **to)
{
    struct net_tls_files files = {.cacert = core->option(url, "cacert"),
                                  .cert = core->option(url, "cert"),
                                  .key = core->option(url, "key")};

    if (!only)
        return hf__tls_new(core, client, &files, to);
    return !files.cacert && !files.cert && !files.key
               ? 0
               : core->why(client, HF_EINVAL,
                           "cacert, cert and key are for TLS: use %s", only);
}

int hf__rd_login(const struct hf__core *core, hf_client *client,
                 const struct hf__config *config, const char *no_tls,
                 struct rd_login *login)
{
    int rc = login_parse_db(core, client, config->url, &login->db);

    if (!rc)
        rc = login_parse_tls(core, client, config->url, no_tls, &login->tls);
    if (rc)
        return rc;
    login->user = login_copy(core, client, config->url->user);
    login->password = login_copy(core, client, config->password);
    return login->user && login->password ? 0 : HF_ENOMEM;
}

void hf__rd_login_fini(const struct hf__core *core, hf_client *client,
                       struct rd_login *login)
{
    if (login->password)
        explicit_bzero(login->password, strlen(login->password));
    core->free(client, login->password);
    core->free(client, login->user);
    hf__tls_free(login->tls);
}

/* Sets the login, the address and the timeouts of a pipe. Establishing a
 * connection with TLS may take at most 7/8 of the time limit of hf_open(). A
 * server that does not speak TLS may just wait for more bytes; the link must
 * time out before hf_open() does, so that the error message can name TLS.
 * Pauses between connection attempts are short compared with op_timeout, so
 * that a request does not time out although the server is available again. */
void hf__rd_login_aim(struct rd_pipe *p, struct net_endpoint *peer,
                      const struct rd_login *login, uint32_t *tags,
                      uint32_t connect_ms, uint32_t op_ms)
{
    struct net_link *l = &p->link;

    p->user = login->user;
    p->password = login->password;
    p->db = login->db;
    l->peer = peer;
    l->tags = tags;
    l->stream.tls = login->tls;
    l->doubt = login->tls ? "; is it Redis, with TLS?" : login->doubt;
    l->connect_ms = login->tls ? connect_ms - connect_ms / 8 : connect_ms;
    l->silence_ms = op_ms;
    l->pause_ms = op_ms / 8 < BACKOFF_MAX_MS ? op_ms / 8 : BACKOFF_MAX_MS;
}
