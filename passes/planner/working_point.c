/* Sizes of a decoder's step, as values of symbolic sizes. */
#include "working_point.h"

#include <inttypes.h>
#include <string.h>

/* Sizes by axis of an input: what each stands for, as far as the name tells. */
typedef enum role { NOTHING, BATCH, TOKENS, PAST, TOTAL } role;

typedef struct name_rule {
  const char *ending;
  role axes[2]; /* of rank 2; the last one is that of rank 1 */
} name_rule;

static const name_rule RULES[] = {
  {"input_ids", {BATCH, TOKENS}},      {"inputs_embeds", {BATCH, TOKENS}},
  {"position_ids", {BATCH, TOKENS}},   {"cache_position", {BATCH, TOKENS}},
  {"token_type_ids", {BATCH, TOKENS}}, {"attention_mask", {BATCH, TOTAL}},
};

/* What belongs to an encoder has sizes of its own. */
static bool is_of_encoder(const char *name) {
  return strstr(name, "encoder") || strstr(name, "cross");
}

static int64_t size_of(const psplit_working_point *point, role r) {
  switch (r) {
    case BATCH: return point->batch;
    case TOKENS: return point->tokens;
    case PAST: return point->past;
    case TOTAL: return psplit_i_sat_add_i64(point->past, point->tokens);
    case NOTHING: break;
  }
  return -1;
}

typedef struct taker {
  psplit_planner *planner;
  const psplit_i_shapes *shapes; /* with no size given */
  psplit_dim_value *dims;        /* [n_most] */
  size_t n, n_given, n_most;
  const char *batch; /* the first size of the tokens; NULL: it has no name */
  psplit_diag *diag;
} taker;

static psplit_code give(taker *t, const char *input, psplit_dim dim, role r) {
  const char *name = psplit_i_dim_name(psplit_i_shapes_dims(t->shapes), dim);
  const int64_t size = size_of(t->planner->options.decode, r);
  if (!name || size < 0) return PSPLIT_OK;
  for (size_t i = 0; i < t->n; i++) {
    if (strcmp(t->dims[i].name, name) != 0) continue;
    if (i < t->n_given || t->dims[i].value == size) return PSPLIT_OK;
    return psplit_i_fail(t->diag, PSPLIT_USAGE,
                         "the size \"%s\" would have to be %" PRId64 " by input \"%s\" and %" PRId64
                         " by another one: give it by itself",
                         name, size, input, t->dims[i].value);
  }
  char *own = psplit_i_arena_strndup(&t->planner->arena, name, strlen(name));
  if (!own) return psplit_i_nomem(t->diag);
  t->dims[t->n++] = (psplit_dim_value){own, size};
  return PSPLIT_OK;
}

static bool is_batch(const taker *t, psplit_dim dim) {
  const char *name = psplit_i_dim_name(psplit_i_shapes_dims(t->shapes), dim);
  return name && t->batch && strcmp(name, t->batch) == 0;
}

/* [batch, heads, past, head], or with the batch elsewhere, where its name tells: every other open
 * axis is the past. */
static psplit_code take_state(taker *t, const char *name, const psplit_i_vtype *type) {
  psplit_code code = PSPLIT_OK;
  int32_t batch = 0;
  for (int32_t a = type->rank; a-- > 0;)
    if (is_batch(t, type->dims[a])) batch = a;
  for (int32_t a = 0; a < type->rank; a++) {
    const role r = a == batch ? BATCH : is_of_encoder(name) ? NOTHING : PAST;
    PSPLIT_TRY(give(t, name, type->dims[a], r));
  }
out:
  return code;
}

/* Masks with a row for each new token, positions of several kinds: the last axes are those of rank
 * 2, or of a mask the tokens of rows and of columns. */
static psplit_code take_rows(taker *t, const char *name, const psplit_i_vtype *type,
                             const name_rule *rule) {
  psplit_code code = PSPLIT_OK;
  const bool mask = rule->axes[1] == TOTAL;
  PSPLIT_TRY(give(t, name, type->dims[type->rank - 1], rule->axes[1]));
  PSPLIT_TRY(give(t, name, type->dims[type->rank - 2], mask ? TOKENS : rule->axes[0]));
  if (mask) PSPLIT_TRY(give(t, name, type->dims[0], BATCH));
out:
  return code;
}

/* The input of tokens whose first size is the batch. */
static void find_batch(taker *t) {
  const psplit_i_graph *graph = t->planner->graph;
  for (uint32_t i = 0; i < graph->n_inputs && !t->batch; i++) {
    const psplit_i_vtype *type = psplit_i_shapes_type(t->shapes, graph->inputs[i]);
    const char *name = graph->values[graph->inputs[i]].name;
    if (type->rank >= 2 && !is_of_encoder(name) &&
        (psplit_i_ends_with(name, "input_ids") || psplit_i_ends_with(name, "inputs_embeds")))
      t->batch = psplit_i_dim_name(psplit_i_shapes_dims(t->shapes), type->dims[0]);
  }
}

static psplit_code take_named(taker *t, const char *name, const psplit_i_vtype *type,
                              bool *io_any) {
  psplit_code code = PSPLIT_OK;
  if (is_of_encoder(name)) return type->rank > 0 ? give(t, name, type->dims[0], BATCH) : PSPLIT_OK;
  for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
    if (!psplit_i_ends_with(name, RULES[i].ending)) continue;
    *io_any |= RULES[i].axes[1] == TOKENS;
    if (type->rank == 1) return give(t, name, type->dims[0], RULES[i].axes[1]);
    if (type->rank > 2 && !psplit_i_ends_with(name, "inputs_embeds"))
      return take_rows(t, name, type, &RULES[i]);
    for (int32_t a = 0; a < type->rank && a < 2; a++)
      PSPLIT_TRY(give(t, name, type->dims[a], RULES[i].axes[a]));
    return PSPLIT_OK;
  }
out:
  return code;
}

/* An output of a state is as long as all tokens together: a symbol that no input has. */
static psplit_code take_output(taker *t, uint32_t value) {
  psplit_code code = PSPLIT_OK;
  const char *name = t->planner->graph->values[value].name;
  const psplit_i_vtype *type = psplit_i_shapes_type(t->shapes, value);
  for (int32_t a = 1; a < type->rank && !is_of_encoder(name); a++) {
    const char *symbol = psplit_i_dim_name(psplit_i_shapes_dims(t->shapes), type->dims[a]);
    bool known = false;
    for (size_t i = 0; symbol && i < t->n; i++) known |= strcmp(t->dims[i].name, symbol) == 0;
    if (symbol && !known) PSPLIT_TRY(give(t, name, type->dims[a], TOTAL));
  }
out:
  return code;
}

static psplit_code take(taker *t) {
  psplit_code code;
  const psplit_i_graph *graph = t->planner->graph;
  psplit_i_states states;
  bool any = false;
  find_batch(t);
  PSPLIT_TRY(psplit_i_states_find(graph, t->shapes, &t->planner->named_states, &t->planner->scratch,
                                  t->diag, &states));
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const uint32_t input = graph->inputs[i];
    const psplit_i_vtype *type = psplit_i_shapes_type(t->shapes, input);
    const char *name = graph->values[input].name;
    PSPLIT_TRY(states.of[input] ? take_state(t, name, type) : take_named(t, name, type, &any));
  }
  for (uint32_t i = 0; i < states.n; i++) PSPLIT_TRY(take_output(t, states.items[i].output));
  if (!states.n || !any)
    code = psplit_i_fail_about(t->diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(DECODE),
                               "the model is not a decoder: it has no %s",
                               states.n ? "input_ids or the like" : "state from step to step");
out:
  return code;
}

static psplit_code check_point(const psplit_working_point *point, psplit_diag *diag) {
  if (point->past >= 0 && point->tokens >= 1 && point->batch >= 1) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_USAGE,
                       "a step has at least one token and one sequence, and no negative past");
}

psplit_code psplit_i_planner_take_point(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  psplit_planner_options *options = &planner->options;
  const psplit_i_graph *graph = planner->graph;
  taker t = {.planner = planner, .n = options->n_dims, .n_given = options->n_dims, .diag = diag};
  psplit_i_shapes *shapes = NULL;
  planner->n_given_dims = options->n_dims;
  if (!options->decode) return PSPLIT_OK;
  PSPLIT_TRY(check_point(options->decode, diag));
  if (options->prefill) PSPLIT_TRY(check_point(options->prefill, diag));
  if (options->prefill && !(options->prefill_frac > 0 && options->prefill_frac < 1))
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_USAGE, "the part of the steps must be above 0 and below 1"));
  if (options->prefill && options->n_costs)
    PSPLIT_FAIL(psplit_i_fail(
      diag, PSPLIT_USAGE, "measured costs are for steps of one size and cannot be used for two"));
  PSPLIT_TRY(psplit_i_shapes_create(graph, NULL, 0, NULL, diag, &shapes));
  t.shapes = shapes;
  t.n_most = t.n;
  for (uint32_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].input != PSPLIT_NONE || graph->values[v].is_output)
      if (psplit_i_shapes_type(shapes, v)->rank > 0)
        t.n_most += (size_t)psplit_i_shapes_type(shapes, v)->rank;
  t.dims = PSPLIT_NEW(&planner->arena, psplit_dim_value, t.n_most);
  if (!t.dims) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (t.n) memcpy(t.dims, options->dims, t.n * sizeof *t.dims);
  PSPLIT_TRY(take(&t));
  options->dims = t.dims;
  options->n_dims = t.n;
out:
  psplit_i_shapes_destroy(shapes);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

double psplit_i_mean_over_steps(const psplit_planner *planner, double own, double other) {
  const double f = planner->options.prefill_frac;
  return own * (1 - f) + other * f;
}
