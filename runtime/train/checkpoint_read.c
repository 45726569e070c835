#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "checkpoint_json.h"
#include "checkpoint_place.h"
#include "intern.h"

/* While a reader opens the files, a writer may put another checkpoint into their place. */
enum { MAX_ATTEMPTS = 100, MOST_JSON = 64 << 20 };

typedef struct entry {
  psplit_i_stored stored;
  uint32_t stage;
} entry;

struct psplit_i_checkpoint {
  psplit_i_arena arena;
  char *path; /* as it was given */
  psplit_i_training_json json;
  int *files;         /* [n_stages], -1: not open */
  const char **paths; /* of them, for messages */
  entry *tensors;     /* [n_tensors] */
  size_t n_tensors;
  psplit_i_intern names; /* id: position in `tensors` */
};

void psplit_i_checkpoint_close(psplit_i_checkpoint *c) {
  if (!c) return;
  for (uint32_t s = 0; c->files && s < c->json.state.n_stages; s++)
    if (c->files[s] >= 0) close(c->files[s]);
  free(c->files);
  free(c->tensors);
  free(c->path);
  psplit_i_intern_fini(&c->names);
  psplit_i_arena_fini(&c->arena);
  free(c);
}

/* --- opening --- */

/* A regular file below `fd`. */
static psplit_code open_file(int fd, const char *name, const char *path, psplit_diag *diag,
                             int *out_fd, uint64_t *out_bytes) {
  struct stat status;
  const int file = openat(fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return psplit_i_fail(diag, PSPLIT_IO, "%s: %s", path, strerror(errno));
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return psplit_i_fail(diag, PSPLIT_IO, "%s is not a regular file", path);
  }
  *out_fd = file;
  *out_bytes = (uint64_t)status.st_size;
  return PSPLIT_OK;
}

static psplit_code read_json(psplit_i_checkpoint *c, int fd, const char *directory,
                             psplit_diag *diag) {
  psplit_i_text path = {0};
  char *text = NULL;
  uint64_t bytes;
  int file = -1;
  psplit_code code;
  psplit_i_text_addf(&path, "%s/%s", directory, PSPLIT_I_TRAINING_JSON);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (faccessat(fd, PSPLIT_I_TRAINING_JSON, F_OK, 0) != 0)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "%s is not a checkpoint: it has no %s", directory,
                              PSPLIT_I_TRAINING_JSON));
  PSPLIT_TRY(open_file(fd, PSPLIT_I_TRAINING_JSON, path.bytes, diag, &file, &bytes));
  if (bytes > MOST_JSON)
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_LIMIT, "%s has over %d MiB", path.bytes, MOST_JSON >> 20));
  text = malloc((size_t)bytes + 1);
  if (!text) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_in_read_at(path.bytes, file, 0, text, (size_t)bytes, diag));
  PSPLIT_TRY(
    psplit_i_training_json_parse(path.bytes, text, (size_t)bytes, &c->arena, diag, &c->json));
out:
  if (file >= 0) close(file);
  free(text);
  psplit_i_text_fini(&path);
  return code;
}

static psplit_code read_stage(psplit_i_checkpoint *c, int fd, uint32_t s, psplit_diag *diag,
                              psplit_i_safetensors *out) {
  char name[PSPLIT_I_STAGE_FILE_BYTES];
  uint64_t bytes;
  psplit_i_stage_file(s, name);
  psplit_i_text path = {0};
  psplit_i_text_addf(&path, "%s/%s", c->path, name);
  c->paths[s] = path.failed ? NULL : psplit_i_arena_strndup(&c->arena, path.bytes, path.n);
  psplit_i_text_fini(&path);
  if (!c->paths[s]) return psplit_i_nomem(diag);
  const psplit_code code = open_file(fd, name, c->paths[s], diag, &c->files[s], &bytes);
  if (code != PSPLIT_OK) return code;
  if (bytes != c->json.stage_bytes[s])
    return psplit_i_fail(diag, PSPLIT_MALFORMED,
                         "%s: %s: it has %" PRIu64 " bytes, and %s says %" PRIu64, c->paths[s],
                         bytes < c->json.stage_bytes[s] ? "cut short" : "not the checkpoint's",
                         bytes, PSPLIT_I_TRAINING_JSON, c->json.stage_bytes[s]);
  return psplit_i_safetensors_read(c->paths[s], c->files[s], bytes, &c->arena, diag, out);
}

static psplit_code add_tensors(psplit_i_checkpoint *c, uint32_t s, const psplit_i_safetensors *from,
                               psplit_diag *diag) {
  entry *grown = realloc(c->tensors, (c->n_tensors + from->n + 1) * sizeof *grown);
  if (!grown || !psplit_i_intern_reserve(&c->names, from->n)) {
    if (grown) c->tensors = grown;
    return psplit_i_nomem(diag);
  }
  c->tensors = grown;
  for (size_t i = 0; i < from->n; i++) {
    const uint32_t id = psplit_i_intern_add(&c->names, from->tensors[i].name);
    if (id == PSPLIT_NONE) return psplit_i_nomem(diag);
    if (id != c->n_tensors)
      return psplit_i_fail(diag, PSPLIT_INVALID, "%s: %s is in %s, too", c->paths[s],
                           from->tensors[i].name, c->paths[c->tensors[id].stage]);
    c->tensors[c->n_tensors++] = (entry){.stored = from->tensors[i], .stage = s};
  }
  return PSPLIT_OK;
}

static bool same_type(const psplit_i_trained_weight *weight, const psplit_i_stored *stored) {
  const char *type = psplit_i_element_name(stored->data_type);
  if (!type || !weight->dtype || strcmp(type, weight->dtype) != 0) return false;
  if (weight->shape.rank != (int32_t)stored->n_dims) return false;
  for (uint32_t d = 0; d < stored->n_dims; d++)
    if (weight->shape.dims[d].value != stored->dims[d]) return false;
  return true;
}

static psplit_code check_weights(const psplit_i_checkpoint *c, psplit_diag *diag) {
  for (uint32_t i = 0; i < c->json.n_weights; i++) {
    const psplit_i_trained_weight *weight = &c->json.weights[i];
    const psplit_i_stored *stored = psplit_i_checkpoint_find(c, weight->name);
    if (!stored || !same_type(weight, stored))
      return psplit_i_fail(
        diag, PSPLIT_INVALID, "%s: %s lists %s, which %s", c->path, PSPLIT_I_TRAINING_JSON,
        weight->name,
        stored ? "is of another type or shape in its file" : "is in none of its files");
  }
  return PSPLIT_OK;
}

/* All of it, by the directory `fd`. */
static psplit_code fill(psplit_i_checkpoint *c, int fd, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(read_json(c, fd, c->path, diag));
  const uint32_t n = c->json.state.n_stages;
  c->files = malloc(n * sizeof *c->files);
  for (uint32_t s = 0; c->files && s < n; s++) c->files[s] = -1;
  c->paths = PSPLIT_NEW(&c->arena, const char *, n);
  if (!c->files || !c->paths) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < n; s++) {
    psplit_i_safetensors found;
    PSPLIT_TRY(read_stage(c, fd, s, diag, &found));
    PSPLIT_TRY(add_tensors(c, s, &found, diag));
  }
  code = check_weights(c, diag);
out:
  return code;
}

/* Opens the directory `path`, or where there is none the one that a writer is moving there.
 * *out_again: it was found in neither place, and may have gone from one to the other. */
static psplit_code open_directory(const char *path, psplit_diag *diag, bool *out_again,
                                  int *out_fd) {
  psplit_i_checkpoint_place place = {0};
  char *hidden = NULL;
  int locked;
  *out_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (*out_fd >= 0) return PSPLIT_OK;
  const int reason = errno;
  psplit_code code = PSPLIT_OK;
  if (reason == ENOENT) {
    PSPLIT_TRY(psplit_i_checkpoint_place_init(path, diag, &place));
    PSPLIT_TRY(psplit_i_checkpoint_find_hidden(&place, false, diag, &hidden, &locked));
    if (hidden) *out_fd = open(hidden, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *out_again = *out_fd < 0 && psplit_i_checkpoint_is_about(&place);
  }
  if (*out_fd < 0)
    code = psplit_i_fail(diag, PSPLIT_IO, "%s: no checkpoint can be read there: %s", path,
                         strerror(reason));
out:
  free(hidden);
  psplit_i_checkpoint_place_fini(&place);
  return code;
}

/* Whether another directory has taken the place of the open one. */
static bool is_replaced(const char *path, int fd) {
  struct stat ours, there;
  return fstat(fd, &ours) == 0 && (ours.st_nlink == 0 || stat(path, &there) != 0 ||
                                   ours.st_dev != there.st_dev || ours.st_ino != there.st_ino);
}

static psplit_code try_to_open(const char *path, psplit_diag *diag, bool *out_again,
                               psplit_i_checkpoint **out) {
  int fd = -1;
  *out_again = false;
  psplit_i_checkpoint *c = calloc(1, sizeof *c);
  if (!c) return psplit_i_nomem(diag);
  psplit_i_arena_init(&c->arena, 0);
  psplit_i_intern_init(&c->names);
  psplit_code code;
  c->path = strdup(path);
  if (!c->path) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(open_directory(path, diag, out_again, &fd));
  PSPLIT_TRY(fill(c, fd, diag));
out:
  if (code == PSPLIT_OK) {
    *out = c;
  } else {
    *out_again |= code != PSPLIT_NOMEM && fd >= 0 && is_replaced(path, fd);
    psplit_i_checkpoint_close(c);
  }
  if (fd >= 0) close(fd);
  return code;
}

psplit_code psplit_i_checkpoint_open(const char *path, psplit_diag *diag,
                                     psplit_i_checkpoint **out) {
  psplit_diag found = {0};
  psplit_code code;
  bool again = true;
  for (unsigned attempt = 0; again && attempt < MAX_ATTEMPTS; attempt++) {
    found = (psplit_diag){0};
    code = try_to_open(path, &found, &again, out);
    if (code == PSPLIT_OK) return code;
  }
  return psplit_i_fail_as(diag, &found);
}

/* --- what is in it --- */

const psplit_i_checkpoint_state *psplit_i_checkpoint_state_of(const psplit_i_checkpoint *c) {
  return &c->json.state;
}

const psplit_i_trained_weight *psplit_i_checkpoint_weights(const psplit_i_checkpoint *c,
                                                           uint32_t *out_n) {
  *out_n = c->json.n_weights;
  return c->json.weights;
}

size_t psplit_i_checkpoint_n_tensors(const psplit_i_checkpoint *c) { return c->n_tensors; }

const psplit_i_stored *psplit_i_checkpoint_find(const psplit_i_checkpoint *c, const char *name) {
  const uint32_t id = psplit_i_intern_find(&c->names, name);
  return id == PSPLIT_NONE ? NULL : &c->tensors[id].stored;
}

psplit_code psplit_i_checkpoint_read(const psplit_i_checkpoint *c, const psplit_i_stored *tensor,
                                     psplit_diag *diag, void *out) {
  const entry *of = &c->tensors[psplit_i_intern_find(&c->names, tensor->name)];
  return psplit_i_in_read_at(c->paths[of->stage], c->files[of->stage], of->stored.offset, out,
                             (size_t)of->stored.n_bytes, diag);
}

/* --- held against what is wanted --- */

/* "float32 [3, 4]" */
static void put_type(psplit_i_text *out, const char *dtype, const psplit_i_shape *shape) {
  psplit_i_text_addf(out, "%s [", dtype ? dtype : "of unknown type");
  for (int32_t d = 0; d < shape->rank; d++)
    psplit_i_text_addf(out, "%s%" PRId64, d ? ", " : "", shape->dims[d].value);
  psplit_i_text_puts(out, "]");
}

static psplit_code other_weight(const char *path, const psplit_i_trained_weight *theirs,
                                const psplit_i_trained_weight *ours, psplit_diag *diag) {
  psplit_i_text there = {0}, here = {0};
  put_type(&there, theirs->dtype, &theirs->shape);
  put_type(&here, ours->dtype, &ours->shape);
  const psplit_code code =
    there.failed || here.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail(diag, PSPLIT_MISMATCH,
                      "%s is a checkpoint of another model: %s is %s there, and %s here", path,
                      ours->name, there.bytes, here.bytes);
  psplit_i_text_fini(&there);
  psplit_i_text_fini(&here);
  return code;
}

static bool same_shape(const psplit_i_shape *a, const psplit_i_shape *b) {
  if (a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->dims[d].value != b->dims[d].value) return false;
  return true;
}

static psplit_code fit_weights(const psplit_i_checkpoint *c, const psplit_i_intern *theirs,
                               const psplit_i_trained_weight *weights, uint32_t n_weights,
                               psplit_diag *diag) {
  for (uint32_t i = 0; i < n_weights; i++) {
    const uint32_t id = psplit_i_intern_find(theirs, weights[i].name);
    if (id == PSPLIT_NONE)
      return psplit_i_fail(
        diag, PSPLIT_MISMATCH,
        "%s is a checkpoint of another model, or of other trained weights: it has "
        "no weight %s",
        c->path, weights[i].name);
    const psplit_i_trained_weight *other = &c->json.weights[id];
    const char *type = weights[i].dtype ? weights[i].dtype : "";
    if (strcmp(other->dtype, type) != 0 || !same_shape(&other->shape, &weights[i].shape))
      return other_weight(c->path, other, &weights[i], diag);
  }
  return PSPLIT_OK;
}

/* A weight of the checkpoint that is none of `weights`: there are more of its own. */
static psplit_code fit_other_way(const psplit_i_checkpoint *c,
                                 const psplit_i_trained_weight *weights, uint32_t n_weights,
                                 psplit_diag *diag) {
  psplit_i_intern ours;
  psplit_code code = PSPLIT_OK;
  psplit_i_intern_init(&ours);
  for (uint32_t i = 0; i < n_weights && code == PSPLIT_OK; i++)
    if (psplit_i_intern_add(&ours, weights[i].name) == PSPLIT_NONE) code = psplit_i_nomem(diag);
  for (uint32_t i = 0; i < c->json.n_weights && code == PSPLIT_OK; i++)
    if (psplit_i_intern_find(&ours, c->json.weights[i].name) == PSPLIT_NONE)
      code = psplit_i_fail(diag, PSPLIT_MISMATCH,
                           "%s is a checkpoint of other trained weights: %s is not trained here",
                           c->path, c->json.weights[i].name);
  psplit_i_intern_fini(&ours);
  return code;
}

psplit_code psplit_i_checkpoint_fits(const psplit_i_checkpoint *c,
                                     const psplit_i_trained_weight *weights, uint32_t n_weights,
                                     const char *optimizer, psplit_diag *diag) {
  psplit_i_intern theirs;
  psplit_code code = PSPLIT_OK;
  psplit_i_intern_init(&theirs);
  for (uint32_t i = 0; i < c->json.n_weights; i++)
    if (psplit_i_intern_add(&theirs, c->json.weights[i].name) == PSPLIT_NONE)
      PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(fit_weights(c, &theirs, weights, n_weights, diag));
  PSPLIT_TRY(fit_other_way(c, weights, n_weights, diag));
  if (!optimizer) goto out;
  if (!c->json.state.optimizer)
    code = psplit_i_fail(
      diag, PSPLIT_MISMATCH,
      "%s holds only weights, not the state of optimizer \"%s\"; start a new run from its weights",
      c->path, optimizer);
  else if (strcmp(c->json.state.optimizer, optimizer) != 0)
    code =
      psplit_i_fail(diag, PSPLIT_MISMATCH,
                    "%s is of the optimizer \"%s\", and these stages update with \"%s\"; split "
                    "with that one, or start from its weights",
                    c->path, c->json.state.optimizer, optimizer);
out:
  psplit_i_intern_fini(&theirs);
  return code;
}

psplit_code psplit_i_checkpoint_load(const psplit_i_checkpoint *c, const char *name,
                                     int32_t data_type, const int64_t *dims, uint32_t n_dims,
                                     psplit_diag *diag, void *out) {
  const psplit_i_stored *stored = psplit_i_checkpoint_find(c, name);
  if (!stored) return psplit_i_fail(diag, PSPLIT_MISMATCH, "%s has no tensor %s", c->path, name);
  bool same = stored->data_type == data_type && stored->n_dims == n_dims;
  for (uint32_t d = 0; same && d < n_dims; d++) same = stored->dims[d] == dims[d];
  if (!same)
    return psplit_i_fail(diag, PSPLIT_MISMATCH, "%s: %s is of another type or shape than here",
                         c->path, name);
  return psplit_i_checkpoint_read(c, stored, diag, out);
}
