/* with_zk COMMAND...: runs it beside a ZooKeeper server of its own, whose URL
 * is in ZK_URL. */
#include "zk_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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
        perror("with_zk");
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    struct zk_server server = {0};
    int status = 1;

    if (argc > 1 && zk_server_start(&server) == 0) {
        setenv("ZK_URL", server.url, 1);
        status = run(argv + 1);
    }
    zk_server_end(&server);
    return status;
}
