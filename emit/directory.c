/* A directory that appears complete or not at all. It is filled under a hidden name beside its
 * place, .NAME.psplit-PID-N, and renamed when complete. A lock on the hidden directory tells one
 * that is being written from one that a killed run left behind. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit.h"

enum { MAX_NAME_PART = 200, MAX_ATTEMPTS = 1000 };

static char *join(const char *directory, const char *name) {
  psplit_i_text path = {0};
  psplit_i_text_addf(&path, "%s/%s", strcmp(directory, "/") == 0 ? "" : directory, name);
  if (path.failed) psplit_i_text_fini(&path);
  return path.bytes;
}

/* --- removing --- */

/* Removes the tree `name` below `at`; symbolic links are removed, not followed. */
static bool remove_tree(int at, const char *name) {
  if (unlinkat(at, name, 0) == 0) return true;
  if (errno != EISDIR && errno != EPERM) return errno == ENOENT;
  const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool removed = true;
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (!remove_tree(fd, entry->d_name)) removed = false;
  }
  closedir(entries);
  return removed && unlinkat(at, name, AT_REMOVEDIR) == 0;
}

/* What stands before PID-N in the hidden names for a target. */
static void hidden_prefix(const char *name, char out[MAX_NAME_PART + 32]) {
  snprintf(out, MAX_NAME_PART + 32, ".%.*s.psplit-", MAX_NAME_PART, name);
}

/* Digits, '-', digits: a user's own directory is not mistaken for one of ours. */
static bool is_hidden_name(const char *name, const char *prefix) {
  const size_t n = strlen(prefix);
  if (strncmp(name, prefix, n) != 0) return false;
  const size_t pid = strspn(name + n, "0123456789");
  if (!pid || name[n + pid] != '-') return false;
  const size_t number = strspn(name + n + pid + 1, "0123456789");
  return number && name[n + pid + 1 + number] == '\0';
}

/* Removes hidden directories that nobody locks; `inside`: after what was moved between them and
 * `parent` is back. Best effort: what cannot be removed stays. */
static void remove_stale(const char *parent, const char *prefix, bool inside) {
  DIR *entries = opendir(parent);
  if (!entries) return;
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (!is_hidden_name(entry->d_name, prefix)) continue;
    const int fd =
      openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        (!inside || psplit_i_inside_restore(dirfd(entries), fd)))
      remove_tree(dirfd(entries), entry->d_name);
    close(fd);
  }
  closedir(entries);
}

/* --- beginning --- */

/* Parent and name of `path`; "." and ".." stand for directories that exist, so they are looked up.
 */
static psplit_code take_path(psplit_i_directory *d, const char *path, psplit_diag *diag) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  d->target = n ? malloc(n + 1) : NULL;
  if (!n) return psplit_i_fail(diag, PSPLIT_USAGE, "the output directory has no name");
  if (!d->target) return psplit_i_nomem(diag);
  memcpy(d->target, path, n);
  d->target[n] = '\0';
  const char *slash = strrchr(d->target, '/');
  const char *name = slash ? slash + 1 : d->target;
  if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
    char *real = realpath(d->target, NULL);
    if (!real && errno == ENOMEM) return psplit_i_nomem(diag);
    if (!real) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", d->target, strerror(errno));
    free(d->target);
    d->target = real;
    slash = strrchr(d->target, '/');
  }
  if (slash == d->target && !slash[1])
    return psplit_i_fail(diag, PSPLIT_USAGE, "the root directory cannot be the output directory");
  d->parent = strdup(slash ? d->target : ".");
  if (!d->parent) return psplit_i_nomem(diag);
  if (slash) d->parent[slash == d->target ? 1 : slash - d->target] = '\0';
  struct stat status;
  if (stat(d->parent, &status) != 0)
    return psplit_i_fail(diag, PSPLIT_IO, "cannot make %s: %s: %s", d->target, d->parent,
                         strerror(errno));
  return PSPLIT_OK;
}

/* Whether `path` or a directory above it is the directory `target`. */
static psplit_code look_inside(const char *path, const struct stat *target, psplit_diag *diag,
                               bool *out_inside) {
  char *real = realpath(path, NULL);
  *out_inside = false;
  if (!real && errno == ENOMEM) return psplit_i_nomem(diag);
  if (!real && errno == ENOENT) return PSPLIT_OK; /* it is nowhere */
  if (!real)
    return psplit_i_fail(diag, PSPLIT_IO, "%s: it cannot be told where that is: %s", path,
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

/* Makes the hidden directory and locks it. Another run that looks for stale ones may take it
 * between the two steps, and removes it then. */
static psplit_code make_temp(psplit_i_directory *d, const char *prefix, psplit_diag *diag) {
  for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    char name[MAX_NAME_PART + 80];
    snprintf(name, sizeof name, "%s%ld-%u", prefix, (long)getpid(), attempt);
    free(d->temp);
    d->temp = join(d->parent, name);
    if (!d->temp) return psplit_i_nomem(diag);
    /* Of what is replaced not everybody may be allowed to see the files. */
    if (mkdir(d->temp, d->old.fd < 0 ? 0777 : 0700) != 0) {
      const int reason = errno;
      free(d->temp);
      d->temp = NULL;
      if (reason == EEXIST) continue;
      return psplit_i_fail(diag, PSPLIT_IO, "cannot make a directory in %s: %s", d->parent,
                           strerror(reason));
    }
    d->fd = open(d->temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (d->fd < 0) { /* another run has taken it, or none can be opened: then it goes */
      const int reason = errno;
      rmdir(d->temp);
      if (reason == ENOENT) continue;
      free(d->temp);
      d->temp = NULL;
      return psplit_i_fail(diag, PSPLIT_IO, "cannot make a directory in %s: %s", d->parent,
                           strerror(reason));
    }
    /* Where there are no locks nothing is ever taken for stale. */
    const bool lost = flock(d->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    struct stat ours, there;
    if (!lost && fstat(d->fd, &ours) == 0 && lstat(d->temp, &there) == 0 &&
        ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
      return PSPLIT_OK;
    close(d->fd);
    d->fd = -1;
  }
  free(d->temp);
  d->temp = NULL;
  return psplit_i_fail(diag, PSPLIT_IO, "cannot make a directory in %s that stays", d->parent);
}

psplit_code psplit_i_directory_begin(psplit_i_directory *d, const psplit_model *model,
                                     const char *path, bool replace, psplit_diag *diag) {
  psplit_code code;
  *d = (psplit_i_directory)PSPLIT_I_DIRECTORY_NONE;
  d->replace = replace;
  PSPLIT_TRY(take_path(d, path, diag));
  PSPLIT_TRY(check_target(d, model, diag));
  const char *slash = strrchr(d->target, '/');
  char prefix[MAX_NAME_PART + 32];
  hidden_prefix(slash ? slash + 1 : d->target, prefix);
  remove_stale(d->parent, prefix, false);
  PSPLIT_TRY(make_temp(d, prefix, diag));
out:
  return code;
}

psplit_code psplit_i_directory_begin_inside(psplit_i_directory *d, const char *path, bool replace,
                                            psplit_diag *diag) {
  psplit_code code;
  *d = (psplit_i_directory)PSPLIT_I_DIRECTORY_NONE;
  d->replace = replace;
  PSPLIT_TRY(take_path(d, path, diag));
  free(d->parent);
  d->parent = strdup(d->target);
  if (!d->parent) return psplit_i_nomem(diag);
  char prefix[MAX_NAME_PART + 32];
  hidden_prefix("stages", prefix);
  remove_stale(d->parent, prefix, true);
  if (replace) PSPLIT_TRY(psplit_i_old_split_open(d->target, diag, &d->old));
  PSPLIT_TRY(make_temp(d, prefix, diag));
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
    return psplit_i_fail(diag, PSPLIT_IO, "%s is another one than before; try again", d->target);
  if (!psplit_i_exchange(d->temp, d->target)) return replace_in_steps(d, diag);
  const psplit_code code = check_again(d, diag);
  if (code == PSPLIT_OK) {
    d->exchanged = true;
  } else if (!psplit_i_exchange(d->temp, d->target)) {
    psplit_i_diag_context(diag, "%s holds what was replaced", d->temp);
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

/* By the descriptor that there is: another may not be had. */
static void remove_temp(psplit_i_directory *d) {
  DIR *entries = d->fd < 0 ? NULL : fdopendir(d->fd);
  if (entries) {
    d->fd = -1;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
        remove_tree(dirfd(entries), entry->d_name);
    closedir(entries);
  }
  remove_tree(AT_FDCWD, d->temp);
}

void psplit_i_directory_end(psplit_i_directory *d) {
  if (d->temp && d->exchanged) remove_old(d, d->temp);
  if (d->temp && !d->exchanged) remove_temp(d);
  psplit_i_old_split_close(&d->old);
  if (d->fd >= 0) close(d->fd);
  free(d->temp);
  free(d->parent);
  free(d->target);
  *d = (psplit_i_directory)PSPLIT_I_DIRECTORY_NONE;
}

/* --- cleaning --- */

/* Whether `name` is ".NAME.psplit-PID-N". */
static bool is_any_hidden_name(const char *name) {
  static const char MARK[] = ".psplit-";
  const char *end = NULL;
  for (const char *at = name; *name == '.' && (at = strstr(at + 1, MARK)) != NULL;) end = at;
  if (!end || end == name + 1) return false;
  char prefix[NAME_MAX + 1];
  snprintf(prefix, sizeof prefix, "%.*s", (int)(end - name + (ptrdiff_t)strlen(MARK)), name);
  return is_hidden_name(name, prefix);
}

psplit_code psplit_emit_clean(const char *directory, uint32_t *out_n, psplit_diag *diag) {
  uint32_t n = 0;
  DIR *entries = opendir(directory);
  if (!entries && errno == ENOMEM) return psplit_i_nomem(diag);
  if (!entries) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", directory, strerror(errno));
  const int at = dirfd(entries);
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (!is_any_hidden_name(entry->d_name)) continue;
    const int fd = openat(at, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    /* A checkpoint may be the only one that is left. */
    if (faccessat(fd, "training.json", F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && psplit_i_inside_restore(at, fd))
      n += remove_tree(at, entry->d_name);
    close(fd);
  }
  n += psplit_i_out_clean(at, NULL);
  closedir(entries);
  if (out_n) *out_n = n;
  return PSPLIT_OK;
}
