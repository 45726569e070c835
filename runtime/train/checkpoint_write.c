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

#include "checkpoint.h"
#include "checkpoint_json.h"
#include "checkpoint_place.h"
#include "hidden_directory.h"
#include "out_file.h"

/* --- beginning --- */

/* What is there now has to be a checkpoint, or nothing at all, and nothing besides. */
static psplit_code check_old(const char *target, int fd, psplit_diag *diag) {
  const int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *entries = again < 0 ? NULL : fdopendir(again);
  psplit_code code = PSPLIT_OK;
  if (!entries) {
    if (again >= 0) close(again);
    return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", target, strerror(errno));
  }
  for (const struct dirent *entry; code == PSPLIT_OK && (entry = readdir(entries)) != NULL;) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || psplit_i_is_checkpoint_file(name))
      continue;
    code =
      psplit_i_fail(diag, PSPLIT_IO,
                    "%s holds %s, which is not part of a checkpoint, and is not replaced; give "
                    "another directory",
                    target, name);
  }
  closedir(entries);
  return code;
}

/* Opens what is to be replaced; *out_fd is -1 where there is nothing. */
static psplit_code open_old(const char *target, psplit_diag *diag, int *out_fd) {
  struct stat status;
  *out_fd = -1;
  if (lstat(target, &status) != 0)
    return errno == ENOENT ? PSPLIT_OK
                           : psplit_i_fail(diag, PSPLIT_IO, "%s: %s", target, strerror(errno));
  if (!S_ISDIR(status.st_mode))
    return psplit_i_fail(diag, PSPLIT_IO, "%s exists and is not a directory", target);
  const int fd = open(target, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0) {
    const int reason = errno;
    if (fd >= 0) close(fd);
    return psplit_i_fail(diag, PSPLIT_IO, "%s cannot be replaced: %s", target, strerror(reason));
  }
  const psplit_code code = check_old(target, fd, diag);
  if (code == PSPLIT_OK)
    *out_fd = fd;
  else
    close(fd);
  return code;
}

/* A writer that was killed between two renames has left nothing in the place: what is whole goes
 * there. */
static psplit_code recover(const psplit_i_checkpoint_place *place, psplit_diag *diag) {
  char *found;
  int fd;
  if (access(place->target, F_OK) == 0) return PSPLIT_OK;
  const psplit_code code = psplit_i_checkpoint_find_hidden(place, true, diag, &found, &fd);
  if (found) psplit_i_rename_new(AT_FDCWD, found, place->target);
  if (fd >= 0) close(fd);
  free(found);
  return code;
}

psplit_code psplit_i_checkpoint_begin(const char *path, psplit_diag *diag,
                                      psplit_i_checkpoint_writer *out) {
  psplit_i_checkpoint_writer writer = PSPLIT_I_CHECKPOINT_WRITER_NONE;
  psplit_i_checkpoint_place place = {0};
  psplit_code code;
  PSPLIT_TRY(psplit_i_checkpoint_place_init(path, diag, &place));
  PSPLIT_TRY(recover(&place, diag));
  PSPLIT_TRY(open_old(place.target, diag, &writer.old_fd));
  psplit_i_checkpoint_remove_stale(&place);
  /* Of what is replaced not everybody may be allowed to see the files. */
  PSPLIT_TRY(psplit_i_hidden_make(place.parent, place.name, writer.old_fd < 0 ? 0777 : 0700, diag,
                                  &writer.path, &writer.fd));
  writer.target = place.target;
  writer.parent = place.parent;
  place.target = place.parent = NULL;
out:
  psplit_i_checkpoint_place_fini(&place);
  if (code != PSPLIT_OK) psplit_i_checkpoint_abort(&writer);
  *out = writer;
  return code;
}

psplit_code psplit_i_checkpoint_probe(const char *path, psplit_diag *diag) {
  psplit_i_checkpoint_writer writer;
  const psplit_code code = psplit_i_checkpoint_begin(path, diag, &writer);
  psplit_i_checkpoint_abort(&writer);
  return code;
}

void psplit_i_checkpoint_abort(psplit_i_checkpoint_writer *writer) {
  if (writer->path && writer->fd >= 0) psplit_i_checkpoint_remove(writer->fd, writer->path);
  if (writer->fd >= 0) close(writer->fd);
  if (writer->old_fd >= 0) close(writer->old_fd);
  free(writer->target);
  free(writer->parent);
  free(writer->path);
  *writer = (psplit_i_checkpoint_writer)PSPLIT_I_CHECKPOINT_WRITER_NONE;
}

/* --- files --- */

static psplit_code write_file(const char *path, const psplit_i_text *head,
                              const psplit_i_checkpoint_tensor *tensors, size_t n,
                              psplit_diag *diag) {
  const psplit_i_out_options options = {.keep = true};
  psplit_i_out_file file;
  psplit_code code = psplit_i_out_begin(path, &options, diag, &file);
  if (code != PSPLIT_OK) return code;
  PSPLIT_TRY(psplit_i_out_write(&file, head->bytes, head->n, diag));
  for (size_t i = 0; i < n; i++)
    PSPLIT_TRY(psplit_i_out_write(&file, tensors[i].data, (size_t)tensors[i].as.n_bytes, diag));
  PSPLIT_TRY(psplit_i_out_commit(&file, diag));
out:
  psplit_i_out_abandon(&file);
  return code;
}

psplit_code psplit_i_checkpoint_write_stage(const char *hidden, uint32_t stage,
                                            const psplit_i_checkpoint_tensor *tensors, size_t n,
                                            psplit_diag *diag, uint64_t *out_bytes) {
  char name[PSPLIT_I_STAGE_FILE_BYTES];
  psplit_i_text path = {0}, head = {0};
  struct stat status;
  psplit_code code;
  if (stat(hidden, &status) != 0)
    return psplit_i_fail(diag, PSPLIT_IO,
                         "%s: %s; stages on other machines need a directory for checkpoints that "
                         "all of them see",
                         hidden, strerror(errno));
  psplit_i_stage_file(stage, name);
  psplit_i_text_addf(&path, "%s/%s", hidden, name);
  psplit_i_stored *stored = calloc(n + 1, sizeof *stored);
  if (path.failed || !stored) PSPLIT_FAIL(psplit_i_nomem(diag));
  uint64_t bytes = 0;
  for (size_t i = 0; i < n; i++) {
    stored[i] = tensors[i].as;
    bytes += stored[i].n_bytes;
  }
  PSPLIT_TRY(psplit_i_safetensors_format(stored, n, diag, &head));
  PSPLIT_TRY(write_file(path.bytes, &head, tensors, n, diag));
  *out_bytes = bytes + head.n;
out:
  free(stored);
  psplit_i_text_fini(&path);
  psplit_i_text_fini(&head);
  return code;
}

/* --- committing --- */

static psplit_code check_files(const psplit_i_checkpoint_writer *writer, uint32_t n_stages,
                               const uint64_t *stage_bytes, psplit_diag *diag) {
  for (uint32_t s = 0; s < n_stages; s++) {
    char name[PSPLIT_I_STAGE_FILE_BYTES];
    struct stat status;
    psplit_i_stage_file(s, name);
    if (fstatat(writer->fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "%s/%s: %s", writer->path, name, strerror(errno));
    if ((uint64_t)status.st_size != stage_bytes[s])
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "%s/%s has %lld bytes, not %" PRIu64,
                           writer->path, name, (long long)status.st_size, stage_bytes[s]);
  }
  return PSPLIT_OK;
}

static psplit_code cannot_replace(const psplit_i_checkpoint_writer *writer, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_IO, "cannot replace %s: %s", writer->target, strerror(errno));
}

/* Where entries cannot be exchanged: for a moment both are hidden, where readers look for them. */
static psplit_code replace_in_steps(psplit_i_checkpoint_writer *writer, psplit_diag *diag) {
  psplit_i_text aside = {0};
  psplit_i_text_addf(&aside, "%s9", writer->path);
  if (aside.failed) {
    psplit_i_text_fini(&aside);
    return psplit_i_nomem(diag);
  }
  psplit_code code = PSPLIT_OK;
  if (rename(writer->target, aside.bytes) != 0)
    code = cannot_replace(writer, diag);
  else if (rename(writer->path, writer->target) != 0) {
    code = cannot_replace(writer, diag);
    psplit_i_rename_new(AT_FDCWD, aside.bytes, writer->target);
  } else {
    free(writer->path);
    writer->path = aside.bytes; /* the old one is now what is removed */
    return PSPLIT_OK;
  }
  psplit_i_text_fini(&aside);
  return code;
}

static psplit_code put_in_place(psplit_i_checkpoint_writer *writer, psplit_diag *diag) {
  struct stat old, here;
  if (writer->old_fd < 0) {
    if (!psplit_i_rename_new(AT_FDCWD, writer->path, writer->target))
      return psplit_i_fail(diag, PSPLIT_IO, "cannot rename to %s: %s", writer->target,
                           strerror(errno));
    free(writer->path);
    writer->path = NULL;
    return PSPLIT_OK;
  }
  if (fstat(writer->old_fd, &old) != 0 || !psplit_i_take_over(writer->fd, &old))
    return cannot_replace(writer, diag);
  if (lstat(writer->target, &here) != 0 || here.st_dev != old.st_dev || here.st_ino != old.st_ino)
    return psplit_i_fail(diag, PSPLIT_IO, "%s was replaced meanwhile; try again", writer->target);
  const psplit_code code = check_old(writer->target, writer->old_fd, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_exchange(writer->path, writer->target) ? PSPLIT_OK
                                                         : replace_in_steps(writer, diag);
}

psplit_code psplit_i_checkpoint_commit(psplit_i_checkpoint_writer *writer,
                                       const psplit_i_checkpoint_state *state,
                                       const psplit_i_trained_weight *weights, uint32_t n_weights,
                                       const uint64_t *stage_bytes, psplit_diag *diag) {
  psplit_i_text text = {0}, path = {0};
  psplit_code code;
  PSPLIT_TRY(check_files(writer, state->n_stages, stage_bytes, diag));
  PSPLIT_TRY(psplit_i_training_json_write(state, weights, n_weights, stage_bytes, diag, &text));
  psplit_i_text_addf(&path, "%s/%s", writer->path, PSPLIT_I_TRAINING_JSON);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_out_put(path.bytes, NULL, text.bytes, text.n, diag));
  if (!psplit_i_synced(writer->fd)) PSPLIT_FAIL(cannot_replace(writer, diag));
  PSPLIT_TRY(put_in_place(writer, diag));
  /* The new one is in its place; `path`, if any, is the old one, whose files go once the disk has
   * the new name. */
  const int parent = open(writer->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool kept = parent >= 0 ? psplit_i_synced(parent) : errno == EACCES;
  if (!kept) code = psplit_i_fail(diag, PSPLIT_IO, "%s: %s", writer->parent, strerror(errno));
  if (parent >= 0) close(parent);
  if (writer->path && kept) psplit_i_checkpoint_remove(writer->old_fd, writer->path);
  free(writer->path);
  writer->path = NULL;
out:
  psplit_i_text_fini(&text);
  psplit_i_text_fini(&path);
  psplit_i_checkpoint_abort(writer);
  return code;
}
