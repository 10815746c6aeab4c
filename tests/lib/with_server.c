/* Runs a command with its own server: with_zk COMMAND..., and with_etcd,
 * with_mysql, with_redis and with_redlock. The server's URL is in ZK_URL,
 * ETCD_URL, MYSQL_URL, REDIS_URL or REDLOCK_URL. */
#if defined(WITH_REDLOCK)
#include "redlock_servers.h"
#define URL "REDLOCK_URL"
#define OF_SERVER(what) redlock_servers##what
#elif defined(WITH_REDIS)
#include "redis_server.h"
#define URL "REDIS_URL"
#define OF_SERVER(what) redis_server##what
#elif defined(WITH_ETCD)
#include "etcd_server.h"
#define URL "ETCD_URL"
#define OF_SERVER(what) etcd_server##what
#elif defined(WITH_MYSQL)
#include "mysql_server.h"
#define URL "MYSQL_URL"
#define OF_SERVER(what) my_server##what
#else
#include "zk_server.h"
#define URL "ZK_URL"
#define OF_SERVER(what) zk_server##what
#endif

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell_url(const struct OF_SERVER() * server)
{
#ifdef WITH_REDLOCK
    char url[256];

    redlock_servers_url(server, url, sizeof(url), "server_timeout=2s");
    setenv(URL, url, 1);
#else
    setenv(URL, server->url, 1);
#endif
}

static int run(char **argv)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], argv);
        perror(argv[0]);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("waitpid");
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct OF_SERVER() server = {0};
    int status = 1;

    if (argc > 1 && OF_SERVER(_start)(&server) == 0) {
        tell_url(&server);
        status = run(argv + 1);
    }
    OF_SERVER(_end)(&server);
    return status;
}
