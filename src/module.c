/*
 * Backends by the scheme of a URL. Shared memory is built in; every other is a
 * module, loaded from the library's own directory when it is first wanted and
 * never unloaded. HOLDFAST_MODULE_PATH is looked at first, except in
 * set-user-id programs.
 */
#include "core.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct scheme {
    const char *scheme, *module, *package;
};

static const struct scheme schemes[] = {
    {"redis", "redis", "libhiredis0.14"},
    {"redis+unix", "redis", "libhiredis0.14"},
    {"zk", "zookeeper", "libzookeeper-st2"},
};

#ifdef HF_STATIC_REDIS
extern hf__module_fn hf_module;
#endif
#ifdef HF_STATIC_ZOOKEEPER
extern hf__module_fn hf_module_zookeeper;
#endif

/* Where this library lies, so that a copy that was moved finds its modules. */
static int own_directory(char *dir, size_t size)
{
    Dl_info info;
    char path[PATH_MAX], *slash;

    if (!dladdr((const void *)hf_version, &info) || !info.dli_fname ||
        !realpath(info.dli_fname, path))
        return -1;
    slash = strrchr(path, '/');
    if (!slash)
        return -1;
    *slash = '\0';
    return snprintf(dir, size, "%s", path) < (int)size ? 0 : -1;
}

static void *load(const char *dir, const char *below, const char *module)
{
    char path[PATH_MAX + 64];

    if (snprintf(path, sizeof(path), "%s/%s%s.so", dir, below, module) >=
        (int)sizeof(path))
        return NULL;
    if (access(path, R_OK))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static void *load_from_path(const char *module)
{
    const char *env = secure_getenv("HOLDFAST_MODULE_PATH");
    char dirs[PATH_MAX], *rest = dirs, *dir;
    void *handle = NULL;

    if (!env || snprintf(dirs, sizeof(dirs), "%s", env) >= (int)sizeof(dirs))
        return NULL;
    while (!handle && (dir = strsep(&rest, ":")))
        if (*dir)
            handle = load(dir, "", module);
    return handle;
}

static void *find_module(const char *module)
{
    char dir[PATH_MAX], below[64];
    void *handle;

    dlerror();
    handle = load_from_path(module);
    if (!handle && !own_directory(dir, sizeof(dir))) {
        handle = load(dir, "holdfast/", module);
        /* In a build directory. */
        snprintf(below, sizeof(below), "backends/%s/", module);
        if (!handle)
            handle = load(dir, below, module);
    }
    if (!handle)
        handle = load(HF_MODULE_DIR, "", module);
    return handle;
}

static const struct hf__backend *enter_module(const struct scheme *s,
                                              hf_error *err)
{
    hf__module_fn *entry;
    const struct hf__backend *be;
#ifdef HF_STATIC_REDIS
    if (!strcmp(s->module, "redis"))
        return hf_module(HF__ABI);
#endif
#ifdef HF_STATIC_ZOOKEEPER
    if (!strcmp(s->module, "zookeeper"))
        return hf_module_zookeeper(HF__ABI);
#endif
    void *handle = find_module(s->module);
    const char *why = dlerror();

    if (!handle) {
        hf__fail(err, HF_EBACKEND,
                 "the module holdfast/%s.so for %s:// %s%s; install it and "
                 "the package %s, or set HOLDFAST_MODULE_PATH",
                 s->module, s->scheme,
                 why ? "could not be loaded: " : "was not found",
                 why ? why : "", s->package);
        return NULL;
    }
    entry = (hf__module_fn *)dlsym(handle, HF__MODULE_SYMBOL);
    be = entry ? entry(HF__ABI) : NULL;
    if (!be || be->abi != HF__ABI) {
        hf__fail(err, HF_EBACKEND,
                 "the module holdfast/%s.so is of another version of holdfast; "
                 "install that of %s",
                 s->module, hf_version());
        return NULL;
    }
    return be;
}

int hf__backend_find(const char *scheme, const struct hf__backend **out,
                     hf_error *err)
{
    if (!strcmp(scheme, "shm")) {
        *out = &hf__shm_backend;
        return 0;
    }
    for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
        if (strcmp(scheme, schemes[i].scheme) != 0)
            continue;
        *out = enter_module(&schemes[i], err);
        return *out ? 0 : HF_EBACKEND;
    }
    return hf__fail(err, HF_EINVAL,
                    "holdfast %s has no backend for %.40s: URLs%s; it has "
                    "shm:, redis://, redis+unix:// and zk://",
                    hf_version(), scheme,
                    strcmp(scheme, "rediss") ? "" : " (no TLS yet)");
}
