// Where OGBench's description files are, and whether a model made of them is the expected one.
#include "env/mujoco/engine.h"

#include "base/file.h"
#include "base/install.h"
#include "places.h" // of the build folder; a definition for all files would make every one depend on the path

#include <stdio.h>
#include <stdlib.h>

dc_status dc_model_check(const mjModel *m, const dc_env_family *f, int controls, const char *path) {
    if (m->nq == f->nq && m->nv == f->nv && m->nu == controls && m->na == 0) return DC_OK;
    return dc_fail(DC_BAD_INPUT, "tools/setup.sh build fetches the files of the version that fits",
                   "another robot than expected: nq %d, nv %d, nu %d (%s)", (int)m->nq, (int)m->nv,
                   (int)m->nu, path);
}

// The folder of descriptions: what the user names, else the installed one, else the one of set-up.
static const char *descriptions(char *path, size_t size) {
    const char *named = getenv("DCRL_OGBENCH");
    if (named) return named;
    return dc_install_folder("ogbench", path, size) ? path : DC_DESCRIPTIONS;
}

dc_status dc_model_folder(const char *name, char *path, size_t size) {
    char folder[4096];
    int n = snprintf(path, size, "%s/%s", descriptions(folder, sizeof folder), name);
    if (n > 0 && (size_t)n < size) return DC_OK;
    return dc_fail(DC_IO, "move it to a folder with a shorter name",
                   "the path of the descriptions is too long (%.60s...)", path);
}

dc_status dc_model_need(const char *path) {
    bool exists;
    DC_TRY(dc_file_find(path, &exists));
    if (exists) return DC_OK;
    return dc_fail(DC_IO,
                   "`make` fetches OGBench's description files into deps/; the variable "
                   "DCRL_OGBENCH names another "
                   "folder that holds locomaze/ and manipspace/",
                   "a robot's description is missing (%s)", path);
}
