/*
 * with_servers redis,mariadb COMMAND...: starts servers and runs COMMAND with
 * their URLs in LAB_REDIS, LAB_REDLOCK, LAB_ZK, LAB_ETCD and LAB_MARIADB. If
 * COMMAND runs a lab with such a URL, the lab treats the server like any that a
 * user names.
 */
#include "../../cli/shared/exit_code.h"
#include "../../lab/runner/die.h"
#include "../../lab/runner/lab_state.h"
#include "../../lab/servers/servers.h"
#include "../../lab/supervisor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *name, *variable;
    enum lab_engine engine;
} kinds[] = {{"redis", "LAB_REDIS", LAB_REDIS},
             {"zk", "LAB_ZK", LAB_ZOOKEEPER},
             {"etcd", "LAB_ETCD", LAB_ETCD},
             {"mariadb", "LAB_MARIADB", LAB_MARIADB}};

static char **arguments;

static void run(struct lab *lab)
{
    struct lab_server *servers[LAB_REDLOCK_SERVERS] = {NULL};
    struct lab_place redlock;
    pid_t pid;
    int status = 0;

    if (strstr(arguments[1], "redlock")) {
        lab_redlock_start(lab, servers, &redlock);
        setenv("LAB_REDLOCK", redlock.url, 1);
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strstr(arguments[1], kinds[i].name))
            setenv(kinds[i].variable,
                   lab_server_start(lab, kinds[i].engine, NULL)->place.url, 1);
    pid = fork();
    if (pid == 0) {
        execvp(arguments[2], arguments + 2);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
        lab->as_expected = false;
}

int main(int argc, char **argv)
{
    static struct lab lab;

    if (argc < 3)
        return CLI_USAGE;
    arguments = argv;
    return lab_supervise(&lab, run);
}
