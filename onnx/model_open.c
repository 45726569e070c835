#include "fields.h"
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "activity.h"
#include "kinds.h"
#include "unpack.h"

/* The default limit on the structure's memory follows the file, since a graph of ordinary nodes
 * is estimated at seven to twenty times its bytes, a file of empty messages at a hundred and
 * fifty times. */
static const uint64_t LEAST_GRAPH_BYTES = UINT64_C(256) << 20, MOST_GRAPH_BYTES = UINT64_C(2) << 30;
static const uint64_t GRAPH_BYTES_PER_FILE_BYTE = 32;
enum { NEWEST_IR_VERSION = 14 };

/* The model file, files[0], whose descriptor is there. */
static psplit_code look_at_file(psplit_model *model, psplit_diag *diag) {
  struct stat status;
  if (model->fd < 0) return psplit_i_fail(diag, PSPLIT_IO, "cannot open: %s", strerror(errno));
  const bool known = fstat(model->fd, &status) == 0;
  if (known && S_ISDIR(status.st_mode))
    return psplit_i_fail(diag, PSPLIT_IO, "a directory; a model is a file, such as one in it");
  if (!known || !S_ISREG(status.st_mode))
    return psplit_i_fail(diag, PSPLIT_IO, "not a regular file");
  const psplit_i_data_file file = psplit_i_data_file_of("", model->path, &status);
  return psplit_i_vec_push(&model->files, file) ? PSPLIT_OK : psplit_i_nomem(diag);
}

static int open_path(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Another descriptor of the same; -1 for -1. */
static int duplicate(int fd) { return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0); }

/* Positions of the graph's repeated messages among its fields, one list each. */
static psplit_code index_spans(psplit_model *model, psplit_diag *diag) {
  const psplit_i_spans *fields = &model->skeleton.graph_fields;
  size_t n_nodes = 0;
  for (size_t i = 0; i < fields->n; i++) n_nodes += fields->items[i].field == PSPLIT_I_GRAPH_NODE;
  model->n_nodes = (uint32_t)n_nodes;
  const struct {
    uint32_t field;
    size_t n;
    uint32_t **out;
  } lists[] = {{PSPLIT_I_GRAPH_NODE, n_nodes, &model->node_spans},
               {5, model->proto->graph->n_initializer, &model->initializer_spans},
               {15, model->proto->graph->n_sparse_initializer, &model->sparse_spans},
               {13, model->proto->graph->n_value_info, &model->value_info_spans}};
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
    *lists[l].out = PSPLIT_NEW(&model->arena, uint32_t, lists[l].n);
    if (!*lists[l].out) return psplit_i_nomem(diag);
    size_t n = 0;
    for (size_t i = 0; i < fields->n; i++)
      if (fields->items[i].field == lists[l].field && n < lists[l].n)
        (*lists[l].out)[n++] = (uint32_t)i;
    if (n != lists[l].n)
      return psplit_i_fail(diag, PSPLIT_INTERNAL, "field %" PRIu32 ": scan and unpack disagree",
                           lists[l].field);
  }
  return PSPLIT_OK;
}

/* Says which file a failure is about. A message about an option starts with its value (base.h). */
static void name_file(psplit_diag *diag, const char *name) {
  if (diag && diag->subject == PSPLIT_SUBJECT_NONE) psplit_i_diag_context(diag, "%s", name);
}

static psplit_code check_versions(const Onnx__ModelProto *proto, psplit_diag *diag) {
  if (!proto->graph)
    return psplit_i_fail(diag, PSPLIT_MALFORMED, "not an ONNX model: it has no graph");
  if (!proto->has_ir_version || proto->ir_version < 1)
    return psplit_i_fail(diag, PSPLIT_INVALID, "the model has no ir_version");
  if (proto->ir_version > NEWEST_IR_VERSION)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "IR version %" PRId64 " is newer than %d, the newest this version knows",
                         proto->ir_version, NEWEST_IR_VERSION);
  return PSPLIT_OK;
}

static uint64_t default_limit(uint64_t file_bytes) {
  const uint64_t bytes = psplit_i_sat_mul_u64(file_bytes, GRAPH_BYTES_PER_FILE_BYTE);
  if (bytes < LEAST_GRAPH_BYTES) return LEAST_GRAPH_BYTES;
  return bytes < MOST_GRAPH_BYTES ? bytes : MOST_GRAPH_BYTES;
}

/* A model that knows its name and its options, and nothing else. */
static psplit_code new_model(const char *name, const psplit_read_options *options,
                             psplit_diag *diag, psplit_model **out) {
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_model *model = PSPLIT_NEW(&arena, psplit_model, 1);
  const char *data = options->data_directory;
  char *own_name = psplit_i_arena_strndup(&arena, name, strlen(name));
  char *own_data = data ? psplit_i_arena_strndup(&arena, data, strlen(data)) : NULL;
  if (!model || !own_name || (data && !own_data)) {
    psplit_i_arena_fini(&arena);
    return psplit_i_nomem(diag);
  }
  model->arena = arena;
  model->path = own_name;
  model->fd = model->directory_fd = -1;
  model->options = *options;
  model->options.data_directory = own_data;
  model->options.inline_ifs = NULL;
  model->options.n_inline_ifs = 0;
  *out = model;
  return PSPLIT_OK;
}

/* A model like another, from the same open file. */
static psplit_code new_like(const psplit_model *from, psplit_diag *diag, psplit_model **out) {
  psplit_model *model = NULL;
  psplit_code code;
  PSPLIT_TRY(new_model(from->path, &from->options, diag, &model));
  model->has_path = from->has_path;
  model->fd = duplicate(from->fd);
  PSPLIT_TRY(look_at_file(model, diag));
  model->directory_fd = duplicate(from->directory_fd);
  *out = model;
  return PSPLIT_OK;
out:
  psplit_model_close(model);
  return code;
}

/* From the skeleton to the index. */
static psplit_code build(psplit_model *model, uint64_t max_bytes, psplit_diag *diag) {
  psplit_code code;
  model->arena.limit_bytes = max_bytes < SIZE_MAX ? (size_t)max_bytes : 0;
  PSPLIT_TRY(psplit_i_unpack_without_nodes(&model->skeleton, &model->arena, model->options.cancel,
                                           diag, &model->proto));
  PSPLIT_TRY(check_versions(model->proto, diag));
  PSPLIT_TRY(index_spans(model, diag));
  PSPLIT_TRY(psplit_i_nodes_read(model, diag));
  PSPLIT_TRY(psplit_i_tensors_check(model, diag));
  PSPLIT_TRY(psplit_i_graph_build(model, diag));
  PSPLIT_TRY(psplit_i_training_check(model, diag));
out:
  return code;
}

/* Takes over what was inlined, with strings of its own. */
static psplit_code note_inlined(psplit_model *model, psplit_inlined one, psplit_diag *diag) {
  one.node = psplit_i_arena_strndup(&model->arena, one.node, strlen(one.node));
  one.condition = psplit_i_arena_strndup(&model->arena, one.condition, strlen(one.condition));
  return one.node && one.condition && psplit_i_vec_push(&model->inlined, one)
           ? PSPLIT_OK
           : psplit_i_nomem(diag);
}

psplit_code psplit_i_model_rebuild(const psplit_model *before, psplit_i_skeleton *skeleton,
                                   uint64_t max_bytes, psplit_diag *diag,
                                   psplit_model **out_model) {
  psplit_code code;
  psplit_model *after = NULL;
  PSPLIT_TRY(new_like(before, diag, &after));
  const psplit_i_data_file *a = &before->files.items[0], *b = &after->files.items[0];
  if (a->inode != b->inode || a->device != b->device || a->bytes != b->bytes ||
      a->modified_ns != b->modified_ns)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "changed while it was being read"));
  after->skeleton = *skeleton;
  *skeleton = (psplit_i_skeleton){0};
  PSPLIT_TRY(psplit_i_open_files_create(after, diag));
  PSPLIT_TRY(build(after, max_bytes ? max_bytes : default_limit(b->bytes), diag));
  for (size_t i = 0; i < before->inlined.n; i++)
    PSPLIT_TRY(note_inlined(after, before->inlined.items[i], diag));
  *out_model = after;
  return PSPLIT_OK;
out:
  psplit_i_skeleton_fini(skeleton);
  psplit_model_close(after);
  return code;
}

/* *io_model with one more If inlined, read from the same file. */
static psplit_code inline_one(psplit_model **io_model, const psplit_inline_if *choice,
                              uint64_t max_bytes, psplit_diag *diag) {
  psplit_code code;
  psplit_model *before = *io_model, *after = NULL;
  psplit_i_skeleton skeleton = {0};
  psplit_inlined inlined;
  PSPLIT_TRY(psplit_i_inline_if(before, choice, diag, &skeleton, &inlined));
  PSPLIT_TRY(psplit_i_model_rebuild(before, &skeleton, max_bytes, diag, &after));
  PSPLIT_TRY(note_inlined(after, inlined, diag));
  *io_model = after;
  psplit_model_close(before);
  return PSPLIT_OK;
out:
  psplit_model_close(after);
  return code;
}

/* The rest of opening, from a model whose file is open; takes it over, in success and failure. */
static psplit_code read_model(psplit_model *model, const psplit_inline_if *inline_ifs,
                              size_t n_inline_ifs, uint64_t max_bytes, psplit_diag *diag,
                              psplit_model **out_model) {
  psplit_code code;
  const uint64_t file_bytes = model->files.items[0].bytes;
  if (file_bytes == 0)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_MALFORMED, "not an ONNX model: the file is empty"));
  if (!max_bytes) max_bytes = default_limit(file_bytes);
  code = psplit_i_skeleton_scan(model->fd, file_bytes, max_bytes, model->options.cancel,
                                model->options.activity, diag, &model->skeleton);
  if (code != PSPLIT_OK) PSPLIT_TRY(psplit_i_tell_kind(model->fd, code, diag));
  psplit_i_activity_begin(model->options.activity, PSPLIT_ACTIVITY_NONE, 0);
  PSPLIT_TRY(psplit_i_open_files_create(model, diag));
  PSPLIT_TRY(build(model, max_bytes, diag));
  for (size_t i = 0; i < n_inline_ifs; i++)
    PSPLIT_TRY(inline_one(&model, &inline_ifs[i], max_bytes, diag));
  model->options.cancel = NULL; /* the caller's, and only for this call */
  model->options.activity = NULL;
  *out_model = model;
  return PSPLIT_OK;
out:
  if (code == PSPLIT_NOMEM && model->arena.over_limit) {
    if (diag) *diag = (psplit_diag){0};
    code = psplit_i_graph_over_limit(max_bytes, diag);
  }
  psplit_model_close(model);
  return code;
}

/* Takes over `fd`, which may be -1 with errno. */
static psplit_code open_model(int fd, bool has_path, const char *name,
                              const psplit_read_options *given, psplit_diag *diag,
                              psplit_model **out_model) {
  psplit_code code;
  psplit_model *model = NULL;
  psplit_read_options options;
  const int reason = errno;
  psplit_read_options_init(&options);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_read_options, given, &options, diag));
  PSPLIT_TRY(new_model(name, &options, diag, &model));
  model->has_path = has_path;
  model->fd = fd;
  fd = -1;
  errno = reason;
  PSPLIT_TRY(look_at_file(model, diag));
  psplit_model *whole = model;
  model = NULL;
  PSPLIT_TRY(read_model(whole, options.inline_ifs, options.n_inline_ifs, options.max_graph_bytes,
                        diag, out_model));
  return PSPLIT_OK;
out:
  if (fd >= 0) close(fd);
  name_file(diag, name);
  psplit_model_close(model);
  return code;
}

static const char *or_model(const char *name) { return name ? name : "model"; }

psplit_code psplit_model_open(const char *path, const psplit_read_options *options,
                              psplit_diag *diag, psplit_model **out_model) {
  return open_model(open_path(path), true, path, options, diag, out_model);
}

psplit_code psplit_model_open_memory(const void *bytes, size_t n, const char *name,
                                     const psplit_read_options *options, psplit_diag *diag,
                                     psplit_model **out_model) {
  return open_model(psplit_i_memory_file(bytes, n), false, or_model(name), options, diag,
                    out_model);
}

psplit_code psplit_model_open_fd(int fd, const char *name, const psplit_read_options *options,
                                 psplit_diag *diag, psplit_model **out_model) {
  errno = EBADF;
  return open_model(duplicate(fd), false, or_model(name), options, diag, out_model);
}

psplit_code psplit_i_model_reopen(const psplit_model *model, const psplit_inline_if *inline_ifs,
                                  size_t n_inline_ifs, const psplit_read_options *options,
                                  psplit_diag *diag, psplit_model **out_model) {
  psplit_model *again;
  const uint64_t own = model->options.max_graph_bytes;
  psplit_code code = new_like(model, diag, &again);
  if (code == PSPLIT_OK) {
    again->options.cancel = options->cancel;
    code = read_model(again, inline_ifs, n_inline_ifs, own ? own : options->max_graph_bytes, diag,
                      out_model);
  }
  if (code != PSPLIT_OK) name_file(diag, model->path);
  return code;
}

static void close_graph(psplit_i_graph *graph) {
  if (!graph) return;
  psplit_i_intern_fini(&graph->names);
  free(graph->values);
  for (uint32_t n = 0; graph->nodes && n < graph->n_nodes; n++)
    for (uint32_t b = 0; b < graph->nodes[n].n_bodies; b++) close_graph(graph->nodes[n].bodies[b]);
}

void psplit_model_close(psplit_model *model) {
  if (!model) return;
  close_graph(model->graph);
  for (size_t f = 0; model->functions && f < model->proto->n_functions; f++)
    close_graph(model->functions[f]);
  psplit_i_open_files_close(model);
  if (model->fd >= 0) close(model->fd);
  psplit_i_vec_fini(&model->files);
  psplit_i_vec_fini(&model->inlined);
  psplit_i_vec_fini(&model->placed_nodes);
  psplit_i_intern_fini(&model->locations);
  if (model->directory_fd >= 0) close(model->directory_fd);
  psplit_i_skeleton_fini(&model->skeleton);
  psplit_i_arena arena = model->arena; /* the model itself lives in it */
  psplit_i_arena_fini(&arena);
}
