#include "checkpoint_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hidden_directory.h"

/* --- names --- */

psplit_code psplit_i_checkpoint_place_init(const char *path, psplit_diag *diag,
                                           psplit_i_checkpoint_place *out) {
  psplit_i_checkpoint_place place = {0};
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  place.target = strndup(path, n);
  if (!place.target) return psplit_i_nomem(diag);
  const char *slash = strrchr(place.target, '/');
  place.name = slash ? slash + 1 : place.target;
  if (!*place.name || strcmp(place.name, ".") == 0 || strcmp(place.name, "..") == 0) {
    free(place.target);
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "\"%s\": a checkpoint needs a directory of its own; give its name", path);
  }
  place.parent = !slash                  ? strdup(".")
                 : slash == place.target ? strdup("/")
                                         : strndup(place.target, (size_t)(slash - place.target));
  if (!place.parent) {
    psplit_i_checkpoint_place_fini(&place);
    return psplit_i_nomem(diag);
  }
  *out = place;
  return PSPLIT_OK;
}

void psplit_i_checkpoint_place_fini(psplit_i_checkpoint_place *place) {
  free(place->target);
  free(place->parent);
  *place = (psplit_i_checkpoint_place){0};
}

void psplit_i_stage_file(uint32_t stage, char out[PSPLIT_I_STAGE_FILE_BYTES]) {
  snprintf(out, PSPLIT_I_STAGE_FILE_BYTES, "stage%" PRIu32 ".safetensors", stage);
}

static bool is_final_name(const char *name, size_t n) {
  enum { WORD = 5 };
  if (n == strlen(PSPLIT_I_TRAINING_JSON) && memcmp(name, PSPLIT_I_TRAINING_JSON, n) == 0)
    return true;
  if (n <= WORD || memcmp(name, "stage", WORD) != 0) return false;
  const size_t digits = strspn(name + WORD, "0123456789");
  return digits && n == WORD + digits + strlen(".safetensors") &&
         memcmp(name + WORD + digits, ".safetensors", n - WORD - digits) == 0;
}

bool psplit_i_is_checkpoint_file(const char *name) {
  static const char hidden[] = ".psplit-";
  if (*name != '.') return is_final_name(name, strlen(name));
  const char *end = strstr(name, hidden); /* of a file that was being written: base/out_file.h */
  return end && is_final_name(name + 1, (size_t)(end - name - 1)) &&
         end[strlen(hidden) + strspn(end + strlen(hidden), "0123456789abcdef")] == '\0';
}

/* --- removing --- */

void psplit_i_checkpoint_remove(int fd, const char *path) {
  const int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = again < 0 ? NULL : fdopendir(again);
  if (!entries) {
    if (again >= 0) close(again);
    return;
  }
  /* Without this file, what is left is not taken for a checkpoint. */
  unlinkat(fd, PSPLIT_I_TRAINING_JSON, 0);
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
    if (psplit_i_is_checkpoint_file(entry->d_name)) unlinkat(fd, entry->d_name, 0);
  closedir(entries);
  rmdir(path);
}

/* --- what is hidden --- */

/* Whether what could not be opened may be there all the same: the system or the process lacks
 * something. */
static bool lacks_something(int error) {
  return error == ENOMEM || error == EMFILE || error == ENFILE;
}

static psplit_code lacks(psplit_diag *diag, const char *path) {
  if (errno == ENOMEM) return psplit_i_nomem(diag);
  return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be opened: %s", path, strerror(errno));
}

/* The step in the training.json below `fd`, an open directory's descriptor; *out_found is false
 * where there is none, or it is cut short. Errors: NOMEM. */
static psplit_code step_in(int fd, psplit_diag *diag, bool *out_found, uint64_t *out_step) {
  enum { MOST_BYTES = 64 << 20 };
  psplit_i_json_reader reader = {0};
  struct stat status;
  *out_found = false;
  const int file =
    openat(fd, PSPLIT_I_TRAINING_JSON, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return lacks_something(errno) ? lacks(diag, PSPLIT_I_TRAINING_JSON) : PSPLIT_OK;
  const bool fits = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
                    status.st_size <= MOST_BYTES;
  char *text = fits ? malloc((size_t)status.st_size) : NULL;
  const bool whole =
    text && psplit_i_in_read_at("", file, 0, text, (size_t)status.st_size, NULL) == PSPLIT_OK;
  close(file);
  if (fits && !text) return psplit_i_nomem(diag);
  if (whole) {
    psplit_i_json_item root = psplit_i_json_load(&reader, text, (size_t)status.st_size);
    psplit_i_json_u64(psplit_i_json_need(&root, "step"), out_step);
    psplit_i_json_release(&root);
    *out_found = reader.code == PSPLIT_OK;
  }
  free(text);
  return reader.code == PSPLIT_NOMEM ? psplit_i_nomem(diag) : PSPLIT_OK;
}

/* Goes through the hidden directories of a place: the path of each and a descriptor, -1 at the end
 * or, with errno, where something lacks. */
static int next_hidden(const psplit_i_checkpoint_place *place, DIR *entries, psplit_i_text *path) {
  for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (!psplit_i_hidden_is(entry->d_name, place->name)) continue;
    const int fd =
      openat(dirfd(entries), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && lacks_something(errno)) return -1;
    if (fd < 0) continue;
    psplit_i_text_fini(path);
    psplit_i_text_addf(path, "%s/%s", strcmp(place->parent, "/") == 0 ? "" : place->parent,
                       entry->d_name);
    return fd;
  }
  errno = 0;
  return -1;
}

psplit_code psplit_i_checkpoint_find_hidden(const psplit_i_checkpoint_place *place, bool idle,
                                            psplit_diag *diag, char **out_path, int *out_fd) {
  psplit_i_text path = {0};
  char *best = NULL;
  int best_fd = -1, fd;
  uint64_t best_step = 0;
  psplit_code code = PSPLIT_OK;
  DIR *entries = opendir(place->parent);
  if (!entries && lacks_something(errno)) return lacks(diag, place->parent);
  while (entries && code == PSPLIT_OK) {
    uint64_t step = 0;
    bool found = false;
    fd = next_hidden(place, entries, &path);
    if (fd < 0 && errno) code = lacks(diag, place->parent);
    if (fd < 0) break;
    if (path.failed) code = psplit_i_nomem(diag);
    if (code == PSPLIT_OK && (!idle || flock(fd, LOCK_EX | LOCK_NB) == 0))
      code = step_in(fd, diag, &found, &step);
    if (code != PSPLIT_OK || !found || (best && step <= best_step)) {
      close(fd);
      continue;
    }
    if (best_fd >= 0) close(best_fd);
    free(best);
    best = path.bytes;
    best_fd = fd;
    best_step = step;
    path = (psplit_i_text){0};
  }
  if (entries) closedir(entries);
  psplit_i_text_fini(&path);
  if (!idle || code != PSPLIT_OK) {
    if (best_fd >= 0) close(best_fd);
    best_fd = -1;
  }
  if (code != PSPLIT_OK) {
    free(best);
    best = NULL;
  }
  *out_fd = best_fd;
  *out_path = best;
  return code;
}

bool psplit_i_checkpoint_is_about(const psplit_i_checkpoint_place *place) {
  if (access(place->target, F_OK) == 0) return true;
  DIR *entries = opendir(place->parent);
  psplit_i_text path = {0};
  const int fd = entries ? next_hidden(place, entries, &path) : -1;
  if (fd >= 0) close(fd);
  if (entries) closedir(entries);
  psplit_i_text_fini(&path);
  return fd >= 0;
}

void psplit_i_checkpoint_remove_stale(const psplit_i_checkpoint_place *place) {
  DIR *entries = opendir(place->parent);
  psplit_i_text path = {0};
  for (int fd; entries && (fd = next_hidden(place, entries, &path)) >= 0; close(fd))
    if (!path.failed && flock(fd, LOCK_EX | LOCK_NB) == 0)
      psplit_i_checkpoint_remove(fd, path.bytes);
  if (entries) closedir(entries);
  psplit_i_text_fini(&path);
}
