/* --weights reference: stages that point into the model's own files. Runtimes take external data
 * only at or below a model's directory, so the stages have to stand in a directory that holds the
 * model, among its files. They are made in a hidden directory there and then moved out one by one;
 * pipeline.json comes last and says that they are complete. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emit.h"

static const char MANIFEST[] = "pipeline.json";

static psplit_code not_below(const char *directory, const char *file, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "--weights reference: runtimes read weights only at or below the directory "
                       "of a stage, and %s is not in %s; give a directory that holds the model, or "
                       "--weights external",
                       file, directory);
}

/* Path of `file`, both real, from below `directory`; NULL where it is not there. */
static const char *path_below(const char *directory, const char *file) {
  const size_t n = strcmp(directory, "/") == 0 ? 0 : strlen(directory);
  return strncmp(file, directory, n) == 0 && file[n] == '/' ? file + n + 1 : NULL;
}

static char *data_path(const psplit_model *model, size_t f) {
  const char *slash = strrchr(model->path, '/');
  psplit_text path = {0};
  if (f && slash) psplit_i_text_addf(&path, "%.*s/", (int)(slash - model->path), model->path);
  psplit_i_text_puts(&path, f ? model->files.items[f].location : model->path);
  char *real = path.failed ? NULL : realpath(path.bytes, NULL);
  psplit_i_text_fini(&path);
  return real;
}

psplit_code psplit_i_reference_locations(const psplit_model *model, const char *directory,
                                         psplit_arena *arena, psplit_diag *diag,
                                         const char *const **out) {
  psplit_code code = PSPLIT_OK;
  const char **locations = PSPLIT_NEW(arena, const char *, model->files.n);
  if (!locations) return psplit_i_nomem(diag);
  char *real = realpath(directory, NULL);
  if (!real) return not_below(directory, model->path, diag);
  for (size_t f = 0; f < model->files.n && code == PSPLIT_OK; f++) {
    char *file = data_path(model, f);
    const char *below = file ? path_below(real, file) : NULL;
    if (below) locations[f] = psplit_i_arena_strndup(arena, below, strlen(below));
    if (!below)
      code = not_below(directory, f ? model->files.items[f].location : model->path, diag);
    else if (!locations[f])
      code = psplit_i_nomem(diag);
    free(file);
  }
  free(real);
  *out = locations;
  return code;
}

/* --- moving out --- */

typedef PSPLIT_VEC(char *) name_list;

static void free_names(name_list *names) {
  for (size_t i = 0; i < names->n; i++) free(names->items[i]);
  psplit_i_vec_fini(names);
}

static bool is_stage_name(const char *name) {
  if (strncmp(name, "stage", 5) != 0) return false;
  const size_t digits = strspn(name + 5, "0123456789");
  const char *end = name + 5 + digits;
  return digits && (strcmp(end, ".onnx") == 0 || strcmp(end, ".onnx.data") == 0);
}

static bool list_names(int dir_fd, bool only_stages, name_list *out) {
  const int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) {
    if (fd >= 0) close(fd);
    return false;
  }
  bool ok = true;
  for (const struct dirent *entry; ok && (entry = readdir(entries)) != NULL;) {
    if (entry->d_name[0] == '.' || (only_stages && !is_stage_name(entry->d_name))) continue;
    char *name = strdup(entry->d_name);
    ok = name && psplit_i_vec_push(out, name);
    if (!ok) free(name);
  }
  closedir(entries);
  return ok;
}

static bool is_input(const psplit_model *model, const struct stat *status) {
  for (size_t f = 0; f < model->files.n; f++)
    if (model->files.items[f].device == (uint64_t)status->st_dev &&
        model->files.items[f].inode == (uint64_t)status->st_ino)
      return true;
  return false;
}

/* What stands where a file has to go: nothing, or with `replace` a file that is no input. */
static psplit_code check_places(const psplit_i_directory *d, int at, const psplit_model *model,
                                const name_list *names, psplit_diag *diag) {
  for (size_t i = 0; i < names->n; i++) {
    struct stat status;
    if (fstatat(at, names->items[i], &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (is_input(model, &status))
      return psplit_i_fail(diag, PSPLIT_IO, "%s/%s is the model's own file; rename it", d->target,
                           names->items[i]);
    if (!d->replace || !S_ISREG(status.st_mode))
      return psplit_i_fail(
        diag, PSPLIT_IO, "%s/%s exists%s", d->target, names->items[i],
        S_ISREG(status.st_mode) ? "; --force replaces it" : " and is not a regular file");
  }
  return PSPLIT_OK;
}

static bool contains(const name_list *names, const char *name) {
  for (size_t i = 0; i < names->n; i++)
    if (strcmp(names->items[i], name) == 0) return true;
  return false;
}

/* Stages of the split that is being replaced, beyond the number of the new ones. */
static void remove_leftovers(int at, const psplit_model *model, const name_list *names) {
  name_list there = {0};
  if (list_names(at, true, &there))
    for (size_t i = 0; i < there.n; i++) {
      struct stat status;
      if (!contains(names, there.items[i]) &&
          fstatat(at, there.items[i], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISREG(status.st_mode) && !is_input(model, &status))
        unlinkat(at, there.items[i], 0);
    }
  free_names(&there);
}

/* All but the manifest, then the manifest; what was moved is taken back when one fails. */
static psplit_code move_out(const psplit_i_directory *d, int at, const name_list *names,
                            psplit_diag *diag) {
  for (size_t i = 0; i <= names->n; i++) {
    const char *name = i < names->n ? names->items[i] : MANIFEST;
    if (i < names->n && strcmp(name, MANIFEST) == 0) continue;
    if (renameat(d->fd, name, at, name) == 0) continue;
    const int reason = errno;
    for (size_t k = 0; k < i && k < names->n; k++) unlinkat(at, names->items[k], 0);
    return psplit_i_fail(diag, PSPLIT_IO, "cannot write %s/%s: %s", d->target, name,
                         strerror(reason));
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_directory_commit_inside(psplit_i_directory *d, const psplit_model *model,
                                             psplit_diag *diag) {
  psplit_code code;
  name_list names = {0};
  bool replaces = false;
  const int at = open(d->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", d->target, strerror(errno));
  if (!list_names(d->fd, false, &names)) PSPLIT_TRY(psplit_i_nomem(diag));
  PSPLIT_TRY(check_places(d, at, model, &names, diag));
  replaces = unlinkat(at, MANIFEST, 0) == 0;
  PSPLIT_TRY(move_out(d, at, &names, diag));
  if (replaces) remove_leftovers(at, model, &names);
out:
  free_names(&names);
  close(at);
  return code;
}
