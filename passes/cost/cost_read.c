/* Costs files: which kind one is, and our own JSON. */
#include "cost_table.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FORMAT[] = "onnx-pipeline-split-costs";
static const double MOST_NS = 1e18; /* 31 years: sums stay within 64 bits */

/* --- our own JSON --- */

static psplit_code wrong(psplit_diag *diag, const char *place, const char *what) {
  return psplit_i_fail(diag, PSPLIT_INVALID, "%s: %s", place, what);
}

static psplit_code check_keys(const json_t *object, const char *place, const char *const *known,
                              psplit_diag *diag) {
  const char *key;
  json_t *value;
  if (!json_is_object(object)) return wrong(diag, place, "must be an object");
  json_object_foreach((json_t *)(uintptr_t)object, key, value) {
    size_t i = 0;
    while (known[i] && strcmp(known[i], key) != 0) i++;
    if (!known[i])
      return psplit_i_fail(diag, PSPLIT_INVALID, "%s: \"%.80s\" is not a key that is known here",
                           place, key);
  }
  return PSPLIT_OK;
}

/* A list of names that are not empty; none where the key is missing. */
static psplit_code read_names(psplit_cost_table *table, const json_t *object, const char *place,
                              const char *key, psplit_diag *diag, const char *const **out,
                              uint32_t *out_n) {
  const json_t *list = json_object_get(object, key);
  const size_t n = json_array_size(list);
  if (!list) return PSPLIT_OK;
  char here[96];
  snprintf(here, sizeof here, "%s.%s", place, key);
  if (!json_is_array(list) || n == 0 || n >= PSPLIT_NONE)
    return wrong(diag, here, "must be an array of names that is not empty");
  const char **names = psplit_i_arena_array(&table->arena, n, sizeof *names);
  if (!names) return psplit_i_nomem(diag);
  for (size_t i = 0; i < n; i++) {
    const json_t *item = json_array_get(list, i);
    if (!json_is_string(item) || json_string_length(item) == 0)
      return wrong(diag, here, "must hold names: strings that are not empty");
    names[i] =
      psplit_i_arena_strndup(&table->arena, json_string_value(item), json_string_length(item));
    if (!names[i]) return psplit_i_nomem(diag);
  }
  *out = names;
  *out_n = (uint32_t)n;
  return PSPLIT_OK;
}

static psplit_code read_row(psplit_cost_table *table, const json_t *item, const char *place,
                            psplit_diag *diag) {
  static const char *const known[] = {"nodes", "outputs", "kernel", "ns", "workspace_bytes", NULL};
  psplit_code code;
  psplit_i_cost_row *row = psplit_i_cost_table_add(table);
  if (!row) return psplit_i_nomem(diag);
  PSPLIT_TRY(check_keys(item, place, known, diag));
  PSPLIT_TRY(read_names(table, item, place, "nodes", diag, &row->nodes, &row->n_nodes));
  PSPLIT_TRY(read_names(table, item, place, "outputs", diag, &row->values, &row->n_values));
  if (!row->n_nodes && !row->n_values)
    return wrong(diag, place, "needs \"nodes\" or \"outputs\": what the time is of");
  row->label = row->n_nodes ? row->nodes[0] : row->values[0];
  const json_t *kernel = json_object_get(item, "kernel"), *ns = json_object_get(item, "ns"),
               *workspace = json_object_get(item, "workspace_bytes");
  char here[96];
  if (kernel && !json_is_string(kernel)) {
    snprintf(here, sizeof here, "%s.kernel", place);
    return wrong(diag, here, "must be a string");
  }
  if (ns) {
    row->ns = json_is_number(ns) ? json_number_value(ns) : NAN;
    snprintf(here, sizeof here, "%s.ns", place);
    if (!(row->ns >= 0 && row->ns <= MOST_NS))
      return wrong(diag, here, "must be a number of nanoseconds from 0 to 1e18");
  }
  if (workspace) {
    snprintf(here, sizeof here, "%s.workspace_bytes", place);
    if (!json_is_integer(workspace) || json_integer_value(workspace) < 0)
      return wrong(diag, here, "must be an integer from 0");
    row->workspace_bytes = (uint64_t)json_integer_value(workspace);
  }
  if (!ns && !workspace) return wrong(diag, place, "needs \"ns\" or \"workspace_bytes\"");
out:
  return code;
}

static psplit_code read_flag(const json_t *root, const char *key, psplit_diag *diag, bool *out) {
  const json_t *item = json_object_get(root, key);
  if (item && !json_is_boolean(item)) return wrong(diag, key, "must be true or false");
  *out = json_is_true(item);
  return PSPLIT_OK;
}

static psplit_code read_dims(const json_t *dims, psplit_cost_table *table, psplit_diag *diag) {
  const char *key;
  json_t *value;
  if (dims && !json_is_object(dims)) return wrong(diag, "dims", "must be an object");
  json_object_foreach((json_t *)(uintptr_t)dims, key, value) {
    if (!json_is_integer(value) || json_integer_value(value) < 0)
      return wrong(diag, "dims", "must hold integers from 0");
    const psplit_dim_value dim = {psplit_i_arena_strndup(&table->arena, key, strlen(key)),
                                  json_integer_value(value)};
    if (!dim.name || !psplit_i_vec_push(&table->dims, dim)) return psplit_i_nomem(diag);
  }
  return PSPLIT_OK;
}

static psplit_code read_own(const json_t *root, psplit_cost_table *table, psplit_diag *diag) {
  static const char *const known[] = {
    "format",  "version", "measured", "complete", "model", "onnxruntime", "optimization",
    "threads", "runs",    "dims",     "total_ns", "costs", NULL};
  psplit_code code;
  const json_t *version = json_object_get(root, "version"), *list = json_object_get(root, "costs");
  if (!json_is_integer(version) || json_integer_value(version) != 1)
    return wrong(diag, "version", "must be 1");
  PSPLIT_TRY(check_keys(root, "file", known, diag));
  PSPLIT_TRY(read_flag(root, "measured", diag, &table->measured));
  PSPLIT_TRY(read_flag(root, "complete", diag, &table->complete));
  PSPLIT_TRY(read_dims(json_object_get(root, "dims"), table, diag));
  if (!json_is_array(list)) return wrong(diag, "costs", "must be an array");
  for (size_t i = 0; i < json_array_size(list); i++) {
    char place[64];
    snprintf(place, sizeof place, "costs[%zu]", i);
    PSPLIT_TRY(read_row(table, json_array_get(list, i), place, diag));
  }
out:
  return code;
}

/* --- telling kinds apart --- */

static psplit_code read_json(const char *text, size_t n_bytes, psplit_diag *diag,
                             psplit_cost_table **out_table) {
  json_error_t error;
  psplit_code code;
  psplit_cost_table *table = NULL;
  json_t *root = json_loadb(text, n_bytes, JSON_REJECT_DUPLICATES, &error);
  if (!root) {
    json_error_t ignored; /* that of the file as it is counts */
    psplit_i_text mended = {0};
    psplit_i_cost_profile_mend(text, n_bytes, &mended);
    if (!mended.failed && mended.bytes)
      root = json_loadb(mended.bytes, mended.n, JSON_REJECT_DUPLICATES, &ignored);
    psplit_i_text_fini(&mended);
  }
  if (!root)
    return psplit_i_fail(diag, PSPLIT_MALFORMED,
                         "line %d: %s; a profile is whole only once its session has ended it",
                         error.line, error.text);
  const json_t *format = json_object_get(root, "format");
  const json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
  const bool own = json_is_string(format) && strcmp(json_string_value(format), FORMAT) == 0;
  if (!own && !json_is_array(events)) {
    code = psplit_i_fail_about(diag, PSPLIT_INVALID, PSPLIT_I_HELPS(COSTS_FILE),
                               "it is JSON, but \"format\" is not \"%s\"", FORMAT);
    goto out;
  }
  table = psplit_i_cost_table_new(own ? PSPLIT_I_COSTS_OWN : PSPLIT_I_COSTS_PROFILE);
  code = !table ? psplit_i_nomem(diag)
         : own  ? read_own(root, table, diag)
                : psplit_i_cost_profile_read(events, table, diag);
out:
  json_decref(root);
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
  while (at < n_bytes && strchr(" \t\r\n", text[at])) at++;
  if (at < n_bytes && (text[at] == '{' || text[at] == '['))
    return read_json(text, n_bytes, diag, out_table);
  if (!psplit_i_cost_csv_known(text, n_bytes, &format))
    return psplit_i_fail_about(diag, PSPLIT_MALFORMED, PSPLIT_I_HELPS(COSTS_FILE),
                               "it is no costs file");
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
  if (!table->name) PSPLIT_TRY(psplit_i_nomem(diag));
  *out_table = table;
out:
  if (code == PSPLIT_OK) return code;
  psplit_cost_table_destroy(table);
  psplit_i_diag_context(diag, "%s", name);
  return code;
}
