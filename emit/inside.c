/* Files that take their places among others in a directory, all or none. They are made in a hidden
 * directory there, and then
 *   1. a list of their names is put beside them;
 *   2. the files of the split that they replace go into another directory beside them, first
 *      pipeline.json, without which no split is complete;
 *   3. they go to their places, last pipeline.json.
 * What fails on the way is undone. After a kill the directory holds no pipeline.json, and the next
 * run undoes the rest: a file of the list that is not in the hidden directory was moved. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit.h"

/* In the hidden directory, beside the new files. */
static const char MANIFEST[] = "pipeline.json", NAMES[] = ".names", OLD[] = ".old";

typedef PSPLIT_VEC(char *) name_list;

static void free_names(name_list *names) {
  for (size_t i = 0; i < names->n; i++) free(names->items[i]);
  psplit_i_vec_fini(names);
}

static bool add_name(name_list *names, const char *name, size_t n) {
  char *copy = strndup(name, n);
  if (copy && psplit_i_vec_push(names, copy)) return true;
  free(copy);
  return false;
}

/* Names in a directory; of `split` alone where that is not NULL. False, with errno, where they
 * cannot all be read: what is not listed would be lost. */
static bool list_names(int dir_fd, const psplit_i_old_split *split, name_list *out) {
  const int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool ok = true;
  while (ok) {
    errno = 0;
    const struct dirent *entry = readdir(entries);
    if (!entry) break;
    if (entry->d_name[0] == '.' || (split && !psplit_i_old_split_wrote(split, entry->d_name)))
      continue;
    ok = add_name(out, entry->d_name, strlen(entry->d_name));
    if (!ok) errno = ENOMEM;
  }
  const int reason = errno;
  closedir(entries);
  errno = reason;
  return !reason;
}

static bool is_input(const psplit_model *model, const struct stat *status) {
  for (size_t f = 0; f < model->files.n; f++)
    if (model->files.items[f].device == (uint64_t)status->st_dev &&
        model->files.items[f].inode == (uint64_t)status->st_ino)
      return true;
  return false;
}

/* What stands where a file has to go: nothing, or with `replace` a file of the old split that is no
 * input. */
static psplit_code check_places(const psplit_i_directory *d, int at, const psplit_model *model,
                                const name_list *names, psplit_diag *diag) {
  for (size_t i = 0; i < names->n; i++) {
    struct stat status;
    if (fstatat(at, names->items[i], &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return psplit_i_fail(diag, PSPLIT_IO, "%s/%s: %s", d->target, names->items[i],
                           strerror(errno));
    }
    if (is_input(model, &status))
      return psplit_i_fail(diag, PSPLIT_IO, "%s/%s is the model's own file; rename it", d->target,
                           names->items[i]);
    if (!S_ISREG(status.st_mode))
      return psplit_i_fail(diag, PSPLIT_IO, "%s/%s exists and is not a regular file", d->target,
                           names->items[i]);
    if (!d->replace)
      return psplit_i_fail_about(diag, PSPLIT_IO, PSPLIT_I_HELPS(REPLACE), "%s/%s exists",
                                 d->target, names->items[i]);
    if (!psplit_i_old_split_wrote(&d->old, names->items[i]))
      return psplit_i_fail(
        diag, PSPLIT_IO,
        "%s/%s does not belong to the split there%s, and is not replaced: rename it", d->target,
        names->items[i], d->old.found ? "" : " (there is no pipeline.json)");
  }
  return PSPLIT_OK;
}

static bool contains(const name_list *names, const char *name) {
  for (size_t i = 0; i < names->n; i++)
    if (strcmp(names->items[i], name) == 0) return true;
  return false;
}

/* What cannot be looked at may be there. */
static bool is_there(int at, const char *name) {
  struct stat status;
  return fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

static psplit_code unlisted(const psplit_i_directory *d, psplit_diag *diag) {
  if (errno == ENOMEM) return psplit_i_nomem(diag);
  return psplit_i_fail(diag, PSPLIT_IO, "the files of %s cannot be listed: %s", d->target,
                       strerror(errno));
}

/* --- the list of names --- */

static psplit_code cannot(const psplit_i_directory *d, const char *what, const char *name,
                          int reason, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_IO, "cannot %s %s/%s: %s", what, d->target, name,
                       strerror(reason));
}

static psplit_code write_names(psplit_i_directory *d, const psplit_model *model,
                               const name_list *names, psplit_diag *diag) {
  static const char PART[] = ".names.part";
  psplit_code code;
  psplit_i_text text = {0};
  psplit_i_file file = {0};
  for (size_t i = 0; i < names->n; i++) psplit_i_text_addf(&text, "%s\n", names->items[i]);
  if (text.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_directory_file(d, PART, model, NULL, diag, &file));
  PSPLIT_TRY(psplit_i_file_bytes(&file, (const uint8_t *)text.bytes, text.n, diag));
  PSPLIT_TRY(psplit_i_file_close(&file, text.n, diag));
  if (renameat(d->fd, PART, d->fd, NAMES) != 0) PSPLIT_TRY(cannot(d, "write", NAMES, errno, diag));
out:
  psplit_i_file_abandon(&file);
  psplit_i_text_fini(&text);
  return code;
}

static bool read_names(int hidden, name_list *out) {
  const int fd = openat(hidden, NAMES, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
  if (!file) {
    if (fd >= 0) close(fd);
    return false;
  }
  char line[NAME_MAX + 2];
  bool ok = true;
  while (ok && fgets(line, sizeof line, file)) {
    const size_t n = strcspn(line, "\n");
    ok = n && line[n] && !memchr(line, '/', n) && add_name(out, line, n);
  }
  fclose(file);
  return ok;
}

/* --- moving --- */

/* Undoes what was moved, in any state; false where something could not be. */
static bool put_back(int at, int hidden, const name_list *names) {
  bool ok = true;
  for (size_t i = 0; i < names->n; i++)
    if (!is_there(hidden, names->items[i]) && is_there(at, names->items[i]) &&
        renameat(at, names->items[i], hidden, names->items[i]) != 0)
      ok = false;
  const int old = openat(hidden, OLD, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (old < 0) return ok && errno == ENOENT;
  name_list olds = {0};
  ok = ok && list_names(old, NULL, &olds);
  for (size_t i = 0; ok && i < olds.n; i++)
    if (strcmp(olds.items[i], MANIFEST) != 0)
      ok = renameat(old, olds.items[i], at, olds.items[i]) == 0;
  if (ok && contains(&olds, MANIFEST)) ok = renameat(old, MANIFEST, at, MANIFEST) == 0;
  free_names(&olds);
  close(old);
  return ok;
}

bool psplit_i_inside_restore(int at, int hidden) {
  name_list names = {0};
  bool ok = true;
  /* Before there is a list nothing was moved, and with the manifest everything was. */
  if (is_there(hidden, NAMES) && is_there(hidden, MANIFEST))
    ok = read_names(hidden, &names) && put_back(at, hidden, &names);
  free_names(&names);
  return ok;
}

/* What the new files replace: files in their places, and the stages of a complete split. */
static bool list_old(const psplit_i_directory *d, int at, const psplit_model *model,
                     const name_list *names, name_list *out) {
  name_list stages = {0};
  bool ok = !is_there(at, MANIFEST) || list_names(at, &d->old, &stages);
  for (size_t i = 0; ok && i < stages.n; i++) {
    struct stat status;
    if (!contains(names, stages.items[i]) &&
        fstatat(at, stages.items[i], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && !is_input(model, &status))
      ok = add_name(out, stages.items[i], strlen(stages.items[i]));
  }
  for (size_t i = 0; ok && i < names->n; i++)
    if (is_there(at, names->items[i])) ok = add_name(out, names->items[i], strlen(names->items[i]));
  const int reason = errno;
  free_names(&stages);
  errno = reason;
  return ok;
}

/* Out of the way, the manifest first. */
static psplit_code move_old(const psplit_i_directory *d, int at, const name_list *olds,
                            psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (!olds->n) return PSPLIT_OK;
  if (mkdirat(d->fd, OLD, 0777) != 0) return cannot(d, "replace files in", "", errno, diag);
  const int old = openat(d->fd, OLD, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (old < 0) return cannot(d, "replace files in", "", errno, diag);
  if (contains(olds, MANIFEST) && renameat(at, MANIFEST, old, MANIFEST) != 0)
    code = cannot(d, "replace", MANIFEST, errno, diag);
  for (size_t i = 0; i < olds->n && code == PSPLIT_OK; i++)
    if (strcmp(olds->items[i], MANIFEST) != 0 &&
        renameat(at, olds->items[i], old, olds->items[i]) != 0)
      code = cannot(d, "replace", olds->items[i], errno, diag);
  close(old);
  return code;
}

/* To their places, the manifest last. */
static psplit_code move_new(const psplit_i_directory *d, int at, const name_list *names,
                            psplit_diag *diag) {
  for (size_t i = 0; i < names->n; i++)
    if (strcmp(names->items[i], MANIFEST) != 0 &&
        renameat(d->fd, names->items[i], at, names->items[i]) != 0)
      return cannot(d, "write", names->items[i], errno, diag);
  if (renameat(d->fd, MANIFEST, at, MANIFEST) != 0)
    return cannot(d, "write", MANIFEST, errno, diag);
  return PSPLIT_OK;
}

psplit_code psplit_i_directory_check_inside(const psplit_i_directory *d, const psplit_model *model,
                                            const char *first, psplit_diag *diag) {
  char *always[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)MANIFEST};
  const name_list names = {.items = first ? always : always + 1, .n = first ? 2 : 1};
  const int at = open(d->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", d->target, strerror(errno));
  const psplit_code code = check_places(d, at, model, &names, diag);
  close(at);
  return code;
}

psplit_code psplit_i_directory_commit_inside(psplit_i_directory *d, const psplit_model *model,
                                             psplit_diag *diag) {
  psplit_code code;
  name_list names = {0}, olds = {0};
  const int at = open(d->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", d->target, strerror(errno));
  if (!list_names(d->fd, NULL, &names)) PSPLIT_TRY(unlisted(d, diag));
  PSPLIT_TRY(check_places(d, at, model, &names, diag));
  if (!list_old(d, at, model, &names, &olds)) PSPLIT_TRY(unlisted(d, diag));
  PSPLIT_TRY(write_names(d, model, &names, diag));
  if (d->sync && !psplit_i_synced(d->fd)) PSPLIT_TRY(cannot(d, "write", NAMES, errno, diag));
  code = move_old(d, at, &olds, diag);
  if (code == PSPLIT_OK) code = move_new(d, at, &names, diag);
  if (code == PSPLIT_OK && d->sync && !psplit_i_synced(at))
    code = cannot(d, "write", MANIFEST, errno, diag);
  if (code != PSPLIT_OK && !put_back(at, d->fd, &names)) {
    /* Not removed then: the next run tries again. */
    psplit_i_diag_context(diag, "%s holds the replaced files", d->temp);
    free(d->temp);
    d->temp = NULL;
  }
out:
  free_names(&names);
  free_names(&olds);
  close(at);
  return code;
}
