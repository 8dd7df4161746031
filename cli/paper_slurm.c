// Scripts for Slurm, see paper.h: one for the data, an array with a task for each run, one for the page, and one that
// submits them in this order. A task that is preempted saves, asks to be queued again and goes on; a task
// whose data is not there makes it, so that the array also runs by itself.
#include "paper.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void quote(dc_text *out, const char *s) { // for a shell
    dc_text_add(out, "'");
    for (; *s; s++)
        if (*s == '\'')
            dc_text_add(out, "'\\''");
        else
            dc_text_add(out, "%c", *s);
    dc_text_add(out, "'");
}

static dc_status program(dc_text *out) {
    char path[DC_PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return dc_fail(DC_IO, "see /proc", "where this program lies is not known");
    path[n] = 0;
    quote(out, path);
    return DC_OK;
}

static void flag(dc_text *out, const char *name, const char *value) {
    if (!*value) return;
    dc_text_add(out, " --%s=", name);
    quote(out, value);
}

// The command itself, without the flags that say which part of it.
static dc_status command(const paper *p, dc_text *out) {
    const paper_flags *f = p->flags;
    DC_TRY(program(out));
    dc_text_add(out, " paper run");
    for (int i = 0; i < p->wanted; i++)
        dc_text_add(out, " %s", p->plan.experiments[i].name);
    flag(out, "scale", f->scale);
    flag(out, "scales", f->scales);
    flag(out, "data", f->data);
    flag(out, "out", f->out);
    dc_text_add(out, " --device=%s --threads=\"${SLURM_CPUS_PER_TASK:-0}\"",
                f->device ? "cuda" : "cpu");
    return DC_OK;
}

static dc_status begin(const paper *p, const char *what, const char *resources, dc_text *out) {
    char here[DC_PATH_MAX];
    if (!getcwd(here, sizeof here))
        return dc_fail(DC_IO, "change to a folder that is there", "no current folder (%s)",
                       strerror(errno));
    dc_text_add(out,
                "#!/bin/bash\n# Written by dcrl paper run --slurm. Partition, account and time "
                "limit are yours to add, here or as\n# options of sbatch.\n"
                "#SBATCH --job-name=dcrl-%s\n%s#SBATCH --output=",
                what, resources);
    dc_text_add(out, "%s%s%s/slurm/%s-%%%s.log\n", p->flags->out[0] == '/' ? "" : here,
                p->flags->out[0] == '/' ? "" : "/", p->flags->out, what,
                strcmp(what, "runs") != 0 ? "j" : "A-%a");
    dc_text_add(out, "cd ");
    quote(out, here);
    dc_text_add(out, " || exit 1\n");
    return DC_OK;
}

// In the background, so that a signal reaches it while the shell waits.
static const char waiting[] =
    " &\npid=$!\ntrap 'kill -USR1 \"$pid\" 2>/dev/null' USR1 TERM\n"
    "while kill -0 \"$pid\" 2>/dev/null; do wait \"$pid\"; done\nwait \"$pid\"\nstatus=$?\n"
    "# 75: stopped by a signal, and saved; the same task goes on.\n"
    "if [ \"$status\" -eq 75 ] && [ -n \"${SLURM_JOB_ID:-}\" ]; then\n"
    "    scontrol requeue \"$SLURM_JOB_ID\" && exit 0\nfi\nexit \"$status\"\n";

static dc_status write_script(const paper *p, const char *name, const dc_text *text) {
    char inside[64], path[DC_PATH_MAX];
    snprintf(inside, sizeof inside, "slurm/%s", name);
    DC_TRY(dc_text_status(text));
    DC_TRY(paper_path(p, path, inside));
    DC_TRY(dc_file_write_inside(path, text->bytes, text->used));
    if (chmod(path, 0755) == 0) return DC_OK;
    return dc_fail(DC_IO, "check the folder", "%s cannot be made a program (%s)", path,
                   strerror(errno));
}

static dc_status one_script(const paper *p, const char *what, const char *resources,
                            const char *part) {
    char name[32];
    dc_text text;
    dc_text_init(&text);
    dc_status status = begin(p, what, resources, &text);
    if (status == DC_OK) status = command(p, &text);
    dc_text_add(&text, "%s%s", part, waiting);
    snprintf(name, sizeof name, "%s.sh", what);
    if (status == DC_OK) status = write_script(p, name, &text);
    dc_text_fini(&text);
    return status;
}

static dc_status submit_script(const paper *p) {
    dc_text text;
    dc_text_init(&text);
    dc_text_add(&text,
                "#!/bin/bash\n# Submits data, runs and page, each after the one before.\nset -e\n"
                "cd \"$(dirname \"$0\")\"\n"
                "data=$(sbatch --parsable \"$@\" data.sh)\n"
                "runs=$(sbatch --parsable --dependency=afterany:\"$data\" \"$@\" runs.sh)\n"
                "sbatch --dependency=afterany:\"$runs\" \"$@\" page.sh\n");
    dc_status status = write_script(p, "submit.sh", &text);
    dc_text_fini(&text);
    return status;
}

dc_status paper_write_slurm(const paper *p) {
    char folder[DC_PATH_MAX], array[256];
    if (!p->run_count)
        return dc_fail(DC_USAGE, "--dry-run says what is missing", "there is nothing to run");
    DC_TRY(paper_folder(p, folder, "slurm"));
    DC_TRY(dc_folder_make(folder));
    DC_TRY(paper_write_plan(p));
    snprintf(array, sizeof array,
             "#SBATCH --array=0-%d\n#SBATCH --cpus-per-task=4\n%s#SBATCH --requeue\n"
             "#SBATCH --signal=B:USR1@180\n",
             p->run_count - 1, p->flags->device ? "#SBATCH --gres=gpu:1\n" : "");
    const char *plain = "#SBATCH --cpus-per-task=16\n#SBATCH --requeue\n"
                        "#SBATCH --signal=B:USR1@180\n";
    DC_TRY(one_script(p, "data", plain, " --only-data"));
    DC_TRY(one_script(p, "runs", array, " --task=\"$SLURM_ARRAY_TASK_ID\""));
    DC_TRY(one_script(p, "page", "#SBATCH --cpus-per-task=1\n", " --only-page"));
    DC_TRY(submit_script(p));
    printf("%s/submit.sh: data, %d runs as an array, page\n", folder, p->run_count);
    return DC_OK;
}
