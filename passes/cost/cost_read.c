/* Costs files: which kind one is, and our own JSON. */
#include "cost_table.h"

#include <math.h>
#include <string.h>

#include "foreign.h"

static const char FORMAT[] = "onnx-pipeline-split-costs";
static const double MOST_NS = 1e18; /* 31 years: sums stay within 64 bits */

/* --- our own JSON --- */

/* A list of names; none where it is missing. */
static void read_names(psplit_i_json_item list, const char *const **out, uint32_t *out_n) {
  if (!psplit_i_json_given(list)) return;
  const size_t n = psplit_i_json_length(&list, 1, PSPLIT_NONE - 1);
  const char **names = PSPLIT_I_JSON_NEW(list.reader, const char *, n);
  for (size_t i = 0; i < n && list.reader->code == PSPLIT_OK; i++)
    psplit_i_json_name(psplit_i_json_element(&list, i), &names[i]);
  if (list.reader->code != PSPLIT_OK) return;
  *out = names;
  *out_n = (uint32_t)n;
}

static void read_row(psplit_cost_table *table, psplit_i_json_item item) {
  static const char *const known[] = {"nodes", "outputs", "kernel",
                                      "ns",    "blocked", "workspace_bytes"};
  psplit_i_json_reader *r = item.reader;
  psplit_i_cost_row *row = psplit_i_cost_table_add(table);
  const char *kernel;
  if (!row) {
    r->code = psplit_i_nomem(r->diag);
    return;
  }
  const psplit_i_json_item ns = psplit_i_json_find(&item, "ns"),
                           blocked = psplit_i_json_find(&item, "blocked"),
                           workspace = psplit_i_json_find(&item, "workspace_bytes");
  PSPLIT_I_JSON_KEYS(&item, known);
  read_names(psplit_i_json_find(&item, "nodes"), &row->nodes, &row->n_nodes);
  read_names(psplit_i_json_find(&item, "outputs"), &row->values, &row->n_values);
  psplit_i_json_text(psplit_i_json_find(&item, "kernel"), &kernel);
  psplit_i_json_real(ns, 0, MOST_NS, &row->ns);
  psplit_i_json_u64(workspace, &row->workspace_bytes);
  psplit_i_json_flag(blocked, &row->blocked);
  row->tells_layout = psplit_i_json_given(blocked);
  if (!row->n_nodes && !row->n_values)
    psplit_i_json_wrong(&item, "needs \"nodes\" or \"outputs\": what the time is of");
  else
    row->label = row->n_nodes ? row->nodes[0] : row->values[0];
  if (!psplit_i_json_given(ns) && !psplit_i_json_given(workspace))
    psplit_i_json_wrong(&item, "needs \"ns\" or \"workspace_bytes\"");
}

static void read_dims(psplit_cost_table *table, psplit_i_json_item dims) {
  psplit_i_json_reader *r = dims.reader;
  psplit_i_json_item size;
  for (void *at = NULL; psplit_i_json_next(&dims, &at, &size);) {
    psplit_dim_value dim = {.name = psplit_i_json_copy(r, size.key)};
    psplit_i_json_i64(size, 0, INT64_MAX, &dim.value);
    if (r->code == PSPLIT_OK && !psplit_i_vec_push(&table->dims, dim))
      r->code = psplit_i_nomem(r->diag);
  }
}

/* The shapes that values had. */
static void read_values(psplit_cost_table *table, psplit_i_json_item values) {
  psplit_i_json_reader *r = values.reader;
  psplit_i_json_item shape;
  for (void *at = NULL; psplit_i_json_next(&values, &at, &shape);) {
    const size_t rank = psplit_i_json_length(&shape, 0, PSPLIT_MAX_RANK);
    int64_t *dims = PSPLIT_I_JSON_NEW(r, int64_t, rank);
    for (size_t axis = 0; dims && axis < rank; axis++)
      psplit_i_json_i64(psplit_i_json_element(&shape, axis), 0, INT64_MAX, &dims[axis]);
    const psplit_i_seen seen = {psplit_i_json_copy(r, shape.key), (int32_t)rank, dims};
    if (r->code == PSPLIT_OK && !psplit_i_vec_push(&table->values, seen))
      r->code = psplit_i_nomem(r->diag);
  }
}

static void read_own(const psplit_i_json_item *root, psplit_cost_table *table) {
  static const char *const known[] = {
    "format",  "version", "measured", "complete", "model",    "onnxruntime", "optimization",
    "threads", "runs",    "dims",     "values",   "total_ns", "costs",       "spread_frac"};
  uint32_t version = 0;
  psplit_i_json_u32(psplit_i_json_need(root, "version"), 1, 1, &version);
  PSPLIT_I_JSON_KEYS(root, known);
  psplit_i_json_flag(psplit_i_json_find(root, "measured"), &table->measured);
  psplit_i_json_flag(psplit_i_json_find(root, "complete"), &table->complete);
  read_dims(table, psplit_i_json_find(root, "dims"));
  psplit_i_json_real(psplit_i_json_find(root, "spread_frac"), 0, HUGE_VAL, &table->spread_frac);
  const psplit_i_json_item level = psplit_i_json_find(root, "optimization");
  table->unblocked = psplit_i_json_is_integer(level) && psplit_i_json_number_or(level, 99) < 99;
  read_values(table, psplit_i_json_find(root, "values"));
  const psplit_i_json_item list = psplit_i_json_need(root, "costs");
  const size_t n = psplit_i_json_length(&list, 0, SIZE_MAX);
  for (size_t i = 0; i < n && root->reader->code == PSPLIT_OK; i++)
    read_row(table, psplit_i_json_element(&list, i));
}

/* --- telling kinds apart --- */

/* A text as it is, or mended where it is none. */
static psplit_i_json_item load(psplit_i_json_reader *r, const char *text, size_t n_bytes) {
  psplit_diag *diag = r->diag, why = {0};
  psplit_i_text mended = {0};
  r->diag = &why;
  psplit_i_json_item root = psplit_i_json_load(r, text, n_bytes);
  r->diag = diag;
  if (r->code == PSPLIT_MALFORMED) {
    psplit_i_cost_profile_mend(text, n_bytes, &mended);
    *r = (psplit_i_json_reader){.code = mended.failed ? PSPLIT_NOMEM : PSPLIT_OK};
    if (!mended.failed && mended.bytes) root = psplit_i_json_load(r, mended.bytes, mended.n);
    psplit_i_text_fini(&mended);
    r->diag = diag;
  }
  if (!root.value && r->code == PSPLIT_NOMEM)
    r->code = psplit_i_nomem(diag);
  else if (!root.value)
    r->code =
      psplit_i_fail(diag, PSPLIT_MALFORMED,
                    "%s; a profile is whole only once its session has ended it", why.message);
  return root;
}

/* *out_table may be set on failure too. */
static psplit_code read_loaded(const psplit_i_json_item *root, psplit_cost_table **out_table) {
  psplit_i_json_reader *r = root->reader;
  const bool bare = psplit_i_json_is_array(*root);
  const psplit_i_json_item events = bare ? *root : psplit_i_json_find(root, "traceEvents");
  const bool own =
    !bare && strcmp(psplit_i_json_borrow(psplit_i_json_find(root, "format")), FORMAT) == 0;
  if (!own && !psplit_i_json_is_array(events))
    return psplit_i_fail_about(r->diag, PSPLIT_INVALID, PSPLIT_I_HELPS(COSTS_FILE),
                               "it is JSON, but \"format\" is not \"%s\"", FORMAT);
  psplit_cost_table *table =
    psplit_i_cost_table_new(own ? PSPLIT_I_COSTS_OWN : PSPLIT_I_COSTS_PROFILE);
  if (!table) return psplit_i_nomem(r->diag);
  *out_table = table;
  r->arena = &table->arena;
  if (own)
    read_own(root, table);
  else
    psplit_i_cost_profile_read(&events, table);
  return r->code;
}

static psplit_code read_json(const char *text, size_t n_bytes, psplit_diag *diag,
                             psplit_cost_table **out_table) {
  psplit_i_json_reader reader = {.diag = diag};
  psplit_cost_table *table = NULL;
  psplit_i_json_item root = load(&reader, text, n_bytes);
  const psplit_code code = root.value ? read_loaded(&root, &table) : reader.code;
  psplit_i_json_release(&root);
  if (code != PSPLIT_OK)
    psplit_cost_table_destroy(table);
  else
    *out_table = table;
  return code;
}

static psplit_code read_any(const char *text, size_t n_bytes, psplit_diag *diag,
                            psplit_cost_table **out_table) {
  psplit_i_cost_format format;
  size_t at = 0;
  const psplit_i_foreign *foreign = psplit_i_foreign_to_text(text, n_bytes);
  if (foreign)
    return psplit_i_fail(diag, PSPLIT_MALFORMED, "it is not a costs file: it is %s%s", foreign->is,
                         foreign->helps);
  while (at < n_bytes && strchr(" \t\r\n", text[at])) at++;
  if (at < n_bytes && (text[at] == '{' || text[at] == '['))
    return read_json(text, n_bytes, diag, out_table);
  if (!psplit_i_cost_csv_known(text, n_bytes, &format))
    return psplit_i_fail_about(diag, PSPLIT_MALFORMED, PSPLIT_I_HELPS(COSTS_FILE),
                               "it is not a costs file");
  psplit_cost_table *table = psplit_i_cost_table_new(format);
  if (!table) return psplit_i_nomem(diag);
  const psplit_code code = psplit_i_cost_csv_read(text, n_bytes, table, diag);
  if (code != PSPLIT_OK)
    psplit_cost_table_destroy(table);
  else
    *out_table = table;
  return code;
}

psplit_code psplit_cost_table_parse(const char *name, const char *text, size_t n_bytes,
                                    psplit_diag *diag, psplit_cost_table **out_table) {
  psplit_code code;
  psplit_cost_table *table = NULL;
  PSPLIT_TRY(read_any(text, n_bytes, diag, &table));
  table->name = psplit_i_arena_strndup(&table->arena, name, strlen(name));
  if (!table->name) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_table = table;
out:
  if (code == PSPLIT_OK) return code;
  psplit_cost_table_destroy(table);
  psplit_i_diag_context(diag, "%s", name);
  return code;
}
