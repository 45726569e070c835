/* A directory that appears complete or not at all: filled under a hidden name beside its place
 * (base/hidden_directory.h), and renamed when complete. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit.h"
#include "hidden_directory.h"

/* --- beginning --- */

static psplit_code take_path(psplit_i_directory *d, const char *path, psplit_diag *diag,
                             const char **out_name) {
  const psplit_code code = psplit_i_take_place(path, diag, &d->target, &d->parent, out_name);
  struct stat status;
  if (code == PSPLIT_OK && stat(d->parent, &status) != 0)
    return psplit_i_fail(diag, PSPLIT_IO, "cannot make %s: %s: %s", d->target, d->parent,
                         strerror(errno));
  return code;
}

/* Whether `path` or a directory above it is the directory `target`. */
static psplit_code look_inside(const char *path, const struct stat *target, psplit_diag *diag,
                               bool *out_inside) {
  char *real = realpath(path, NULL);
  *out_inside = false;
  if (!real && errno == ENOMEM) return psplit_i_nomem(diag);
  if (!real && errno == ENOENT) return PSPLIT_OK; /* it is nowhere */
  if (!real)
    return psplit_i_fail(diag, PSPLIT_IO, "%s: its path cannot be resolved: %s", path,
                         strerror(errno));
  while (*real && !*out_inside) {
    struct stat status;
    *out_inside = stat(real, &status) == 0 && status.st_dev == target->st_dev &&
                  status.st_ino == target->st_ino;
    *strrchr(real, '/') = '\0';
  }
  free(real);
  return PSPLIT_OK;
}

static psplit_code refuse_input_inside(const psplit_i_directory *d, const psplit_model *model,
                                       const struct stat *target, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  char buffer[PSPLIT_I_FD_PATH];
  bool inside;
  for (uint32_t f = 0; f < model->files.n; f++) {
    PSPLIT_TRY(look_inside(psplit_i_model_place(model, f, buffer), target, diag, &inside));
    if (inside)
      return psplit_i_fail(diag, PSPLIT_IO,
                           "%s holds the model itself and cannot be replaced; give another "
                           "output directory",
                           d->target);
  }
out:
  return code;
}

static psplit_code check_target(psplit_i_directory *d, const psplit_model *model,
                                psplit_diag *diag) {
  struct stat status;
  if (lstat(d->target, &status) != 0) {
    if (errno == ENOENT) return PSPLIT_OK;
    return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", d->target, strerror(errno));
  }
  if (!S_ISDIR(status.st_mode))
    return psplit_i_fail(diag, PSPLIT_IO, "%s exists and is not a directory", d->target);
  psplit_code code;
  PSPLIT_TRY(refuse_input_inside(d, model, &status, diag));
  bool inside;
  PSPLIT_TRY(look_inside(".", &status, diag, &inside));
  if (inside)
    return psplit_i_fail(diag, PSPLIT_IO,
                         "%s is the working directory, or holds it, and cannot be replaced",
                         d->target);
  if (faccessat(AT_FDCWD, d->target, W_OK, AT_EACCESS) != 0)
    return psplit_i_fail(diag, PSPLIT_IO, "%s cannot be replaced: %s", d->target, strerror(errno));
  PSPLIT_TRY(psplit_i_old_split_open(d->target, diag, &d->old));
  PSPLIT_TRY(psplit_i_old_split_alone(&d->old, d->old.fd, d->target, diag));
  if (!d->replace) /* last: leave to replace is no help where it cannot be */
    code = psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(REPLACE), "%s exists", d->target);
out:
  return code;
}

static const char INSIDE[] = "stages"; /* of hidden names in an existing directory */

/* Of what is replaced not everybody may be allowed to see the files. */
static psplit_code make_temp(psplit_i_directory *d, const char *name, psplit_diag *diag) {
  return psplit_i_hidden_make(d->parent, name, d->old.fd < 0 ? 0777 : 0700, diag, &d->temp, &d->fd);
}

psplit_code psplit_i_directory_begin(psplit_i_directory *d, const psplit_model *model,
                                     const char *path, bool replace, psplit_diag *diag) {
  psplit_code code;
  *d = (psplit_i_directory)PSPLIT_I_DIRECTORY_NONE;
  d->replace = replace;
  const char *name;
  PSPLIT_TRY(take_path(d, path, diag, &name));
  PSPLIT_TRY(check_target(d, model, diag));
  psplit_i_hidden_sweep(d->parent, name, NULL);
  PSPLIT_TRY(make_temp(d, name, diag));
out:
  return code;
}

psplit_code psplit_i_directory_begin_inside(psplit_i_directory *d, const char *path, bool replace,
                                            psplit_diag *diag) {
  psplit_code code;
  *d = (psplit_i_directory)PSPLIT_I_DIRECTORY_NONE;
  d->replace = replace;
  PSPLIT_TRY(take_path(d, path, diag, NULL));
  free(d->parent);
  d->parent = strdup(d->target);
  if (!d->parent) return psplit_i_nomem(diag);
  psplit_i_hidden_sweep(d->parent, INSIDE, psplit_i_inside_restore);
  if (replace) PSPLIT_TRY(psplit_i_old_split_open(d->target, diag, &d->old));
  PSPLIT_TRY(make_temp(d, INSIDE, diag));
out:
  return code;
}

/* --- ending --- */

/* The old directory, which nobody finds under its name any more: whether it is as it was when it
 * was looked at. */
static psplit_code check_again(const psplit_i_directory *d, psplit_diag *diag) {
  return psplit_i_old_split_alone(&d->old, d->old.fd, d->target, diag);
}

/* Its files go, and it goes where nothing else has come into it. */
static void remove_old(const psplit_i_directory *d, const char *path) {
  psplit_i_old_split_remove(&d->old, d->old.fd);
  rmdir(path);
}

/* Where entries cannot be exchanged: for a moment there is neither the old nor the new. */
static psplit_code replace_in_steps(psplit_i_directory *d, psplit_diag *diag) {
  psplit_i_text aside = {0};
  psplit_i_text_addf(&aside, "%s9", d->temp);
  if (aside.failed) return psplit_i_nomem(diag);
  psplit_code code = PSPLIT_OK;
  if (rename(d->target, aside.bytes) != 0)
    code = psplit_i_fail(diag, PSPLIT_IO, "cannot replace %s: %s", d->target, strerror(errno));
  else
    code = check_again(d, diag);
  if (code == PSPLIT_OK && rename(d->temp, d->target) != 0)
    code = psplit_i_fail(diag, PSPLIT_IO, "cannot replace %s: %s", d->target, strerror(errno));
  if (code != PSPLIT_OK) {
    if (access(d->target, F_OK) != 0) psplit_i_rename_new(AT_FDCWD, aside.bytes, d->target);
  } else {
    remove_old(d, aside.bytes);
    free(d->temp);
    d->temp = NULL;
  }
  psplit_i_text_fini(&aside);
  return code;
}

/* Whether `target` is the directory that was looked at. */
static bool is_old(const psplit_i_directory *d) {
  struct stat here, old;
  return d->old.fd >= 0 && lstat(d->target, &here) == 0 && fstat(d->old.fd, &old) == 0 &&
         here.st_dev == old.st_dev && here.st_ino == old.st_ino;
}

/* 0, or why the disk has not got the names in a directory. */
static int sync_names(const psplit_i_directory *d, const char *path) {
  if (!d->sync) return 0;
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno == EACCES ? 0 : errno; /* may be written, not read */
  const int reason = psplit_i_synced(fd) ? 0 : errno;
  close(fd);
  return reason;
}

static psplit_code put_in_place(psplit_i_directory *d, psplit_diag *diag) {
  struct stat old;
  if (d->old.fd >= 0 && (fstat(d->old.fd, &old) != 0 || !psplit_i_take_over(d->fd, &old)))
    return psplit_i_fail(diag, PSPLIT_IO, "cannot replace %s: %s", d->target, strerror(errno));
  if (psplit_i_rename_new(AT_FDCWD, d->temp, d->target)) {
    free(d->temp);
    d->temp = NULL;
    return PSPLIT_OK;
  }
  if (errno != EEXIST && errno != ENOTEMPTY)
    return psplit_i_fail(diag, PSPLIT_IO, "cannot rename to %s: %s", d->target, strerror(errno));
  if (!d->replace)
    return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(REPLACE), "%s exists", d->target);
  if (!is_old(d))
    return psplit_i_fail(diag, PSPLIT_IO, "%s was replaced meanwhile; try again", d->target);
  if (!psplit_i_exchange(d->temp, d->target)) return replace_in_steps(d, diag);
  const psplit_code code = check_again(d, diag);
  if (code == PSPLIT_OK) {
    d->exchanged = true;
  } else if (!psplit_i_exchange(d->temp, d->target)) {
    psplit_i_diag_context(diag, "%s holds the replaced files", d->temp);
    free(d->temp);
    d->temp = NULL;
  }
  return code;
}

psplit_code psplit_i_directory_commit(psplit_i_directory *d, psplit_diag *diag) {
  if (d->sync && !psplit_i_synced(d->fd))
    return psplit_i_fail(diag, PSPLIT_IO, "cannot write %s: %s", d->target, strerror(errno));
  char *temp = strdup(d->temp);
  if (!temp) return psplit_i_nomem(diag);
  psplit_code code = put_in_place(d, diag);
  const int reason = code == PSPLIT_OK ? sync_names(d, d->parent) : 0;
  if (reason) {
    code = psplit_i_fail(diag, PSPLIT_IO, "cannot write to %s: %s", d->parent, strerror(reason));
    if (d->exchanged) d->exchanged = !psplit_i_exchange(temp, d->target);
    /* Where the old one has gone already, the new one stays. */
    if (!d->temp && d->old.fd < 0 && psplit_i_rename_new(AT_FDCWD, d->target, temp)) {
      d->temp = temp;
      temp = NULL;
    }
  }
  free(temp);
  return code;
}

void psplit_i_directory_end(psplit_i_directory *d) {
  if (d->temp && d->exchanged) remove_old(d, d->temp);
  const bool left = d->temp && !d->exchanged;
  if (left) psplit_i_hidden_remove(d->temp, &d->fd);
  psplit_i_old_split_close(&d->old);
  if (d->fd >= 0) close(d->fd);
  if (!left) free(d->temp);
  free(d->parent);
  free(d->target);
  *d = (psplit_i_directory)PSPLIT_I_DIRECTORY_NONE;
}

/* --- cleaning --- */

/* A checkpoint may be the only one that is left. */
static bool is_no_checkpoint(int at, int fd) {
  return faccessat(fd, "training.json", F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
         psplit_i_inside_restore(at, fd);
}

psplit_code psplit_emit_clean(const char *directory, uint32_t *out_n, psplit_diag *diag) {
  DIR *entries = opendir(directory);
  if (!entries && errno == ENOMEM) return psplit_i_nomem(diag);
  if (!entries) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", directory, strerror(errno));
  const uint32_t n =
    psplit_i_hidden_clean(entries, is_no_checkpoint) + psplit_i_out_clean(dirfd(entries), NULL);
  closedir(entries);
  if (out_n) *out_n = n;
  return PSPLIT_OK;
}
