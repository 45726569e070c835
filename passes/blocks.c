/* needs: live, groups  keeps: everything but stages  breaks: nothing
 *
 * Blocks that repeat, the layers of a model, stay whole: the supernodes of one share a stage. The
 * blocks are those that a snapshot shows at this point (passes/grouping/repeat.h). */
#include <inttypes.h>
#include <psplit/snapshot.h>

#include "pass.h"

/* Puts a node into the class; one that is in another brings that class along. */
static void join(psplit_planner *planner, uint32_t node, uint32_t class_id, uint32_t *alias) {
  uint32_t old = planner->together[node];
  planner->together[node] = class_id;
  if (old == PSPLIT_NONE) return;
  while (alias[old] != old) old = alias[old];
  alias[old] = class_id;
}

static psplit_code keep(psplit_planner *planner, const psplit_snapshot *snapshot,
                        psplit_diag *diag) {
  uint32_t n_blocks = 0;
  for (uint32_t r = 0; r < snapshot->n_repeats; r++) n_blocks += snapshot->repeats[r].n_blocks;
  const uint32_t n_old = planner->n_together, n = n_old + n_blocks;
  uint32_t *alias = psplit_i_arena_array(&planner->scratch, n, sizeof *alias);
  if (!alias) return psplit_i_nomem(diag);
  for (uint32_t c = 0; c < n; c++) alias[c] = c;
  uint32_t class_id = n_old;
  for (uint32_t r = 0; r < snapshot->n_repeats; r++) {
    const psplit_snapshot_repeat *repeat = &snapshot->repeats[r];
    for (uint32_t b = 0; b < repeat->n_blocks; b++, class_id++)
      for (uint32_t g = 0; g < repeat->n_groups; g++) {
        const psplit_snapshot_group *group =
          &snapshot->groups[repeat->first + b * repeat->n_groups + g];
        for (uint32_t i = 0; i < group->n_nodes; i++)
          join(planner, group->nodes[i], class_id, alias);
      }
  }
  for (uint32_t i = 0; i < planner->graph->n_nodes; i++) {
    uint32_t c = planner->together[i];
    if (c == PSPLIT_NONE) continue;
    while (alias[c] != c) c = alias[c];
    planner->together[i] = c;
  }
  planner->n_together = n;
  return PSPLIT_OK;
}

static psplit_code run(psplit_planner *planner, const psplit_i_option_value *values,
                       psplit_diag *diag) {
  (void)values;
  psplit_snapshot *snapshot;
  psplit_code code = psplit_snapshot_take(planner, diag, &snapshot);
  if (code != PSPLIT_OK) return code;
  if (snapshot->n_repeats)
    code = keep(planner, snapshot, diag);
  else
    psplit_i_say(planner->options.logger, PSPLIT_WARNING,
                 "the model has no repeated blocks to keep whole");
  psplit_snapshot_destroy(snapshot);
  return code;
}

const psplit_i_pass psplit_i_pass_blocks = {
  .name = "blocks",
  .help = "keep repeated blocks, such as layers, whole",
  .needs = PSPLIT_I_FACT_LIVE | PSPLIT_I_FACT_GROUPS,
  .keeps = ~(unsigned)PSPLIT_I_FACT_STAGES,
  .run = run,
};
