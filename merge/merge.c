/* The whole model's file, and where its weights go. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fields.h"
#include "merge.h"
#include "out_file.h"

/* Above the first AUTO puts weights beside the file: one file is what most tools like best, as long
 * as they can read it. */
static const uint64_t INLINE_BYTES = UINT64_C(1) << 30;
static const uint64_t MODEL_BYTES = INT32_MAX; /* above: protobuf does not read it */

static uint64_t length(const psplit_i_segments *list) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < list->n; i++)
    bytes = psplit_i_sat_add_u64(bytes, list->items[i].rope.bytes);
  return bytes;
}

static bool has_failed(const psplit_i_segments *list) {
  for (size_t i = 0; i < list->n; i++)
    if (list->items[i].rope.failed) return true;
  return false;
}

/* Tensors of each stage follow those of the stage before in one data file. */
static psplit_code build(psplit_i_merger *m, psplit_weights mode, const char *data_name,
                         psplit_i_segments *head) {
  psplit_code code;
  psplit_i_segments_fini(head);
  psplit_i_segments_fini(&m->graph);
  memset(m->declared, 0, m->n_values);
  m->report.n_nodes = 0;
  m->data_end = 0;
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    psplit_i_weights_reset(&m->stages[s].weights);
    m->stages[s].weights =
      (psplit_i_weights){.model = m->stages[s].model, .mode = mode, .data_name = data_name};
  }
  PSPLIT_TRY(psplit_i_merge_model(m, head));
  PSPLIT_TRY(psplit_i_merge_graph(m));
  if (has_failed(head) || has_failed(&m->graph)) PSPLIT_FAIL(psplit_i_nomem(m->diag));
out:
  return code;
}

/* --- the files --- */

static bool has_file(const psplit_model *model, const struct stat *status) {
  for (size_t f = 0; f < model->files.n; f++)
    if ((uint64_t)status->st_dev == model->files.items[f].device &&
        (uint64_t)status->st_ino == model->files.items[f].inode)
      return true;
  return false;
}

/* Not over what is read. */
static psplit_code check_place(const psplit_i_merger *m, const char *path) {
  struct stat status, manifest;
  psplit_i_text name = {0};
  if (stat(path, &status) != 0) return PSPLIT_OK;
  psplit_i_text_addf(&name, "%s/pipeline.json", m->directory);
  if (name.failed) {
    psplit_i_text_fini(&name);
    return psplit_i_nomem(m->diag);
  }
  bool is_read = stat(name.bytes, &manifest) == 0 && manifest.st_dev == status.st_dev &&
                 manifest.st_ino == status.st_ino;
  psplit_i_text_fini(&name);
  for (uint32_t s = 0; s < m->manifest.n_stages && !is_read; s++)
    is_read = has_file(m->stages[s].model, &status);
  if (is_read) return psplit_i_fail(m->diag, PSPLIT_IO, "%s is a file of the split itself", path);
  if (m->options->model && has_file(m->options->model, &status))
    return psplit_i_fail(m->diag, PSPLIT_IO, "%s is a file of the model itself", path);
  return PSPLIT_OK;
}

static psplit_code write_segments(psplit_i_file *file, const psplit_i_segments *list,
                                  psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < list->n; i++) {
    file->model = list->items[i].model;
    PSPLIT_TRY(psplit_i_file_rope(file, &list->items[i].rope, diag));
  }
out:
  return code;
}

/* Opens `path` for writing; *out_file writes to *out_place. */
static psplit_code begin_file(const psplit_i_merger *m, const char *path,
                              psplit_i_out_file *out_place, psplit_i_file *out_file) {
  psplit_code code;
  const psplit_i_out_options options = {.keep = !m->options->replace,
                                        .stop = psplit_i_flag(m->options->cancel)};
  PSPLIT_TRY(check_place(m, path));
  PSPLIT_TRY(psplit_i_out_begin(path, &options, m->diag, out_place));
  const int fd = fcntl(out_place->fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    PSPLIT_FAIL(psplit_i_fail(m->diag, PSPLIT_IO, "cannot write %s: %s", path, strerror(errno)));
  PSPLIT_TRY(psplit_i_file_begin(fd, NULL, path, m->stages[0].model, m->diag, out_file));
  out_file->through = out_place->directory_fd < 0;
  out_file->cancel = m->options->cancel;
  out_file->activity = m->options->activity;
out:
  return code;
}

/* A range of a stage's files, with its place in the data file. */
typedef struct moved {
  const psplit_model *model;
  psplit_i_data_range range;
} moved;

static int compare_places(const void *a, const void *b) {
  const moved *x = a, *y = b;
  return x->range.out_offset < y->range.out_offset ? -1 : x->range.out_offset > y->range.out_offset;
}

/* All that goes to the data file, in its order; in m->arena. */
static psplit_code list_moved(psplit_i_merger *m, moved **out, size_t *out_n) {
  size_t n = 0;
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) n += m->stages[s].weights.ranges.n;
  moved *list = psplit_i_arena_array(&m->arena, n, sizeof *list);
  if (!list) return psplit_i_nomem(m->diag);
  *out = list;
  *out_n = n;
  for (uint32_t s = 0; s < m->manifest.n_stages; s++) {
    const psplit_i_weights *weights = &m->stages[s].weights;
    for (size_t r = 0; r < weights->ranges.n; r++)
      *list++ = (moved){m->stages[s].model, weights->ranges.items[r]};
  }
  if (n) qsort(*out, n, sizeof **out, compare_places);
  return PSPLIT_OK;
}

/* *out_place can still be abandoned. */
static psplit_code write_data(psplit_i_merger *m, const char *path, psplit_i_out_file *out_place) {
  psplit_code code;
  psplit_i_file file = {.fd = -1};
  moved *list = NULL;
  size_t n = 0;
  PSPLIT_TRY(list_moved(m, &list, &n));
  PSPLIT_TRY(begin_file(m, path, out_place, &file));
  for (size_t i = 0; i < n; i++) {
    const psplit_i_data_range *range = &list[i].range;
    PSPLIT_TRY(psplit_i_file_skip(&file, range->out_offset, m->diag));
    file.model = list[i].model;
    PSPLIT_TRY(psplit_i_file_range(&file, range->file, range->offset, range->bytes, m->diag));
  }
  PSPLIT_TRY(psplit_i_file_close(&file, m->report.data_bytes, m->diag));
  PSPLIT_TRY(psplit_i_out_place(out_place, m->diag));
out:
  psplit_i_file_abandon(&file);
  return code;
}

static psplit_code accept(const psplit_i_merger *m, const char *path,
                          const psplit_i_out_file *place) {
  psplit_i_text text = {0};
  if (!m->options->accept || place->directory_fd < 0) return PSPLIT_OK;
  const char *slash = strrchr(path, '/');
  psplit_i_text_add(&text, path, slash ? (size_t)(slash - path) + 1 : 0);
  psplit_i_text_puts(&text, place->temp);
  const psplit_code code = text.failed
                             ? psplit_i_nomem(m->diag)
                             : m->options->accept(m->options->accept_user, text.bytes, m->diag);
  psplit_i_text_fini(&text);
  return code;
}

static psplit_code write_model(psplit_i_merger *m, const psplit_i_segments *head,
                               const char *path) {
  psplit_code code;
  psplit_i_out_file place = {.fd = -1, .directory_fd = -1};
  psplit_i_file file = {.fd = -1};
  psplit_i_text tag = {0};
  psplit_i_wire_tag(&tag, PSPLIT_I_MODEL_GRAPH, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(&tag, length(&m->graph));
  if (tag.failed) PSPLIT_FAIL(psplit_i_nomem(m->diag));
  m->report.bytes = length(head) + tag.n + length(&m->graph);
  if (m->report.bytes > MODEL_BYTES)
    PSPLIT_FAIL(psplit_i_fail_about(
      m->diag, PSPLIT_LIMIT,
      (psplit_i_advice){.hint = m->options->weights == PSPLIT_WEIGHTS_INLINE
                                  ? PSPLIT_HINT_WEIGHTS_EXTERNAL
                                  : PSPLIT_HINT_NONE},
      "%s takes %" PRIu64 " bytes in one file, and protobuf reads at most %" PRIu64, path,
      m->report.bytes, MODEL_BYTES));
  PSPLIT_TRY(begin_file(m, path, &place, &file));
  PSPLIT_TRY(write_segments(&file, head, m->diag));
  PSPLIT_TRY(psplit_i_file_bytes(&file, (const uint8_t *)tag.bytes, tag.n, m->diag));
  PSPLIT_TRY(write_segments(&file, &m->graph, m->diag));
  PSPLIT_TRY(psplit_i_file_close(&file, m->report.bytes, m->diag));
  for (uint32_t s = 0; s < m->manifest.n_stages; s++)
    PSPLIT_TRY(psplit_i_model_unchanged(m->stages[s].model, m->diag));
  PSPLIT_TRY(accept(m, path, &place));
  PSPLIT_TRY(psplit_i_out_commit(&place, m->diag));
out:
  psplit_i_text_fini(&tag);
  psplit_i_file_abandon(&file);
  psplit_i_out_abandon(&place);
  return code;
}

static psplit_code write_files(psplit_i_merger *m, const psplit_i_segments *head, const char *path,
                               const char *data_path) {
  psplit_code code = PSPLIT_OK;
  const psplit_i_held_signal held = psplit_i_hold_size_signal();
  /* Where the model cannot go, its data does not come first. */
  const psplit_i_out_options options = {.keep = !m->options->replace};
  psplit_i_out_file data = {.fd = -1, .directory_fd = -1};
  PSPLIT_TRY(psplit_i_out_probe(path, &options, m->diag));
  if (m->report.data_bytes) PSPLIT_TRY(write_data(m, data_path, &data));
  PSPLIT_TRY(write_model(m, head, path));
  if (m->report.data_bytes) PSPLIT_TRY(psplit_i_out_commit(&data, m->diag));
out:
  psplit_i_out_abandon(&data);
  psplit_i_let_size_signal(&held);
  return code;
}

static void fini(psplit_i_merger *m) {
  for (uint32_t s = 0; m->stages && s < m->manifest.n_stages; s++) {
    psplit_i_weights_reset(&m->stages[s].weights);
    psplit_model_close(m->stages[s].model);
  }
  psplit_model_close(m->inlined);
  psplit_i_segments_fini(&m->graph);
  psplit_i_vec_fini(&m->identities);
  psplit_i_text_fini(&m->scratch);
  psplit_i_comparer_fini(&m->comparer);
  psplit_i_arena_fini(&m->arena);
}

psplit_code psplit_merge(const char *directory, const char *path, const psplit_merge_options *given,
                         psplit_diag *diag, psplit_merge_report *out_report) {
  psplit_code code;
  psplit_read_options read;
  psplit_merge_options options;
  psplit_i_segments head = {0};
  psplit_i_text data_path = {0};
  psplit_i_merger m = {.directory = directory, .options = &options, .read = &read, .diag = diag};
  psplit_i_arena_init(&m.arena, 0);
  psplit_read_options_init(&read);
  psplit_merge_options_init(&options);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_merge_options, given, &options, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_read_options, options.read, &read, diag));
  read.cancel = options.cancel ? options.cancel : read.cancel;
  if (options.weights == PSPLIT_WEIGHTS_REFERENCE)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "a merged model cannot point into stages"));
  psplit_i_text_addf(&data_path, "%s.data", path);
  if (data_path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  const char *slash = strrchr(data_path.bytes, '/');
  const char *data_name = slash ? slash + 1 : data_path.bytes;
  read.activity = NULL; /* it counts what is written */
  PSPLIT_TRY(psplit_i_merge_open(&m));
  PSPLIT_TRY(psplit_i_merge_copies(&m));
  PSPLIT_TRY(psplit_i_merge_names(&m));
  const bool outside = options.weights == PSPLIT_WEIGHTS_EXTERNAL;
  PSPLIT_TRY(
    build(&m, outside ? PSPLIT_WEIGHTS_EXTERNAL : PSPLIT_WEIGHTS_INLINE, data_name, &head));
  if (options.weights == PSPLIT_WEIGHTS_AUTO && length(&m.graph) > INLINE_BYTES)
    PSPLIT_TRY(build(&m, PSPLIT_WEIGHTS_EXTERNAL, data_name, &head));
  m.report.data_bytes = m.data_end;
  PSPLIT_TRY(write_files(&m, &head, path, data_path.bytes));
  if (out_report) *out_report = m.report;
out:
  psplit_i_segments_fini(&head);
  psplit_i_text_fini(&data_path);
  fini(&m);
  return code;
}
