// Film, see film.h. ffmpeg gets raw pictures through a socket in place of a pipe, because a write to a
// socket can do without SIGPIPE when the other side has gone; it writes beside the target, and the
// result is renamed.
#include "report/film.h"

#include "base/file.h"
#include "base/text.h"
#include "report/gif.h"
#include "report/png.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { PATH = 4096, RGB = 3, PART_TRIES = 100 };
typedef enum film_kind { FOLDER, STILL, GIF, MP4 } film_kind;

struct dc_film {
    const char *path;
    film_kind kind;
    int width, height;
    int64_t pictures;
    dc_gif *gif;
    int to;          // ffmpeg's input; -1: closed
    pid_t ffmpeg;    // 0: not running
    char part[PATH]; // what ffmpeg writes
};

static film_kind kind_of(const char *path) {
    static const char *const ends[] = {[STILL] = ".png", [GIF] = ".gif", [MP4] = ".mp4"};
    size_t n = strlen(path);
    for (int k = STILL; k <= MP4; k++)
        if (n > 4 && !strcmp(path + n - 4, ends[k])) return (film_kind)k;
    return FOLDER;
}

bool dc_film_is_still(const char *path) {
    return kind_of(path) == STILL;
}

bool dc_film_wants_samples(const dc_film *film) {
    return film->kind == GIF;
}

// ---- ffmpeg ----

static int spawn_ffmpeg(dc_film *f, double rate, int from) {
    char size[32], speed[32], out[PATH + 8];
    snprintf(size, sizeof size, "%dx%d", f->width, f->height);
    snprintf(speed, sizeof speed, "%.6g", rate);
    snprintf(out, sizeof out, "file:%s", f->part);
    char *words[] = {"ffmpeg",    "-nostdin",
                     "-y",        "-loglevel",
                     "quiet",     "-f",
                     "rawvideo",  "-pixel_format",
                     "rgb24",     "-video_size",
                     size,        "-framerate",
                     speed,       "-i",
                     "pipe:0",    "-an",
                     "-vf",       "pad=ceil(iw/2)*2:ceil(ih/2)*2",
                     "-c:v",      "libx264",
                     "-crf",      "18",
                     "-pix_fmt",  "yuv420p",
                     "-movflags", "+faststart",
                     "-f",        "mp4",
                     out,         NULL};
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) return failed;
    failed = posix_spawn_file_actions_adddup2(&actions, from, 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    if (!failed) failed = posix_spawnp(&f->ffmpeg, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) f->ffmpeg = 0;
    return failed;
}

// Make the file that ffmpeg writes, beside the target: one that was not there, since it is ours to remove.
static dc_status make_part(dc_film *f) {
    char name[PATH];
    int fd = -1;
    for (int k = 0; fd < 0 && k < PART_TRIES; k++) {
        int n = snprintf(name, sizeof name, "%s.tmp.%ld.%d", f->path, (long)getpid(), k);
        if (n < 0 || (size_t)n >= sizeof name)
            return dc_fail(DC_USAGE, NULL, "the name is too long (%.40s...)", f->path);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST) break;
    }
    if (fd < 0)
        return dc_fail(DC_IO, "check that the folder can be written", "cannot write %s: %s", name,
                       strerror(errno));
    close(fd);
    memcpy(f->part, name, sizeof name);
    return DC_OK;
}

static dc_status start_ffmpeg(dc_film *f, double rate) {
    int ends[2];
    DC_TRY(make_part(f));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return dc_fail(DC_IO, NULL, "no way to talk to ffmpeg: %s", strerror(errno));
    int failed = spawn_ffmpeg(f, rate, ends[1]);
    close(ends[1]);
    f->to = ends[0];
    if (!failed) return DC_OK;
    return dc_fail(DC_UNSUPPORTED,
                   "install the package ffmpeg, or write a .gif or a folder of PNG files",
                   "ffmpeg cannot be started: %s (%s)", strerror(failed), f->path);
}

static dc_status gave_up(const dc_film *f) {
    return dc_fail(DC_IO,
                   "check that the folder can be written and that this ffmpeg has libx264, or "
                   "write a .gif or a folder of PNG files",
                   "ffmpeg gave up (%s)", f->path);
}

static dc_status feed_ffmpeg(dc_film *f, const uint8_t *rgb) {
    size_t left = (size_t)f->width * (size_t)f->height * RGB;
    while (left) {
        ssize_t n = send(f->to, rgb, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return gave_up(f);
        rgb += n;
        left -= (size_t)n;
    }
    return DC_OK;
}

static bool end_ffmpeg(dc_film *f) {
    int state = 1;
    if (f->to >= 0) close(f->to);
    f->to = -1;
    while (f->ffmpeg && waitpid(f->ffmpeg, &state, 0) < 0 && errno == EINTR) {
    }
    f->ffmpeg = 0;
    return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

static dc_status save_mp4(dc_film *f) {
    if (!end_ffmpeg(f)) return gave_up(f);
    if (!rename(f->part, f->path)) return f->part[0] = 0, DC_OK;
    return dc_fail(DC_IO, NULL, "cannot rename to %s: %s", f->path, strerror(errno));
}

// ---- PNG ----

static dc_status write_png(const dc_film *f, const char *path, const uint8_t *rgb) {
    dc_text png;
    dc_text_init(&png);
    dc_status status = dc_png_rgb(&png, f->width, f->height, rgb);
    if (status == DC_OK) status = dc_file_write(path, png.bytes, png.used);
    dc_text_fini(&png);
    return status;
}

static dc_status add_file(const dc_film *f, const uint8_t *rgb) {
    dc_text path;
    dc_text_init(&path);
    dc_text_add(&path, "%s/frame-%05" PRId64 ".png", f->path, f->pictures);
    dc_status status = dc_text_status(&path);
    if (status == DC_OK) status = write_png(f, path.bytes, rgb);
    dc_text_fini(&path);
    return status;
}

// ---- all ----

static dc_status start(dc_film *f, double rate) {
    if (f->kind == MP4) return start_ffmpeg(f, rate);
    if (f->kind == GIF && rate > DC_GIF_RATE_MOST)
        return dc_fail(DC_USAGE, "take fewer: --fps 25, or --every 2",
                       "a GIF shows at most %d pictures per second, not %g", DC_GIF_RATE_MOST,
                       rate);
    if (f->kind == GIF) return dc_gif_new(&f->gif, f->path, f->width, f->height, rate);
    if (f->kind == STILL) return DC_OK;
    if (dc_folder_empty(f->path)) return dc_folder_make(f->path);
    return dc_fail(DC_USAGE, "name a new folder, or a file that ends in .png, .gif or .mp4",
                   "%s is there already", f->path);
}

dc_status dc_film_new(dc_film **film, const char *path, int width, int height, double rate) {
    DC_CHECK(width > 0 && height > 0 && rate > 0);
    *film = NULL;
    dc_film *f = calloc(1, sizeof *f);
    if (!f) return dc_fail(DC_NO_MEMORY, NULL, "no memory for %s", path);
    f->path = path;
    f->kind = kind_of(path);
    f->width = width;
    f->height = height;
    f->to = -1;
    dc_status status = start(f, rate);
    if (status == DC_OK)
        *film = f;
    else
        dc_film_free(f);
    return status;
}

void dc_film_sample(dc_film *film, const uint8_t *rgb) {
    if (film->gif) dc_gif_sample(film->gif, rgb);
}

dc_status dc_film_add(dc_film *film, const uint8_t *rgb) {
    dc_status status = DC_OK;
    switch (film->kind) {
    case FOLDER:
        status = add_file(film, rgb);
        break;
    case STILL:
        DC_CHECK(film->pictures == 0);
        status = write_png(film, film->path, rgb);
        break;
    case GIF:
        status = dc_gif_add(film->gif, rgb);
        break;
    case MP4:
        status = feed_ffmpeg(film, rgb);
        break;
    }
    film->pictures++;
    return status;
}

dc_status dc_film_save(dc_film *film) {
    if (film->kind == GIF) return dc_gif_save(film->gif);
    return film->kind == MP4 ? save_mp4(film) : DC_OK;
}

void dc_film_free(dc_film *film) {
    if (!film) return;
    dc_gif_free(film->gif);
    if (film->ffmpeg) { // not saved: half a film is none
        kill(film->ffmpeg, SIGTERM);
        end_ffmpeg(film);
    }
    if (film->to >= 0) close(film->to);
    if (film->part[0]) unlink(film->part);
    free(film);
}
