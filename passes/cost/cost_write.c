/* A profiled run as a costs file. */
#include <math.h>
#include <string.h>

#include "base_name.h"
#include "cost_table.h"
#include "json_put.h"
#include "operator.h"

static const char BLOCKS[] = "com.microsoft.nchwc"; /* domain of kernels that work on blocks */

static const double MOST_START_NS = 3000; /* to start a kernel, at most */

/* A run of a model, or of one of its stages. */
typedef struct writer {
  const psplit_i_graph *graph, *ran; /* the model, and as it was optimised; NULL: not at hand */
  const psplit_profiled_run *run;
  psplit_cost_table *table;
  psplit_i_arena *arena;
  psplit_i_cost_map map;
  psplit_i_cost_names names;
  psplit_i_run_sizes sizes;
  uint8_t *blocked; /* [rows] some kernel of the row worked on blocks of channels */
  double *ns; /* [rows] of all rows that share a row's nodes, at the first of them; < 0: none */
} writer;

/* The file of one or several of them. */
typedef struct file {
  const char *model; /* its name */
  writer *parts;     /* [n_parts] */
  uint32_t n_parts;
  psplit_i_intern made; /* by nodes that are told already, where there are several parts */
  bool failed;
} file;

/* Rows with the same nodes become one. Kernels' times are the least that were seen. What the
 * fastest run took besides goes to each kernel alike, as far as starting one takes; the rest is of
 * a machine that was busy, and of the profiler where it made kernels slower than they are: all
 * kernels are longer or shorter by as much. Then all are stretched to a run as runs are mostly. */
static psplit_code join_rows(writer *w, psplit_diag *diag) {
  const psplit_profiled_run *run = w->run;
  const double total_ns = (double)run->least_ns;
  const double stretch =
    run->least_ns > 0 && run->median_ns > run->least_ns ? (double)run->median_ns / total_ns : 1;
  const size_t n_rows = w->table->rows.n;
  double sum = 0, n_kernels = 0;
  w->ns = psplit_i_arena_array(w->arena, n_rows, sizeof *w->ns);
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

static psplit_code mark_blocked(writer *w, psplit_diag *diag) {
  const size_t n_rows = w->table->rows.n;
  uint8_t *leaves = PSPLIT_NEW(w->arena, uint8_t, n_rows);
  w->blocked = PSPLIT_NEW(w->arena, uint8_t, n_rows);
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

/* Whether a node of a stage is not told yet; from now on it is. */
static bool is_new(file *f, const char *output) {
  const uint32_t known = f->made.n;
  if (psplit_i_intern_add(&f->made, output) == PSPLIT_NONE) f->failed = true;
  return f->made.n > known;
}

/* Of several stages, the nodes of the row that none before has: their number. What only stands
 * between stages is no node of the model. */
static uint32_t keep_new(file *f, const writer *w, uint32_t r) {
  uint32_t n_kept = 0;
  for (uint32_t i = w->map.off[r]; i < w->map.off[r + 1]; i++) {
    const uint32_t at = w->map.node[i];
    const char *output = first_output(w, at);
    const bool kept =
      output &&
      (f->n_parts == 1 || (!psplit_i_node_is_boundary(&w->graph->nodes[at]) && is_new(f, output)));
    if (kept)
      n_kept++;
    else
      w->map.node[i] = PSPLIT_NONE;
  }
  return n_kept;
}

/* The list of a row's nodes: those with a name of their own, or what the others make. */
static void put_nodes(const file *f, const writer *w, uint32_t r, bool by_name,
                      psplit_i_json *json) {
  bool open = false;
  for (uint32_t i = w->map.off[r]; i < w->map.off[r + 1]; i++) {
    const uint32_t n = w->map.node[i];
    if (n == PSPLIT_NONE || (f->n_parts == 1 && has_own_name(w, n)) != by_name) continue;
    if (!open) {
      psplit_i_json_put_open(json, by_name ? "nodes" : "outputs", '[');
    }
    open = true;
    psplit_i_json_string(json, by_name ? w->graph->nodes[n].name : first_output(w, n));
  }
  if (open) psplit_i_json_close(json, ']');
}

static void write_rows(file *f, const writer *w, psplit_i_json *json) {
  for (uint32_t r = 0; w->table && r < w->table->rows.n; r++) {
    if (w->ns[r] < 0 || !keep_new(f, w, r)) continue;
    psplit_i_json_open(json, '{');
    json->compact = true;
    put_nodes(f, w, r, true, json);
    put_nodes(f, w, r, false, json);
    if (*w->table->rows.items[r].op)
      psplit_i_json_put_string(json, "kernel", w->table->rows.items[r].op);
    psplit_i_json_put_int(json, "ns", (int64_t)llround(w->ns[r]));
    if (w->ran) psplit_i_json_put_bool(json, "blocked", w->blocked[r]);
    psplit_i_json_close(json, '}');
    json->compact = false;
  }
}

/* What a stage adds to the sizes that those before it saw. */
static void write_dims(file *f, const writer *w, psplit_i_json *json, bool *open) {
  for (size_t i = 0; i < w->sizes.dims.n; i++) {
    if (f->n_parts > 1 && !is_new(f, w->sizes.dims.items[i].name)) continue;
    if (!*open) {
      psplit_i_json_put_open(json, "dims", '{');
    }
    *open = true;
    psplit_i_json_put_int(json, w->sizes.dims.items[i].name, w->sizes.dims.items[i].value);
  }
}

static void write_values(file *f, const writer *w, psplit_i_json *json, bool *open) {
  for (size_t i = 0; i < w->sizes.values.n; i++) {
    const psplit_i_seen *seen = &w->sizes.values.items[i];
    if (f->n_parts > 1 && !is_new(f, seen->value)) continue;
    if (!*open) {
      psplit_i_json_put_open(json, "values", '{');
    }
    *open = true;
    psplit_i_json_put_open(json, seen->value, '[');
    json->compact = true;
    for (int32_t axis = 0; axis < seen->rank; axis++) psplit_i_json_int(json, seen->dims[axis]);
    psplit_i_json_close(json, ']');
    json->compact = false;
  }
}

static void forget_told(file *f) {
  psplit_i_intern_fini(&f->made);
  psplit_i_intern_init(&f->made);
}

static void write_sizes(file *f, psplit_i_json *json) {
  bool open = false;
  for (uint32_t p = 0; p < f->n_parts; p++) write_dims(f, &f->parts[p], json, &open);
  if (open) psplit_i_json_close(json, '}');
  forget_told(f);
  open = false;
  for (uint32_t p = 0; p < f->n_parts; p++) write_values(f, &f->parts[p], json, &open);
  if (open) psplit_i_json_close(json, '}');
  forget_told(f);
}

static void write_file(file *f, psplit_i_text *out) {
  const psplit_profiled_run *run = f->parts[0].run;
  psplit_i_json json;
  double spread_frac = 0;
  int64_t total_ns = 0;
  for (uint32_t p = 0; p < f->n_parts; p++) {
    spread_frac = fmax(spread_frac, f->parts[p].run->spread_frac);
    total_ns = psplit_i_sat_add_i64(total_ns, f->parts[p].run->median_ns);
  }
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_string(&json, "format", "onnx-pipeline-split-costs");
  psplit_i_json_put_int(&json, "version", 1);
  psplit_i_json_put_bool(&json, "measured", true);
  psplit_i_json_put_bool(&json, "complete", true);
  psplit_i_json_put_string(&json, "model", f->model);
  if (run->onnxruntime) psplit_i_json_put_string(&json, "onnxruntime", run->onnxruntime);
  psplit_i_json_put_int(&json, "optimization", run->optimization);
  psplit_i_json_put_int(&json, "threads", run->n_threads);
  psplit_i_json_put_int(&json, "runs", run->n_runs);
  if (run->n_runs > 1) {
    psplit_i_json_put_double(&json, "spread_frac", round(spread_frac * 1000) / 1000);
  }
  write_sizes(f, &json);
  psplit_i_json_put_int(&json, "total_ns", total_ns);
  psplit_i_json_put_open(&json, "costs", '[');
  for (uint32_t p = 0; p < f->n_parts; p++) write_rows(f, &f->parts[p], &json);
  psplit_i_json_close(&json, ']');
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

/* `w` with its arena set and the rest zeroed; to be finished in any case. */
static psplit_code read_part(const psplit_profiled_stage *stage, psplit_diag *diag, writer *w) {
  psplit_code code = PSPLIT_OK;
  w->graph = psplit_i_model_graph(stage->model);
  w->run = &stage->run;
  if (!stage->run.n_profile) return PSPLIT_OK;
  PSPLIT_TRY(psplit_cost_table_parse("the profile", stage->run.profile, stage->run.n_profile, diag,
                                     &w->table));
  if (w->table->format != PSPLIT_I_COSTS_PROFILE)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID, "it is not a profile of ONNX Runtime"));
  const psplit_i_graph *ran = stage->optimized ? psplit_i_model_graph(stage->optimized) : NULL;
  w->ran = ran && lines_up(w->table, ran) ? ran : NULL;
  PSPLIT_TRY(psplit_i_cost_match(w->table, w->graph, w->ran, w->arena, diag, &w->map));
  PSPLIT_TRY(psplit_i_cost_names_init(&w->names, w->graph, w->arena, diag));
  PSPLIT_TRY(join_rows(w, diag));
  PSPLIT_TRY(mark_blocked(w, diag));
  PSPLIT_TRY(
    psplit_i_run_sizes_find(w->table, &w->names, w->ran, w->run, w->arena, diag, &w->sizes));
out:
  return code;
}

static void close_part(writer *w) {
  psplit_i_run_sizes_fini(&w->sizes);
  psplit_i_cost_names_fini(&w->names);
  psplit_cost_table_destroy(w->table);
}

psplit_code psplit_cost_table_profile_stages(const char *name, const psplit_profiled_stage *stages,
                                             uint32_t n_stages, psplit_diag *diag,
                                             char **out_text) {
  psplit_code code = PSPLIT_OK;
  psplit_i_arena arena;
  psplit_i_text text = {0};
  file f = {.model = name, .n_parts = n_stages};
  uint32_t n_matched = 0;
  const char *other = "none";
  psplit_i_arena_init(&arena, 0);
  psplit_i_intern_init(&f.made);
  f.parts = PSPLIT_NEW(&arena, writer, n_stages);
  if (!f.parts || !n_stages) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < n_stages; s++) {
    writer *w = &f.parts[s];
    w->arena = &arena;
    psplit_i_intern_init(&w->names.names);
    PSPLIT_TRY(read_part(&stages[s], diag, w));
    n_matched += w->map.n_matched;
    if (w->table && w->table->rows.n) other = w->table->rows.items[0].label;
  }
  if (!n_matched)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID,
                              "no kernel is one of the model's, such as %.100s", other));
  write_file(&f, &text);
  if (text.failed || f.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_text = text.bytes;
  text.bytes = NULL;
out:
  for (uint32_t s = 0; f.parts && s < n_stages; s++) close_part(&f.parts[s]);
  psplit_i_intern_fini(&f.made);
  psplit_i_text_fini(&text);
  psplit_i_arena_fini(&arena);
  return code;
}

psplit_code psplit_cost_table_profile(const psplit_model *model, const psplit_model *optimized,
                                      const psplit_profiled_run *run, psplit_diag *diag,
                                      char **out_text) {
  const char *name = psplit_i_base_name(psplit_i_model_path(model));
  const psplit_profiled_stage whole = {.model = model, .optimized = optimized, .run = *run};
  return psplit_cost_table_profile_stages(name, &whole, 1, diag, out_text);
}
