/* Random small models with nodes that are cheap beside their results, and the best of all their
 * splits with copies as `replicate` makes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "copied_plans.h"
#include "open.h"

psplit_model *draw_model(dice *d, uint32_t n) {
  psplit_i_text nodes = {0}, outputs = {0}, text = {0};
  bool whole[MOST_NODES + 1] = {true}, read[MOST_NODES + 1] = {false};
  for (uint32_t i = 1; i <= n; i++) {
    uint32_t a = i - 1 - draw(d, i < 3 ? i : 3), b = draw(d, i);
    while (!whole[a]) a--;
    read[a] = whole[i] = true;
    switch (draw(d, 7)) {
      case 0:
      case 1: psplit_i_text_addf(&nodes, "v%u = MatMul (v%u, w)\n", i, a); break;
      case 2: psplit_i_text_addf(&nodes, "v%u = Neg (v%u)\n", i, a); break;
      case 3:
        psplit_i_text_addf(&nodes, "v%u = ReduceMean <axes = [1]> (v%u)\n", i, a);
        whole[i] = false;
        break;
      case 4:
        psplit_i_text_addf(&nodes,
                           "p%u, q%u = Split <axis = 0> (v%u)\n"
                           "v%u = Concat <axis = 0> (q%u, p%u)\n",
                           i, i, a, i, i, i);
        break;
      default: read[b] = true; psplit_i_text_addf(&nodes, "v%u = Add (v%u, v%u)\n", i, a, b);
    }
  }
  for (uint32_t i = 1; i <= n; i++)
    if (!read[i])
      psplit_i_text_addf(&outputs, "%sfloat[64,%u] v%u", outputs.n ? ", " : "", whole[i] ? 64 : 1,
                         i);
  psplit_i_text_addf(&text,
                     "<ir_version: 8, opset_import: [\"\": 13]> m (float[64,64] v0) => (%s)"
                     "<float[64,64] w = random(1)> {%s}",
                     outputs.bytes, nodes.bytes);
  psplit_model *model = opened_text(text.bytes);
  psplit_i_text_fini(&nodes);
  psplit_i_text_fini(&outputs);
  psplit_i_text_fini(&text);
  return model;
}

static void judge(copied_search *s) {
  psplit_planner *planner = s->planner;
  psplit_diag diag = {0};
  uint32_t used = 0;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++) {
    planner->stage[n] = s->stage[n];
    used |= UINT32_C(1) << s->stage[n];
  }
  if (used + 1 != UINT32_C(1) << planner->options.n_stages) return;
  planner->copies.n = 0;
  planner->plan_holds = false;
  if (psplit_i_plan_make(planner, &diag) != PSPLIT_OK) return; /* no way for a tensor */
  if (planner->plan->bottleneck_ns < s->plain_ns) s->plain_ns = planner->plan->bottleneck_ns;
  assert_int_equal(psplit_planner_run(planner, "replicate", &diag), PSPLIT_OK);
  if (planner->plan->bottleneck_ns < s->best_ns) s->best_ns = planner->plan->bottleneck_ns;
}

static void place(copied_search *s, uint32_t n) {
  const psplit_i_graph *graph = s->planner->graph;
  if (n == graph->n_nodes) {
    judge(s);
    return;
  }
  uint32_t low = 0;
  PSPLIT_FOR_EACH_READ(&graph->nodes[n], value) {
    const uint32_t p = graph->values[value].producer;
    if (p != PSPLIT_NONE && s->stage[p] > low) low = s->stage[p];
  }
  for (uint32_t k = low; k < s->planner->options.n_stages; k++) {
    s->stage[n] = k;
    place(s, n + 1);
  }
}

void find_best_copied(copied_search *s) {
  psplit_solution *solution = s->planner->solution;
  s->planner->solution = NULL; /* no bound of its own */
  place(s, 0);
  s->planner->solution = solution;
}
