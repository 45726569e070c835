/* needs: shapes, live  keeps: everything  breaks: nothing
 *
 * Gives every node its time on every class of device: by the roofline, or as the caller's tables
 * of costs say. A size that nothing fixes is counted as some
 * number all the same, said aloud once and named in the plan: ratios of costs rarely hang on it (a
 * batch scales them all), and a cut needs ratios. */
#include <inttypes.h>
#include <string.h>

#include "cost_table.h"
#include "devices_inside.h"
#include "pass.h"
#include "support.h"
#include "working_point.h"

static void fill_times(const psplit_planner *planner, const psplit_i_costs *costs, uint32_t device,
                       int64_t *out_ns) {
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    out_ns[n] = psplit_i_roofline_ns(planner, costs, device, n);
}

/* Devices with equal times are one class, if their runtimes lose as much by cuts. */
static bool same_class(const psplit_planner *planner, uint32_t a, uint32_t b) {
  const psplit_i_device_model *x = &planner->devices->devices[a].model;
  const psplit_i_device_model *y = &planner->devices->devices[b].model;
  return x->keeps_copies == y->keeps_copies && psplit_i_support_same(x->support, y->support) &&
         (!x->keeps_copies ||
          (x->overhead_ns == y->overhead_ns && x->memory_bandwidth == y->memory_bandwidth));
}

static psplit_code classify_devices(psplit_planner *planner, psplit_diag *diag) {
  const size_t n = planner->graph->n_nodes;
  planner->n_classes = 0;
  planner->node_ns = NULL;
  PSPLIT_VEC(int64_t *) classes = {0};
  psplit_code code = PSPLIT_OK;
  int64_t *spare = NULL;
  for (uint32_t d = 0; d < planner->n_candidates; d++) {
    uint32_t class_id = 0;
    if (d && psplit_i_devices_same(planner->devices, d - 1, d)) {
      class_id = planner->device_class[d - 1];
      goto known;
    }
    if (!spare && !(spare = psplit_i_arena_array(&planner->arena, n, sizeof *spare))) {
      code = psplit_i_nomem(diag);
      goto out;
    }
    fill_times(planner, planner->costs, d, spare);
    for (; class_id < classes.n; class_id++)
      if (memcmp(classes.items[class_id], spare, n * sizeof *spare) == 0 &&
          same_class(planner, planner->class_device[class_id], d))
        break;
    if (class_id == classes.n) {
      if (!psplit_i_vec_push(&classes, spare)) {
        code = psplit_i_nomem(diag);
        goto out;
      }
      planner->class_device[class_id] = d;
      spare = NULL;
    }
  known:
    planner->device_class[d] = planner->given_class[d] = class_id;
  }
  planner->n_classes = (uint32_t)classes.n;
  planner->node_ns = psplit_i_arena_array(&planner->arena, classes.n * n, sizeof *planner->node_ns);
  if (!planner->node_ns) code = psplit_i_nomem(diag);
  for (size_t c = 0; planner->node_ns && c < classes.n; c++)
    memcpy(planner->node_ns + c * n, classes.items[c], n * sizeof *planner->node_ns);
out:
  psplit_i_vec_fini(&classes);
  return code;
}

static void say_what_is_missing(const psplit_planner *planner) {
  const psplit_i_costs *costs = planner->costs;
  const uint32_t n_assumed = psplit_i_costs_n_assumed(costs);
  const uint32_t n_unknown = psplit_i_costs_n_unknown(costs);
  const uint32_t n_data = psplit_i_costs_n_data(costs);
  psplit_i_advice sizes = {.hint = PSPLIT_HINT_DIMS};
  uint32_t n = 0;
  for (const char *name; (name = psplit_i_costs_missing(costs, n)); n++)
    if (n < 7) sizes.arguments[n] = n < 6 ? name : "...";
  /* A batch of so many is a surprise, where it is another size that has to be large. */
  const char *why = planner->assumed_size == 1 ? ""
                    : n > 1 ? " each, a batch as well as a length, since with less more costs "
                              "would not be known"
                            : ", since with less more costs would not be known";
  if (n)
    psplit_i_advise(planner->options.logger, PSPLIT_WARNING, sizes,
                    "the cost of %" PRIu32
                    " node%s depends on sizes the model leaves open, counted as %" PRId64 "%s",
                    n_assumed, n_assumed == 1 ? "" : "s", planner->assumed_size, why);
  if (n_data)
    psplit_i_say(planner->options.logger, PSPLIT_NOTE,
                 "the cost of %" PRIu32
                 " node%s depends on sizes only a run can tell, counted as %" PRId64,
                 n_data, n_data == 1 ? "" : "s", planner->assumed_size);
  if (n_unknown)
    psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                 "the cost of %" PRIu32
                 " node%s is partly unknown: the unknown part is not counted",
                 n_unknown, n_unknown == 1 ? "" : "s");
}

/* Counts open sizes as the least of a few numbers that leaves the fewest nodes unknown: a size of 1
 * suits a batch, but an audio model whose first convolution spans 400 samples has no output then.
 */
static psplit_code evaluate(psplit_planner *planner, const psplit_i_binding *bindings,
                            psplit_diag *diag) {
  static const int64_t candidates[] = {1, 64, 1024, 16384};
  psplit_code code = PSPLIT_OK;
  for (size_t c = 0; c < sizeof candidates / sizeof *candidates; c++) {
    const psplit_i_cost_options cost_options = {.bindings = bindings,
                                                .n_bindings = planner->options.n_dims,
                                                .assume_input = candidates[c],
                                                .assume_data = candidates[c]};
    psplit_i_costs *costs;
    PSPLIT_TRY(psplit_i_costs_create(planner->shapes, &cost_options, diag, &costs));
    const bool better =
      !planner->costs || psplit_i_costs_n_unknown(costs) < psplit_i_costs_n_unknown(planner->costs);
    psplit_i_costs_destroy(better ? planner->costs : costs);
    if (better) {
      planner->costs = costs;
      planner->assumed_size = candidates[c];
    }
    if (psplit_i_costs_n_unknown(planner->costs) == 0) break;
  }
out:
  return code;
}

/* What only a run can tell is counted like any open size, which may be far too little. Counting it
 * a thousand times as large as well shows how much of the model's time may hang on it. */
static psplit_code count_plenty(psplit_planner *planner, const psplit_i_binding *bindings,
                                psplit_diag *diag) {
  enum { PLENTY = 1000 };
  psplit_code code;
  psplit_i_costs *costs = NULL;
  const size_t n_nodes = planner->graph->n_nodes;
  planner->node_plenty_ns = NULL;
  planner->node_data = PSPLIT_NEW(&planner->arena, uint8_t, n_nodes);
  if (!planner->node_data) return psplit_i_nomem(diag);
  for (uint32_t n = 0; n < n_nodes; n++)
    if (psplit_i_node_runs(planner->node_flags[n]))
      planner->node_data[n] = (uint8_t)psplit_i_costs_node_data(planner->costs, n);
  if (!psplit_i_costs_n_data(planner->costs)) return PSPLIT_OK;
  const psplit_i_cost_options options = {.bindings = bindings,
                                         .n_bindings = planner->options.n_dims,
                                         .assume_input = planner->assumed_size,
                                         .assume_data = PLENTY * planner->assumed_size};
  PSPLIT_TRY(psplit_i_costs_create(planner->shapes, &options, diag, &costs));
  planner->node_plenty_ns =
    psplit_i_arena_array(&planner->arena, n_nodes, sizeof *planner->node_plenty_ns);
  if (!planner->node_plenty_ns) PSPLIT_FAIL(psplit_i_nomem(diag));
  fill_times(planner, costs, planner->class_device[0], planner->node_plenty_ns);
out:
  psplit_i_costs_destroy(costs);
  return code;
}

extern const psplit_i_pass psplit_i_pass_infer_shapes;

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag);

/* A planner of the same model with the sizes of a prefill, which has its costs. */
static psplit_code plan_prefill(const psplit_planner *planner, psplit_diag *diag,
                                psplit_planner **out) {
  psplit_code code;
  psplit_planner_options options = planner->options;
  options.n_dims = planner->n_given_dims;
  options.decode = options.prefill;
  options.prefill = NULL;
  options.devices = planner->devices;
  options.logger = NULL; /* what there is to say is said once */
  options.observer = NULL;
  options.n_pins = options.n_keep_together = 0;
  options.pins_text = NULL;
  options.ignore_annotations = true;
  PSPLIT_TRY(psplit_planner_create(planner->model, &options, diag, out));
  memcpy((*out)->node_flags, planner->node_flags, planner->graph->n_nodes);
  PSPLIT_TRY(psplit_i_pass_infer_shapes.run(*out, NULL, diag));
  PSPLIT_TRY(run(*out, NULL, diag));
out:
  return code;
}

/* Two kinds of steps: times become means over both. Devices that are alike at the one may differ at
 * the other, but not in how they do: classes are those of decode. */
static psplit_code mix_prefill(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  const size_t n = planner->graph->n_nodes, n_all = n * planner->n_classes;
  if (!planner->options.prefill) return PSPLIT_OK;
  psplit_planner_destroy(planner->prefill);
  planner->prefill = NULL;
  PSPLIT_TRY(plan_prefill(planner, diag, &planner->prefill));
  planner->decode_ns = psplit_i_arena_array(&planner->arena, n_all, sizeof *planner->decode_ns);
  if (!planner->decode_ns) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (n_all) memcpy(planner->decode_ns, planner->node_ns, n_all * sizeof *planner->decode_ns);
  for (uint32_t c = 0; c < planner->n_classes; c++) {
    const uint32_t other = planner->prefill->device_class[planner->class_device[c]];
    for (size_t i = 0; i < n; i++)
      planner->node_ns[c * n + i] = psplit_i_whole_ns(
        psplit_i_mean_over_steps(planner, (double)planner->decode_ns[c * n + i],
                                 (double)planner->prefill->node_ns[other * n + i]));
  }
out:
  return code;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  psplit_code code;
  psplit_i_binding *bindings = psplit_i_planner_bindings(planner);
  if (!bindings) return psplit_i_nomem(diag);
  psplit_i_costs_destroy(planner->costs);
  planner->costs = NULL;
  psplit_solution_destroy(planner->solution); /* its bound is of other times */
  planner->solution = NULL;
  PSPLIT_TRY(psplit_i_planner_order_devices(planner, NULL, 0, diag)); /* costs are of the first */
  PSPLIT_TRY(evaluate(planner, bindings, diag));
  PSPLIT_TRY(psplit_i_planner_find_folded(planner, diag));
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    planner->node_class[n] = psplit_i_costs_node(planner->costs, n).op_class;
  PSPLIT_TRY(classify_devices(planner, diag));
  PSPLIT_TRY(count_plenty(planner, bindings, diag));
  PSPLIT_TRY(psplit_i_cost_apply(planner, diag));
  PSPLIT_TRY(mix_prefill(planner, diag));
  PSPLIT_TRY(psplit_i_planner_add_training(planner, diag));
  PSPLIT_TRY(psplit_i_planner_find_refusals(planner, diag));
  say_what_is_missing(planner);
  psplit_i_say_heavy_if(planner);
  PSPLIT_TRY(psplit_i_say_heavy_state(planner, diag));
out:
  return code;
}

const psplit_i_pass psplit_i_pass_cost = {
  .name = "cost",
  .help = "estimate the time of every node on every device",
  .needs = PSPLIT_I_FACT_SHAPES | PSPLIT_I_FACT_LIVE,
  .keeps = ~0u,
  .makes = PSPLIT_I_FACT_COSTS,
  .run = run,
};
