/*
 * holdfast lab: executes a separate program, holdfast-lab, because the lab
 * needs the client libraries of Redis and MariaDB, while the command needs only
 * libc. The path of holdfast-lab is relative to the directory of the command:
 * first the installed path is tried, then the path in the build directory.
 */
#include "shared/exit_code.h"
#include "shared/message.h"
#include "shared/verb.h"
#include "verbs.h"

#include <errno.h>
#include <holdfast.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const places[] = {HF_LAB_INSTALLED, "../lab/holdfast-lab"};

static int lab_main(int argc, char **argv)
{
    char self[1024], path[2048];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *slash;

    (void)argc;
    if (len <= 0) {
        cli_say(&cli_lab, "/proc/self/exe: %s", strerror(errno));
        return CLI_OSERR;
    }
    self[len] = '\0';
    slash = strrchr(self, '/');
    fflush(stdout);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self), self,
                 places[i]);
        execv(path, argv);
        if (errno != ENOENT && errno != ENOTDIR) {
            cli_say(&cli_lab, "%s: %s", path, strerror(errno));
            return CLI_CANNOT_RUN;
        }
    }
    cli_say(&cli_lab,
            "holdfast-lab is not installed: holdfast was built without "
            "libhiredis-dev or libmariadb-dev");
    return CLI_NOT_FOUND;
}

static const struct cli_flag no_flags[] = {CLI_FLAG_END};

const struct cli_verb cli_lab = {
    .name = "lab",
    .summary = "reproduces failures of locks and shows their effect",
    .flags = no_flags,
    .is_program = true,
    .main = lab_main,
};
