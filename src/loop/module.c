/*
 * Finds the backend for the scheme of a URL. Shared memory is built in. Every
 * other backend is a module, which is loaded at its first use and never
 * unloaded. The module is searched for in HOLDFAST_MODULE_PATH (except in
 * set-user-id programs), then in a folder beside the library, then in
 * HF_MODULE_DIR.
 */
#include "loop/module.h"

#include "base/error.h"
#include "base/text.h"

#define HF__REGISTRY
#include "backends/registry.h"
#include "backends/shm/shm_backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the directory of this library, so that a copy that was moved finds its
 * modules. */
static int module_own_directory(char *dir, size_t size)
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

static void *module_load(const char *dir, const char *below, const char *module)
{
    char path[PATH_MAX + 64];

    if (snprintf(path, sizeof(path), "%s/%s%s.so", dir, below, module) >=
        (int)sizeof(path))
        return NULL;
    if (access(path, R_OK))
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static void *module_load_from_path(const char *module)
{
    const char *env = secure_getenv("HOLDFAST_MODULE_PATH");
    char dirs[PATH_MAX], *rest = dirs, *dir;
    void *handle = NULL;

    if (!env || snprintf(dirs, sizeof(dirs), "%s", env) >= (int)sizeof(dirs))
        return NULL;
    while (!handle && (dir = strsep(&rest, ":")))
        if (*dir)
            handle = module_load(dir, "", module);
    return handle;
}

static void *find_module(const char *module)
{
    char dir[PATH_MAX];
    void *handle;

    dlerror();
    handle = module_load_from_path(module);
    if (!handle && !module_own_directory(dir, sizeof(dir))) {
        handle = module_load(dir, "holdfast/", module);
        if (!handle) /* the library may be in a build directory */
            handle = module_load(dir, "backends/", module);
    }
    if (!handle)
        handle = module_load(HF_MODULE_DIR, "", module);
    return handle;
}

/* Loads a module and sets *entry to its entry function, or to NULL if it
 * exports none. Returns 0, or EBACKEND with a message. */
static int load_module(const struct scheme *s, hf__module_fn **entry,
                       hf_error *err)
{
    void *handle = find_module(s->module);
    const char *why = dlerror();

    if (!handle)
        return hf__fail(
            err, HF_EBACKEND,
            "the module holdfast/%s.so for %s:// %s%s; install it and "
            "%s, or set HOLDFAST_MODULE_PATH",
            s->module, s->scheme,
            why ? "could not be loaded: " : "was not found", why ? why : "",
            s->packages);
    *entry = (hf__module_fn *)dlsym(handle, HF__MODULE_SYMBOL);
    return 0;
}

static int enter_module(const struct scheme *s, const struct hf__backend **out,
                        hf_error *err)
{
    hf__module_fn *entry = s->linked;
    int rc = entry ? 0 : load_module(s, &entry, err);

    if (rc)
        return rc;
    *out = entry ? entry(HF__ABI, s->scheme) : NULL;
    if (*out && (*out)->abi == HF__ABI)
        return 0;
    return hf__fail(err, HF_EBACKEND,
                    "the module holdfast/%s.so is of another version of "
                    "holdfast; install that of %s",
                    s->module, hf_version());
}

static int module_no_backend(const char *scheme, hf_error *err)
{
    static const char *const known[] = {HF__SCHEMES};
    static const char *const planned[][2] = {{"sentinel", "Redis Sentinel"},
                                             {"cluster", "Redis Cluster"}};
    const char *meant;
    char list[160] = "";
    size_t len = 0, meant_len = 0;

    for (size_t i = 0; i < sizeof(planned) / sizeof(*planned); i++)
        if (strstr(scheme, planned[i][0]))
            return hf__fail(err, HF_EINVAL,
                            "holdfast %s does not support %s yet", hf_version(),
                            planned[i][1]);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (len < sizeof(list))
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
                                    i ? ", " : "", known[i]);
    meant = hf__meant(scheme, list, &meant_len);
    if (meant)
        return hf__fail(err, HF_EINVAL,
                        "holdfast %s has no backend for %.40s: URLs; did you "
                        "mean %.*s:? It has %s",
                        hf_version(), scheme, (int)meant_len, meant, list);
    return hf__fail(err, HF_EINVAL,
                    "holdfast %s has no backend for %.40s: URLs; it has %s",
                    hf_version(), scheme, list);
}

int hf__backend_find(const char *scheme, const struct hf__backend **out,
                     hf_error *err)
{
    if (!strcmp(scheme, "shm")) {
        *out = &hf__shm_backend;
        return 0;
    }
    for (size_t i = 0; i < sizeof(registry) / sizeof(*registry); i++)
        if (!strcmp(scheme, registry[i].scheme))
            return enter_module(&registry[i], out, err);
    return module_no_backend(scheme, err);
}
