#include "manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "rows.h"

/* A time of the plan; -1 where it is not known. */
static int64_t read_ns(const item *object, const char *key) {
  int64_t ns = -1;
  psplit_i_json_i64(psplit_i_json_unless_null(psplit_i_json_find(object, key)), 0, INT64_MAX, &ns);
  return ns;
}

/* A stage, or "model"; false: that. */
static bool read_stage_number(item end, uint32_t n_stages, uint32_t *out) {
  if (strcmp(psplit_i_json_borrow(end), "model") == 0) return false;
  if (psplit_i_json_is_integer(end))
    psplit_i_json_u32(end, 0, n_stages - 1, out);
  else
    psplit_i_json_must_be(&end, "a stage or \"model\"");
  return true;
}

static void read_destinations(item to, uint32_t n_stages, psplit_i_row *out) {
  const size_t n = length(&to);
  uint32_t *stages = NEW(&to, uint32_t, n);
  for (size_t i = 0; i < n && !failed(&to); i++) {
    if (read_stage_number(psplit_i_json_element(&to, i), n_stages, &stages[out->n_to]))
      out->n_to++;
    else
      out->to_model = true;
  }
  out->to = stages;
}

static void read_row(item row, bool output, uint32_t n_stages, psplit_i_row *out) {
  need_text(&row, "name", &out->name);
  need_text(&row, "tensor", &out->tensor);
  if (output)
    read_destinations(psplit_i_json_need(&row, "to"), n_stages, out);
  else if (!read_stage_number(psplit_i_json_need(&row, "from"), n_stages, &out->from))
    out->from = PSPLIT_I_FROM_MODEL;
}

/* Rows of `first`, and then of `second`: the optional ones. */
static void read_rows(item first, item second, bool outputs, uint32_t n_stages,
                      const psplit_i_row **out, uint32_t *out_n) {
  const size_t n_first = length(&first), n = n_first + length(&second);
  psplit_i_row *rows = NEW(&first, psplit_i_row, n);
  for (size_t i = 0; i < n && !failed(&first); i++) {
    rows[i].optional = i >= n_first;
    read_row(
      i < n_first ? psplit_i_json_element(&first, i) : psplit_i_json_element(&second, i - n_first),
      outputs, n_stages, &rows[i]);
  }
  *out = rows;
  *out_n = (uint32_t)n;
}

/* A stage that several devices compute. */
static void read_replicas(const item *stage, psplit_i_manifest_stage *out) {
  const item replicas = psplit_i_json_find(stage, "replicas"),
             devices = psplit_i_json_find(stage, "devices");
  const size_t n = length(&devices);
  int64_t count = 1;
  psplit_i_json_i64(replicas, 1, PSPLIT_MOST_REPLICAS, &count);
  out->n_replicas = (uint32_t)count;
  if (failed(stage) || !psplit_i_json_given(replicas)) return;
  const char **names = NEW(stage, const char *, n);
  for (size_t i = 0; i < n && !failed(stage); i++)
    psplit_i_json_text(psplit_i_json_element(&devices, i), &names[i]);
  if (!failed(stage) && n != out->n_replicas)
    psplit_i_json_fail(&devices, PSPLIT_INVALID, "does not hold a device for each replica");
  out->devices = names;
}

static void read_stage(item stage, uint32_t n_stages, psplit_i_manifest_stage *out) {
  const item none = {.reader = stage.reader};
  int64_t index = (int64_t)stage.index;
  psplit_i_json_i64(psplit_i_json_need(&stage, "index"), index, index, &index);
  need_index(&stage, "nodes", UINT32_MAX, &out->n_nodes);
  need_index(&stage, "duplicated_nodes", UINT32_MAX, &out->n_duplicated);
  psplit_i_read_file_name(&stage, &out->file);
  need_text(&stage, "device", &out->device);
  read_replicas(&stage, out);
  out->compute_ns = read_ns(&stage, "compute_ns");
  out->recv_ns = read_ns(&stage, "recv_ns");
  out->send_ns = read_ns(&stage, "send_ns");
  out->load_ns = read_ns(&stage, "load_ns");
  read_rows(psplit_i_json_need(&stage, "inputs"), psplit_i_json_find(&stage, "optional_inputs"),
            false, n_stages, &out->inputs, &out->n_inputs);
  read_rows(psplit_i_json_need(&stage, "outputs"), none, true, n_stages, &out->outputs,
            &out->n_outputs);
}

/* Values of `first` and then of `second`, and their names. */
static void read_values(item first, item second, const psplit_i_manifest_value **out,
                        const char *const **out_names, uint32_t *out_n) {
  const size_t n_first = length(&first), n = n_first + length(&second);
  psplit_i_manifest_value *values = NEW(&first, psplit_i_manifest_value, n);
  const char **names = NEW(&first, const char *, n);
  for (size_t i = 0; i < n && !failed(&first); i++) {
    const item row =
      i < n_first ? psplit_i_json_element(&first, i) : psplit_i_json_element(&second, i - n_first);
    need_text(&row, "name", &values[i].name);
    psplit_i_json_text(need_or_null(&row, "dtype"), &values[i].dtype);
    psplit_i_read_shape(need_or_null(&row, "shape"), &values[i].shape);
    names[i] = values[i].name;
  }
  *out = values;
  *out_names = names;
  *out_n = (uint32_t)n;
}

/* Sizes that nobody fixed for the plan. */
static void read_assumed(item object, psplit_i_manifest *m) {
  uint32_t n = 0, most = 0;
  item size;
  for (void *at = NULL; psplit_i_json_next(&object, &at, &size);) most++;
  const char **names = NEW(&object, const char *, most);
  int64_t *sizes = NEW(&object, int64_t, most);
  for (void *at = NULL; !failed(&object) && psplit_i_json_next(&object, &at, &size); n++) {
    names[n] = psplit_i_json_copy(object.reader, size.key);
    psplit_i_json_i64(size, 0, INT64_MAX, &sizes[n]);
  }
  m->n_assumed = n;
  m->assumed_names = names;
  m->assumed_sizes = sizes;
}

static void read_inlined(item list, psplit_i_manifest *m) {
  static const char *const branches[] = {"else", "then"};
  const size_t n = length(&list);
  psplit_i_inlined_row *rows = NEW(&list, psplit_i_inlined_row, n);
  for (size_t i = 0; i < n && !failed(&list); i++) {
    const item row = psplit_i_json_element(&list, i);
    uint32_t branch = 0;
    need_text(&row, "node", &rows[i].node);
    need_text(&row, "condition", &rows[i].condition);
    psplit_i_json_choice(psplit_i_json_need(&row, "branch"), branches, 2, &branch);
    psplit_i_json_flag(psplit_i_json_need(&row, "assumed"), &rows[i].assumed);
    rows[i].then_branch = branch == 1;
  }
  m->inlined = rows;
  m->n_inlined = (uint32_t)n;
}

static void read_files(item list, psplit_i_manifest *m) {
  const size_t n = length(&list);
  const char **names = NEW(&list, const char *, n);
  for (size_t i = 0; i < n && !failed(&list); i++) {
    psplit_i_json_text(psplit_i_json_element(&list, i), &names[i]);
    if (!failed(&list) && (!*names[i] || strchr(names[i], '/')))
      psplit_i_json_fail(&list, PSPLIT_INVALID, "holds what is not a name of a file");
  }
  m->files = names;
  m->n_files = (uint32_t)n;
}

static void read_root(const item *root, psplit_i_manifest *m) {
  static const char *const boundaries[] = {"io", "sendrecv"};
  const item none = {.reader = root->reader}, inputs = psplit_i_json_need(root, "inputs"),
             stages = psplit_i_json_need(root, "stages"), plan = psplit_i_json_need(root, "plan");
  uint32_t boundary = 0;
  psplit_i_json_choice(psplit_i_json_need(root, "boundary"), boundaries, 2, &boundary);
  m->sendrecv = boundary == 1;
  if (psplit_i_json_is_string(psplit_i_json_find(root, "model")))
    psplit_i_json_text(psplit_i_json_find(root, "model"), &m->model);
  read_inlined(psplit_i_json_find(root, "inlined"), m);
  read_values(inputs, psplit_i_json_find(root, "optional_inputs"), &m->input_values, &m->inputs,
              &m->n_inputs);
  read_values(psplit_i_json_need(root, "outputs"), none, &m->output_values, &m->outputs,
              &m->n_outputs);
  m->n_needed = (uint32_t)length(&inputs);
  m->n_stages = (uint32_t)psplit_i_json_length(&stages, 1, PSPLIT_NONE - 1);
  psplit_i_manifest_stage *list = NEW(root, psplit_i_manifest_stage, m->n_stages);
  for (uint32_t s = 0; s < m->n_stages && !failed(root); s++)
    read_stage(psplit_i_json_element(&stages, s), m->n_stages, &list[s]);
  m->stages = list;
  psplit_i_read_transfers(psplit_i_json_need(root, "transfers"), m->n_stages, true, &m->transfers,
                          &m->n_transfers);
  psplit_i_read_duplicates(psplit_i_json_find(root, "duplicates"), m->n_stages, &m->duplicates,
                           &m->n_duplicates);
  need_text(&plan, "cost_source", &m->cost_source);
  read_assumed(psplit_i_json_find(&plan, "assumed_dims"), m);
  m->bottleneck_ns = read_ns(&plan, "bottleneck_ns");
  const item objective = psplit_i_json_find(&plan, "objective");
  m->fill_drain = strcmp(psplit_i_json_borrow(objective), "fill-drain") == 0;
  m->total_compute_ns = read_ns(&plan, "total_compute_ns");
  psplit_i_read_training(psplit_i_json_find(root, "training"), m);
  read_files(psplit_i_json_find(root, "files"), m);
}

static void check_format(const item *root) {
  const item format = psplit_i_json_need(root, "format"),
             version = psplit_i_json_find(root, "version");
  int64_t number = 0;
  if (psplit_i_json_is_integer(version)) psplit_i_json_i64(version, INT64_MIN, INT64_MAX, &number);
  if (strcmp(psplit_i_json_borrow(format), "onnx-pipeline-split") != 0 || number != 1)
    psplit_i_json_fail(root, PSPLIT_UNSUPPORTED, "is not of format onnx-pipeline-split, version 1");
}

/* Says of what is not a split's directory that it is none. */
static psplit_code check_place(const char *directory, const char *path, psplit_diag *diag) {
  struct stat status;
  if (stat(directory, &status) != 0)
    return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", directory, strerror(errno));
  if (!S_ISDIR(status.st_mode))
    return psplit_i_fail(diag, PSPLIT_IO,
                         "%s is not a split: that is a directory with a pipeline.json", directory);
  if (stat(path, &status) != 0 && errno == ENOENT)
    return psplit_i_fail(diag, PSPLIT_IO, "%s is not a split: it has no pipeline.json", directory);
  return PSPLIT_OK;
}

psplit_code psplit_i_manifest_read(const char *directory, uint64_t max_bytes, psplit_i_arena *arena,
                                   psplit_diag *diag, psplit_i_manifest *out_manifest) {
  psplit_i_text path = {0};
  psplit_i_text_addf(&path, "%s/pipeline.json", directory);
  if (path.failed) return psplit_i_nomem(diag);
  const psplit_i_text_options options = {.max_bytes = max_bytes, .lifted_by = PSPLIT_HINT_MAX_TEXT};
  psplit_i_json_reader reader = {.diag = diag, .arena = arena, .file = path.bytes};
  psplit_i_manifest manifest = {0};
  psplit_code code;
  item root = {0};
  char *text = NULL;
  size_t n;
  PSPLIT_TRY(check_place(directory, path.bytes, diag));
  PSPLIT_TRY(psplit_i_text_read(path.bytes, &options, diag, &text, &n));
  root = psplit_i_json_load(&reader, text, n);
  check_format(&root);
  read_root(&root, &manifest);
  code = reader.code;
out:
  psplit_i_json_release(&root);
  free(text);
  psplit_i_text_fini(&path);
  if (code == PSPLIT_OK) *out_manifest = manifest;
  return code;
}
