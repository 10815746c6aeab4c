#include "servers.h"

#include "conf.h"

#include <ftw.h>
#include <stdio.h>

static char dir[64], url[512];

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int make_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/holdfast-conf-XXXXXX");
    if (!mkdtemp(dir)) {
        perror("conformance: mkdtemp");
        return -1;
    }
    conf.dir = dir;
    return 0;
}

static int start_shm(void)
{
    snprintf(url, sizeof(url), "shm://%s/shm", dir);
    conf.url = url;
    conf.local = true;
    return 0;
}

int servers_start(const char *name)
{
    if (make_dir())
        return -1;
    if (!strcmp(name, "shm"))
        return start_shm();
    if (strchr(name, ':')) {
        conf.url = name;
        conf.local = !strncmp(name, "shm:", 4);
        return 0;
    }
    fprintf(stderr,
            "conformance: \"%s\" is neither a URL nor shm, redis or "
            "redis-string\n",
            name);
    return -1;
}

void servers_stop(void)
{
    if (conf.dir)
        nftw(dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
