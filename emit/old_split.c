/* An existing split at the destination. Files that are not known to belong to a split are never
 * replaced: the directory may have been named by mistake. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"

static const char MANIFEST[] = "pipeline.json";

/* What is replaced has been written by us: only a wild size is refused. */
static const uint64_t MOST_BYTES = UINT64_C(1) << 30;

psplit_code psplit_i_old_split_open(const char *directory, psplit_diag *diag,
                                    psplit_i_old_split *out) {
  psplit_diag why = {0};
  struct stat status;
  psplit_i_old_split old = {.fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  *out = (psplit_i_old_split){.fd = -1};
  if (old.fd < 0) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", directory, strerror(errno));
  psplit_i_arena_init(&old.arena, 0);
  if (fstatat(old.fd, MANIFEST, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode)) {
    const psplit_code code =
      psplit_i_manifest_read(directory, MOST_BYTES, &old.arena, &why, &old.manifest);
    if (code == PSPLIT_NOMEM) {
      psplit_i_old_split_close(&old);
      return psplit_i_nomem(diag);
    }
    old.found = code == PSPLIT_OK;
    if (!old.found) snprintf(old.why, sizeof old.why, "%.255s", why.message);
  }
  *out = old;
  return PSPLIT_OK;
}

void psplit_i_old_split_close(psplit_i_old_split *old) {
  if (old->fd >= 0) close(old->fd);
  psplit_i_arena_fini(&old->arena);
  *old = (psplit_i_old_split){.fd = -1};
}

/* Models that the manifest names: those of stages, and what is beside them for training. */
static uint32_t n_models(const psplit_i_manifest *manifest) {
  return manifest->n_stages + manifest->n_training_files;
}

static const char *model_name(const psplit_i_manifest *manifest, uint32_t index) {
  return index < manifest->n_stages ? manifest->stages[index].file
                                    : manifest->training_files[index - manifest->n_stages];
}

bool psplit_i_old_split_wrote(const psplit_i_old_split *old, const char *name) {
  if (!old->found) return false;
  if (strcmp(name, MANIFEST) == 0) return true;
  for (uint32_t i = 0; i < old->manifest.n_files; i++)
    if (strcmp(name, old->manifest.files[i]) == 0) return true;
  for (uint32_t i = 0; i < n_models(&old->manifest); i++) {
    const char *file = model_name(&old->manifest, i);
    const size_t n = strlen(file);
    if (strncmp(name, file, n) == 0 && (!name[n] || strcmp(name + n, ".data") == 0)) return true;
  }
  return false;
}

/* The first entry, in the order of strcmp, that is not of the split; NULL: there is none. */
static char *first_foreign(const psplit_i_old_split *old, int fd, int *out_reason) {
  const int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = again < 0 ? NULL : fdopendir(again);
  char *first = NULL;
  *out_reason = entries ? 0 : errno;
  if (!entries && again >= 0) close(again);
  while (entries && !*out_reason) {
    errno = 0;
    const struct dirent *entry = readdir(entries);
    struct stat status;
    if (!entry) *out_reason = errno;
    if (!entry) break;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (psplit_i_old_split_wrote(old, entry->d_name) &&
        fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
      continue;
    if (first && strcmp(first, entry->d_name) < 0) continue;
    free(first);
    first = strdup(entry->d_name);
    if (!first) *out_reason = ENOMEM;
  }
  if (entries) closedir(entries);
  if (*out_reason) {
    free(first);
    first = NULL;
  }
  return first;
}

psplit_code psplit_i_old_split_alone(const psplit_i_old_split *old, int fd, const char *directory,
                                     psplit_diag *diag) {
  int reason;
  char *name = first_foreign(old, fd, &reason);
  if (reason == ENOMEM) return psplit_i_nomem(diag);
  if (reason) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", directory, strerror(reason));
  if (!name) return PSPLIT_OK;
  const bool unread = !old->found && old->why[0];
  const char *none = old->found ? "" : " (there is no pipeline.json)";
  const psplit_code code =
    psplit_i_fail(diag, PSPLIT_IO,
                  "%s holds %s, which does not belong to the split there%s%s%s, and is not "
                  "replaced; move it, or give "
                  "another output directory",
                  directory, name, unread ? " (this version cannot read its pipeline.json: " : none,
                  old->why, unread ? ")" : "");
  free(name);
  return code;
}

bool psplit_i_old_split_status(const psplit_i_old_split *old, const char *name, struct stat *out) {
  return old->fd >= 0 &&
         ((fstatat(old->fd, name, out, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(out->st_mode)) ||
          (fstatat(old->fd, MANIFEST, out, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(out->st_mode)));
}

void psplit_i_old_split_remove(const psplit_i_old_split *old, int fd) {
  psplit_i_text data = {0};
  unlinkat(fd, MANIFEST, 0);
  for (uint32_t i = 0; i < n_models(&old->manifest); i++) {
    const char *file = model_name(&old->manifest, i);
    unlinkat(fd, file, 0);
    data.n = 0;
    psplit_i_text_addf(&data, "%s.data", file);
    if (!data.failed) unlinkat(fd, data.bytes, 0);
  }
  psplit_i_text_fini(&data);
}

static psplit_split_place place_in(const psplit_i_old_split *old, const char *directory,
                                   const char *name, psplit_diag *why) {
  if (!old->found) return PSPLIT_PLACE_FREE;
  if (psplit_i_old_split_wrote(old, name)) return PSPLIT_PLACE_OWN;
  return psplit_i_old_split_alone(old, old->fd, directory, why) == PSPLIT_OK ? PSPLIT_PLACE_FOREIGN
                                                                             : PSPLIT_PLACE_FREE;
}

psplit_code psplit_emit_place(const char *path, psplit_diag *diag, psplit_split_place *out_place) {
  psplit_i_old_split old;
  psplit_diag why = {0};
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  char *whole = strndup(path, n); /* without slashes at its end */
  if (!whole) return psplit_i_nomem(diag);
  char *slash = strrchr(whole, '/');
  const char *name = slash ? slash + 1 : whole;
  const char *directory = !slash ? "." : slash == whole ? "/" : whole;
  if (slash) *slash = '\0';
  *out_place = PSPLIT_PLACE_FREE;
  if (psplit_i_old_split_open(directory, &why, &old) == PSPLIT_OK) {
    *out_place = place_in(&old, directory, name, &why);
    psplit_i_old_split_close(&old);
  }
  free(whole);
  return why.code == PSPLIT_NOMEM ? psplit_i_nomem(diag) : PSPLIT_OK;
}
