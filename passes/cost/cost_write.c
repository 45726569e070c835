/* A profiled run as a costs file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_table.h"
#include "operator.h"

static const char BLOCKS[] = "com.microsoft.nchwc"; /* domain of kernels that work on blocks */

static const double MOST_START_NS = 3000; /* to start a kernel, at most */

typedef struct writer {
  const psplit_i_graph *graph, *ran; /* the model, and as it was optimised; NULL: not at hand */
  const psplit_cost_table *table;
  psplit_i_cost_map map;
  psplit_i_cost_names names;
  psplit_i_run_sizes sizes;
  uint8_t *blocked; /* [rows] some kernel of the row worked on blocks of channels */
  double *ns; /* [rows] of all rows that share a row's nodes, at the first of them; < 0: none */
} writer;

/* Rows with the same nodes become one. Kernels' times are the least that were seen. What the
 * fastest run took besides goes to each kernel alike, as far as starting one takes; the rest is of
 * a machine that was busy, and of the profiler where it made kernels slower than they are: all
 * kernels are longer or shorter by as much. Then all are stretched to a run as runs are mostly. */
static psplit_code join_rows(writer *w, const psplit_profiled_run *run, psplit_i_arena *arena,
                             psplit_diag *diag) {
  const double total_ns = (double)run->least_ns;
  const double stretch =
    run->least_ns > 0 && run->median_ns > run->least_ns ? (double)run->median_ns / total_ns : 1;
  const size_t n_rows = w->table->rows.n;
  double sum = 0, n_kernels = 0;
  w->ns = psplit_i_arena_array(arena, n_rows, sizeof *w->ns);
  if (!w->ns) return psplit_i_nomem(diag);
  for (uint32_t r = 0; r < n_rows; r++) {
    w->ns[r] = w->map.off[r] == w->map.off[r + 1] ? -1 : 0;
    const uint32_t at = w->map.same_as[r];
    if (w->map.off[at] == w->map.off[at + 1]) continue;
    sum += w->table->rows.items[r].ns;
    n_kernels++;
  }
  double each_ns = total_ns > sum ? (total_ns - sum) / n_kernels : 0;
  if (each_ns > MOST_START_NS) each_ns = MOST_START_NS;
  const double factor = total_ns > 0 && sum > 0 ? (total_ns - each_ns * n_kernels) / sum : 1;
  for (uint32_t r = 0; r < n_rows; r++) {
    const uint32_t at = w->map.same_as[r];
    if (w->ns[at] >= 0) w->ns[at] += stretch * (w->table->rows.items[r].ns * factor + each_ns);
  }
  return PSPLIT_OK;
}

/* Whether a kernel leaves blocks: those of the domain do, but for the one that brings them back;
 * others that follow them compute on blocks as on plain tensors, so what they read tells. */
static bool leaves_blocks(const psplit_i_graph *ran, uint32_t n, const uint8_t *blocked) {
  const psplit_i_node *node = &ran->nodes[n];
  if (strcmp(node->domain, BLOCKS) == 0)
    return !psplit_i_kernel_has(node->op_type, PSPLIT_I_OP_LAYOUT) ||
           psplit_i_kernel_has(node->op_type, PSPLIT_I_OP_FOR_NEXT);
  if (!psplit_i_node_has(node, PSPLIT_I_OP_KEEPS_BLOCKS)) return false;
  PSPLIT_FOR_EACH_READ(node, value) {
    const uint32_t maker = ran->values[value].producer;
    if (maker != PSPLIT_NONE && blocked[maker]) return true;
  }
  return false;
}

static psplit_code mark_blocked(writer *w, psplit_i_arena *arena, psplit_diag *diag) {
  const size_t n_rows = w->table->rows.n;
  uint8_t *leaves = PSPLIT_NEW(arena, uint8_t, n_rows);
  w->blocked = PSPLIT_NEW(arena, uint8_t, n_rows);
  if (!leaves || !w->blocked) return psplit_i_nomem(diag);
  for (uint32_t i = 0; w->ran && i < n_rows; i++) {
    const uint32_t r = w->ran->topo[i];
    leaves[r] = leaves_blocks(w->ran, r, leaves);
    if (leaves[r] && !psplit_i_kernel_has(w->ran->nodes[r].op_type, PSPLIT_I_OP_LAYOUT))
      w->blocked[w->map.same_as[r]] = 1;
  }
  return PSPLIT_OK;
}

static bool has_own_name(const writer *w, uint32_t n) {
  const char *name = w->graph->nodes[n].name;
  return *name && psplit_i_cost_names_node(&w->names, name) == n && w->names.next[n] == PSPLIT_NONE;
}

static const char *first_output(const writer *w, uint32_t n) {
  const psplit_i_node *node = &w->graph->nodes[n];
  for (uint32_t o = 0; o < node->n_outputs; o++)
    if (node->outputs[o] != PSPLIT_NONE) return w->graph->values[node->outputs[o]].name;
  return NULL;
}

/* The list of a row's nodes: those with a name of their own, or what the others make. */
static void put_nodes(const writer *w, uint32_t r, bool by_name, psplit_i_json *json) {
  bool open = false;
  for (uint32_t i = w->map.off[r]; i < w->map.off[r + 1]; i++) {
    const uint32_t n = w->map.node[i];
    if (has_own_name(w, n) != by_name) continue;
    const char *text = by_name ? w->graph->nodes[n].name : first_output(w, n);
    if (!text) continue;
    if (!open) {
      psplit_i_json_key(json, by_name ? "nodes" : "outputs");
      psplit_i_json_open(json, '[');
    }
    open = true;
    psplit_i_json_string(json, text);
  }
  if (open) psplit_i_json_close(json, ']');
}

static void put_text(psplit_i_json *json, const char *key, const char *value) {
  psplit_i_json_key(json, key);
  psplit_i_json_string(json, value);
}

static void put_int(psplit_i_json *json, const char *key, int64_t value) {
  psplit_i_json_key(json, key);
  psplit_i_json_int(json, value);
}

static void put_flag(psplit_i_json *json, const char *key, bool value) {
  psplit_i_json_key(json, key);
  psplit_i_json_bool(json, value);
}

static void write_rows(const writer *w, psplit_i_json *json) {
  psplit_i_json_key(json, "costs");
  psplit_i_json_open(json, '[');
  for (uint32_t r = 0; r < w->table->rows.n; r++) {
    if (w->ns[r] < 0) continue;
    psplit_i_json_open(json, '{');
    json->compact = true;
    put_nodes(w, r, true, json);
    put_nodes(w, r, false, json);
    if (*w->table->rows.items[r].op) put_text(json, "kernel", w->table->rows.items[r].op);
    put_int(json, "ns", (int64_t)llround(w->ns[r]));
    if (w->ran) put_flag(json, "blocked", w->blocked[r]);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
  psplit_i_json_close(json, ']');
}

static void write_sizes(const writer *w, psplit_i_json *json) {
  const psplit_i_run_sizes *sizes = &w->sizes;
  if (sizes->dims.n) {
    psplit_i_json_key(json, "dims");
    psplit_i_json_open(json, '{');
    for (size_t i = 0; i < sizes->dims.n; i++)
      put_int(json, sizes->dims.items[i].name, sizes->dims.items[i].value);
    psplit_i_json_close(json, '}');
  }
  if (!sizes->values.n) return;
  psplit_i_json_key(json, "values");
  psplit_i_json_open(json, '{');
  for (size_t i = 0; i < sizes->values.n; i++) {
    psplit_i_json_key(json, sizes->values.items[i].value);
    psplit_i_json_open(json, '[');
    json->compact = true;
    for (int32_t axis = 0; axis < sizes->values.items[i].rank; axis++)
      psplit_i_json_int(json, sizes->values.items[i].dims[axis]);
    psplit_i_json_close(json, ']');
    json->compact = false;
  }
  psplit_i_json_close(json, '}');
}

static void write_file(const writer *w, const psplit_profiled_run *run, const char *model,
                       psplit_i_text *out) {
  psplit_i_json json;
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  put_text(&json, "format", "onnx-pipeline-split-costs");
  put_int(&json, "version", 1);
  put_flag(&json, "measured", true);
  put_flag(&json, "complete", true);
  put_text(&json, "model", model);
  if (run->onnxruntime) put_text(&json, "onnxruntime", run->onnxruntime);
  put_int(&json, "optimization", run->optimization);
  put_int(&json, "threads", run->n_threads);
  put_int(&json, "runs", run->n_runs);
  if (run->n_runs > 1) {
    psplit_i_json_key(&json, "spread_frac");
    psplit_i_json_double(&json, round(run->spread_frac * 1000) / 1000);
  }
  write_sizes(w, &json);
  put_int(&json, "total_ns", run->median_ns);
  write_rows(w, &json);
  psplit_i_json_close(&json, '}');
  psplit_i_text_puts(out, "\n");
}

/* Whether the nodes of the optimised model are the kernels, one by one. */
static bool lines_up(const psplit_cost_table *kernels, const psplit_i_graph *optimized) {
  if (kernels->rows.n != optimized->n_nodes) return false;
  for (uint32_t n = 0; n < optimized->n_nodes; n++) {
    const psplit_i_node *node = &optimized->nodes[n];
    const psplit_i_cost_row *row = &kernels->rows.items[n];
    if (strcmp(node->op_type, row->op) != 0 || (*node->name && strcmp(node->name, row->label) != 0))
      return false;
  }
  return true;
}

psplit_code psplit_cost_table_profile(const psplit_model *model, const psplit_model *optimized,
                                      const psplit_profiled_run *run, psplit_diag *diag,
                                      char **out_text) {
  psplit_code code;
  psplit_cost_table *table = NULL;
  psplit_i_arena arena;
  psplit_i_text text = {0};
  writer w = {.graph = psplit_i_model_graph(model)};
  psplit_i_arena_init(&arena, 0);
  psplit_i_intern_init(&w.names.names);
  PSPLIT_TRY(psplit_cost_table_parse("the profile", run->profile, run->n_profile, diag, &table));
  if (table->format != PSPLIT_I_COSTS_PROFILE)
    PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INVALID, "it is no profile of ONNX Runtime"));
  w.table = table;
  const psplit_i_graph *ran = optimized ? psplit_i_model_graph(optimized) : NULL;
  if (ran && !lines_up(table, ran)) ran = NULL;
  w.ran = ran;
  PSPLIT_TRY(psplit_i_cost_match(table, w.graph, ran, &arena, diag, &w.map));
  if (!w.map.n_matched)
    PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INVALID,
                             "no kernel is one of the model's, such as %.100s",
                             table->rows.items[0].label));
  psplit_i_cost_names_fini(&w.names);
  PSPLIT_TRY(psplit_i_cost_names_init(&w.names, w.graph, &arena, diag));
  PSPLIT_TRY(join_rows(&w, run, &arena, diag));
  PSPLIT_TRY(mark_blocked(&w, &arena, diag));
  PSPLIT_TRY(psplit_i_run_sizes_find(table, &w.names, ran, run, &arena, diag, &w.sizes));
  const char *path = psplit_i_model_path(model), *slash = strrchr(path, '/');
  write_file(&w, run, slash ? slash + 1 : path, &text);
  if (text.failed) PSPLIT_TRY(psplit_i_nomem(diag));
  *out_text = text.bytes;
  text.bytes = NULL;
out:
  psplit_i_text_fini(&text);
  psplit_i_run_sizes_fini(&w.sizes);
  psplit_i_cost_names_fini(&w.names);
  psplit_cost_table_destroy(table);
  psplit_i_arena_fini(&arena);
  return code;
}
