/* Writes the partition problem as text, for other programs and for inspection. */
#include "builder.h"

#include <inttypes.h>
#include <stdlib.h>

/* If all links are alike, the solver orders the devices; otherwise their order is given. */
static psplit_code build(psplit_i_builder *b) {
  psplit_planner *planner = b->planner;
  const uint32_t n_stages = planner->options.n_stages;
  psplit_code code;
  uint64_t *memory_bytes = psplit_i_builder_array(b, n_stages, sizeof *memory_bytes);
  if (!memory_bytes) return psplit_i_nomem(b->diag);
  for (uint32_t s = 0; s < n_stages; s++)
    memory_bytes[s] = psplit_devices_memory_bytes(planner->devices, s);
  PSPLIT_TRY(psplit_i_builder_number(b));
  PSPLIT_TRY(psplit_i_builder_build(b, memory_bytes));
  if (planner->order_is_free && !planner->order_chosen && !b->any_order &&
      b->problem.n_link_classes == 0 && !b->problem.next_hop) {
    b->any_order = true;
    PSPLIT_TRY(psplit_i_builder_build(b, memory_bytes));
  }
out:
  return code;
}

psplit_code psplit_planner_problem(psplit_planner *planner, psplit_diag *diag, char **out_text,
                                   size_t *out_n) {
  const uint32_t needs = PSPLIT_I_FACT_COSTS | PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS;
  if ((planner->facts & needs) != needs)
    return psplit_i_fail(
      diag, PSPLIT_USAGE,
      "there is no problem to write yet: costs and supernodes must be computed first");
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  psplit_code code = build(&b);
  if (code == PSPLIT_OK && b.n_groups == 0)
    code = psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "there is nothing to cut: all nodes are functions of constants");
  if (code == PSPLIT_OK && b.problem.next_hop)
    psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                 "some devices have no link: the problem is written as if all had one");
  if (code == PSPLIT_OK && !planner->order_chosen && planner->n_candidates > b.problem.n_devices)
    psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                 "the problem has the first %" PRIu32 " of %" PRIu32
                 " devices: a plan would choose among all",
                 b.problem.n_devices, planner->n_candidates);
  if (code == PSPLIT_OK) code = psplit_problem_format_json(&b.problem, diag, out_text, out_n);
  psplit_i_arena_reset(&planner->scratch);
  return code;
}
