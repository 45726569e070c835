#include "manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
  psplit_i_arena *arena;
  psplit_diag *diag;
} reader;

static psplit_code bad(reader *r, const char *where, const char *what) {
  return psplit_i_fail(r->diag, PSPLIT_INVALID, "pipeline.json: %s: %s", where, what);
}

static psplit_code read_string(reader *r, const json_t *object, const char *key, const char *where,
                               const char **out) {
  const json_t *value = json_object_get(object, key);
  if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
    return bad(r, where, key);
  *out = psplit_i_arena_strndup(r->arena, json_string_value(value), json_string_length(value));
  return *out ? PSPLIT_OK : psplit_i_nomem(r->diag);
}

static bool as_index(const json_t *value, uint32_t limit, uint32_t *out) {
  if (!json_is_integer(value) || json_integer_value(value) < 0 ||
      json_integer_value(value) >= (json_int_t)limit)
    return false;
  *out = (uint32_t)json_integer_value(value);
  return true;
}

/* The array `key` of `object`; where it may be missing, NULL stands for an empty one. */
static psplit_code get_array(reader *r, const json_t *object, const char *key, bool required,
                             const json_t **out) {
  *out = json_object_get(object, key);
  if (!*out && !required) return PSPLIT_OK;
  return json_is_array(*out) ? PSPLIT_OK : bad(r, key, "an array is needed");
}

/* A time of the plan; -1 where it is not known. */
static int64_t get_ns(const json_t *object, const char *key) {
  const json_t *value = json_object_get(object, key);
  return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value) : -1;
}

static psplit_code read_destinations(reader *r, const json_t *row, uint32_t n_stages,
                                     psplit_i_row *out) {
  const json_t *to;
  psplit_code code;
  PSPLIT_TRY(get_array(r, row, "to", true, &to));
  const size_t n = json_array_size(to);
  uint32_t *stages = PSPLIT_NEW(r->arena, uint32_t, n);
  if (!stages) return psplit_i_nomem(r->diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *item = json_array_get(to, i);
    if (json_is_string(item) && strcmp(json_string_value(item), "model") == 0)
      out->to_model = true;
    else if (as_index(item, n_stages, &stages[out->n_to]))
      out->n_to++;
    else
      return bad(r, "to", "neither a stage nor \"model\"");
  }
  out->to = stages;
out:
  return code;
}

static psplit_code read_origin(reader *r, const json_t *row, uint32_t n_stages, psplit_i_row *out) {
  const json_t *from = json_object_get(row, "from");
  if (json_is_string(from) && strcmp(json_string_value(from), "model") == 0)
    out->from = PSPLIT_I_FROM_MODEL;
  else if (!as_index(from, n_stages, &out->from))
    return bad(r, "from", "neither a stage nor \"model\"");
  return PSPLIT_OK;
}

/* Rows of `first` and then of `second` (may be NULL). */
static psplit_code read_rows(reader *r, const json_t *first, const json_t *second, bool outputs,
                             uint32_t n_stages, const psplit_i_row **out, uint32_t *out_n) {
  psplit_code code = PSPLIT_OK;
  const size_t n_first = json_array_size(first), n = n_first + json_array_size(second);
  psplit_i_row *rows = PSPLIT_NEW(r->arena, psplit_i_row, n);
  if (!rows) return psplit_i_nomem(r->diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *row =
      i < n_first ? json_array_get(first, i) : json_array_get(second, i - n_first);
    const char *where = outputs ? "outputs" : "inputs";
    rows[i].optional = i >= n_first;
    PSPLIT_TRY(read_string(r, row, "name", where, &rows[i].name));
    PSPLIT_TRY(read_string(r, row, "tensor", where, &rows[i].tensor));
    PSPLIT_TRY(outputs ? read_destinations(r, row, n_stages, &rows[i])
                       : read_origin(r, row, n_stages, &rows[i]));
  }
  *out = rows;
  *out_n = (uint32_t)n;
out:
  return code;
}

static psplit_code read_stage(reader *r, const json_t *object, uint32_t index, uint32_t n_stages,
                              psplit_i_manifest_stage *out) {
  psplit_code code;
  const json_t *inputs, *optional, *outputs;
  uint32_t stated;
  if (!as_index(json_object_get(object, "index"), n_stages, &stated) || stated != index)
    return bad(r, "stages", "index is not the position");
  if (!as_index(json_object_get(object, "nodes"), UINT32_MAX, &out->n_nodes) ||
      !as_index(json_object_get(object, "duplicated_nodes"), UINT32_MAX, &out->n_duplicated))
    return bad(r, "stages", "nodes or duplicated_nodes");
  PSPLIT_TRY(read_string(r, object, "file", "stages", &out->file));
  if (!*out->file || strchr(out->file, '/') || out->file[0] == '.')
    return psplit_i_fail(r->diag, PSPLIT_INVALID,
                         "pipeline.json: stage %" PRIu32 ": file \"%s\" is not a plain name", index,
                         out->file);
  PSPLIT_TRY(read_string(r, object, "device", "stages", &out->device));
  PSPLIT_TRY(get_array(r, object, "inputs", true, &inputs));
  PSPLIT_TRY(get_array(r, object, "optional_inputs", false, &optional));
  PSPLIT_TRY(get_array(r, object, "outputs", true, &outputs));
  out->compute_ns = get_ns(object, "compute_ns");
  out->recv_ns = get_ns(object, "recv_ns");
  out->send_ns = get_ns(object, "send_ns");
  out->load_ns = get_ns(object, "load_ns");
  PSPLIT_TRY(read_rows(r, inputs, optional, false, n_stages, &out->inputs, &out->n_inputs));
  PSPLIT_TRY(read_rows(r, outputs, NULL, true, n_stages, &out->outputs, &out->n_outputs));
out:
  return code;
}

/* A size, a symbol, or null for each dimension; null for an unknown rank. */
static psplit_code read_shape(reader *r, const json_t *row, const char *where,
                              psplit_i_shape *out) {
  enum { MOST_DIMS = 4096 };
  const json_t *shape = json_object_get(row, "shape");
  const size_t rank = json_array_size(shape);
  *out = (psplit_i_shape){.rank = -1};
  if (json_is_null(shape)) return PSPLIT_OK;
  psplit_i_manifest_dim *dims = psplit_i_arena_array(r->arena, rank, sizeof *dims);
  if (!dims) return psplit_i_nomem(r->diag);
  bool good = json_is_array(shape) && rank <= MOST_DIMS;
  for (size_t a = 0; a < rank && good; a++) {
    const json_t *dim = json_array_get(shape, a);
    dims[a] = (psplit_i_manifest_dim){.value = -1};
    if (json_is_integer(dim))
      good = (dims[a].value = json_integer_value(dim)) >= 0;
    else if (json_is_string(dim)) {
      dims[a].param =
        psplit_i_arena_strndup(r->arena, json_string_value(dim), json_string_length(dim));
      if (!dims[a].param) return psplit_i_nomem(r->diag);
    } else {
      good = json_is_null(dim);
    }
  }
  if (!good) return bad(r, where, "shape");
  *out = (psplit_i_shape){(int32_t)rank, dims};
  return PSPLIT_OK;
}

/* Values of `first` and then of `second` (may be NULL), and their names. */
static psplit_code read_values(reader *r, const json_t *first, const json_t *second,
                               const psplit_i_manifest_value **out, const char *const **out_names,
                               uint32_t *out_n) {
  psplit_code code = PSPLIT_OK;
  const size_t n_first = json_array_size(first), n = n_first + json_array_size(second);
  psplit_i_manifest_value *values = PSPLIT_NEW(r->arena, psplit_i_manifest_value, n);
  const char **names = PSPLIT_NEW(r->arena, const char *, n);
  if (!values || !names) return psplit_i_nomem(r->diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *row =
      i < n_first ? json_array_get(first, i) : json_array_get(second, i - n_first);
    PSPLIT_TRY(read_string(r, row, "name", "inputs and outputs", &values[i].name));
    if (!json_is_null(json_object_get(row, "dtype")))
      PSPLIT_TRY(read_string(r, row, "dtype", "inputs and outputs", &values[i].dtype));
    PSPLIT_TRY(read_shape(r, row, "inputs and outputs", &values[i].shape));
    names[i] = values[i].name;
  }
  *out = values;
  *out_names = names;
  *out_n = (uint32_t)n;
out:
  return code;
}

static psplit_code read_transfers(reader *r, const json_t *array, psplit_i_manifest *m) {
  psplit_code code = PSPLIT_OK;
  const size_t n = json_array_size(array);
  psplit_i_manifest_transfer *transfers = PSPLIT_NEW(r->arena, psplit_i_manifest_transfer, n);
  if (!transfers) return psplit_i_nomem(r->diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *row = json_array_get(array, i);
    const json_t *tag = json_object_get(row, "tag");
    PSPLIT_TRY(read_string(r, row, "tensor", "transfers", &transfers[i].tensor));
    PSPLIT_TRY(read_string(r, row, "dtype", "transfers", &transfers[i].dtype));
    if (!json_is_integer(tag) || json_integer_value(tag) < 0 ||
        !as_index(json_object_get(row, "from"), m->n_stages, &transfers[i].from) ||
        !as_index(json_object_get(row, "to"), m->n_stages, &transfers[i].to))
      return bad(r, "transfers", "tag, from or to");
    transfers[i].tag = (uint64_t)json_integer_value(tag);
    PSPLIT_TRY(read_shape(r, row, "transfers", &transfers[i].shape));
    const json_t *bytes = json_object_get(row, "bytes");
    transfers[i].bytes_known = json_is_integer(bytes) && json_integer_value(bytes) >= 0;
    if (!transfers[i].bytes_known && !json_is_null(bytes)) return bad(r, "transfers", "bytes");
    if (transfers[i].bytes_known) transfers[i].bytes = (uint64_t)json_integer_value(bytes);
  }
  m->transfers = transfers;
  m->n_transfers = (uint32_t)n;
out:
  return code;
}

static psplit_code read_duplicates(reader *r, const json_t *array, psplit_i_manifest *m) {
  const size_t n = json_array_size(array);
  psplit_i_duplicate *duplicates = PSPLIT_NEW(r->arena, psplit_i_duplicate, n);
  if (!duplicates) return psplit_i_nomem(r->diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *row = json_array_get(array, i);
    const json_t *also = json_object_get(row, "also");
    const size_t n_also = json_array_size(also);
    uint32_t *stages = PSPLIT_NEW(r->arena, uint32_t, n_also);
    if (!stages) return psplit_i_nomem(r->diag);
    bool good = json_is_array(also) &&
                as_index(json_object_get(row, "index"), UINT32_MAX, &duplicates[i].node) &&
                as_index(json_object_get(row, "stage"), m->n_stages, &duplicates[i].stage);
    for (size_t k = 0; k < n_also && good; k++)
      good = as_index(json_array_get(also, k), m->n_stages, &stages[k]);
    if (!good) return bad(r, "duplicates", "index, stage or also");
    duplicates[i].also = stages;
    duplicates[i].n_also = (uint32_t)n_also;
  }
  m->duplicates = duplicates;
  m->n_duplicates = (uint32_t)n;
  return PSPLIT_OK;
}

static psplit_code read_inlined(reader *r, const json_t *array, psplit_i_manifest *m) {
  psplit_code code = PSPLIT_OK;
  const size_t n = json_array_size(array);
  psplit_i_inlined_row *rows = PSPLIT_NEW(r->arena, psplit_i_inlined_row, n);
  if (!rows) return psplit_i_nomem(r->diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *row = json_array_get(array, i);
    const json_t *assumed = json_object_get(row, "assumed");
    const char *branch;
    PSPLIT_TRY(read_string(r, row, "node", "inlined", &rows[i].node));
    PSPLIT_TRY(read_string(r, row, "branch", "inlined", &branch));
    PSPLIT_TRY(read_string(r, row, "condition", "inlined", &rows[i].condition));
    rows[i].then_branch = strcmp(branch, "then") == 0;
    if ((!rows[i].then_branch && strcmp(branch, "else") != 0) || !json_is_boolean(assumed))
      return bad(r, "inlined", "branch or assumed");
    rows[i].assumed = json_is_true(assumed);
  }
  m->inlined = rows;
  m->n_inlined = (uint32_t)n;
out:
  return code;
}

static psplit_code read_root(reader *r, const json_t *root, psplit_i_manifest *m) {
  psplit_code code;
  const char *format, *boundary;
  const json_t *inputs, *optional, *outputs, *stages, *transfers, *duplicates, *inlined;
  PSPLIT_TRY(read_string(r, root, "format", "the file", &format));
  if (strcmp(format, "onnx-pipeline-split") != 0 ||
      json_integer_value(json_object_get(root, "version")) != 1)
    return psplit_i_fail(r->diag, PSPLIT_UNSUPPORTED,
                         "pipeline.json is not of format onnx-pipeline-split, version 1");
  PSPLIT_TRY(read_string(r, root, "boundary", "the file", &boundary));
  m->sendrecv = strcmp(boundary, "sendrecv") == 0;
  if (!m->sendrecv && strcmp(boundary, "io") != 0) return bad(r, "boundary", boundary);
  PSPLIT_TRY(get_array(r, root, "inputs", true, &inputs));
  PSPLIT_TRY(get_array(r, root, "optional_inputs", false, &optional));
  PSPLIT_TRY(get_array(r, root, "outputs", true, &outputs));
  PSPLIT_TRY(get_array(r, root, "stages", true, &stages));
  PSPLIT_TRY(get_array(r, root, "transfers", true, &transfers));
  PSPLIT_TRY(get_array(r, root, "duplicates", false, &duplicates));
  PSPLIT_TRY(get_array(r, root, "inlined", false, &inlined));
  PSPLIT_TRY(read_inlined(r, inlined, m));
  PSPLIT_TRY(read_values(r, inputs, optional, &m->input_values, &m->inputs, &m->n_inputs));
  PSPLIT_TRY(read_values(r, outputs, NULL, &m->output_values, &m->outputs, &m->n_outputs));
  m->n_needed = (uint32_t)json_array_size(inputs);
  m->n_stages = (uint32_t)json_array_size(stages);
  if (m->n_stages == 0) return bad(r, "stages", "there are none");
  psplit_i_manifest_stage *list = PSPLIT_NEW(r->arena, psplit_i_manifest_stage, m->n_stages);
  if (!list) return psplit_i_nomem(r->diag);
  for (uint32_t s = 0; s < m->n_stages; s++)
    PSPLIT_TRY(read_stage(r, json_array_get(stages, s), s, m->n_stages, &list[s]));
  m->stages = list;
  PSPLIT_TRY(read_transfers(r, transfers, m));
  PSPLIT_TRY(read_duplicates(r, duplicates, m));
  const json_t *plan = json_object_get(root, "plan");
  PSPLIT_TRY(read_string(r, plan, "cost_source", "plan", &m->cost_source));
  m->bottleneck_ns = get_ns(plan, "bottleneck_ns");
  m->total_compute_ns = get_ns(plan, "total_compute_ns");
out:
  return code;
}

psplit_code psplit_i_manifest_read(const char *directory, uint64_t max_bytes, psplit_i_arena *arena,
                                   psplit_diag *diag, psplit_i_manifest *out_manifest) {
  reader r = {.arena = arena, .diag = diag};
  psplit_i_text path = {0};
  psplit_i_text_addf(&path, "%s/pipeline.json", directory);
  if (path.failed) return psplit_i_nomem(diag);
  const psplit_i_text_options options = {.max_bytes = max_bytes, .lifted_by = PSPLIT_HINT_MAX_TEXT};
  psplit_code code;
  json_error_t error;
  json_t *root = NULL;
  char *text = NULL;
  size_t n;
  psplit_i_manifest manifest = {0};
  PSPLIT_TRY(psplit_i_text_read(path.bytes, &options, diag, &text, &n));
  root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
  code = root
           ? read_root(&r, root, &manifest)
           : psplit_i_fail(diag, PSPLIT_MALFORMED, "%s:%d: %s", path.bytes, error.line, error.text);
out:
  json_decref(root);
  free(text);
  psplit_i_text_fini(&path);
  if (code == PSPLIT_OK) *out_manifest = manifest;
  return code;
}
