/* Which devices cannot run which nodes: computed before anything is planned, and kept for the
 * solver. */
#include <inttypes.h>
#include <stdio.h>

#include "devices_inside.h"
#include "planner.h"
#include "support.h"

static const psplit_i_support *support_of(const psplit_planner *planner, uint32_t device) {
  return planner->devices->devices[device].model.support;
}

static bool runs(const psplit_planner *planner, uint32_t device, uint32_t node,
                 psplit_i_text *why) {
  return !psplit_i_node_runs(planner->node_flags[node]) ||
         psplit_i_support_runs(support_of(planner, device), planner->shapes, planner->costs, node,
                               why);
}

bool psplit_i_planner_runs_all(const psplit_planner *planner, uint32_t device) {
  if (!support_of(planner, device)) return true;
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (!runs(planner, device, n, NULL)) return false;
  return true;
}

/* The first node that no class of devices runs, or PSPLIT_NONE. */
static uint32_t first_homeless(const psplit_planner *planner) {
  const size_t n_nodes = planner->graph->n_nodes;
  for (uint32_t n = 0; n < n_nodes; n++) {
    bool any = false;
    for (size_t c = 0; c < planner->n_classes && !any; c++)
      any = !planner->node_refused[c * n_nodes + n];
    if (!any) return n;
  }
  return PSPLIT_NONE;
}

static psplit_code no_home(const psplit_planner *planner, uint32_t node, psplit_diag *diag) {
  enum { SHOWN = 4 };
  const psplit_i_node *of = &planner->graph->nodes[node];
  psplit_i_text why = {0};
  char label[128];
  for (uint32_t c = 0; c < planner->n_classes && c < SHOWN; c++) {
    psplit_i_text_addf(&why, "%s%.40s: ", c ? "; " : "",
                       psplit_devices_name(planner->devices, planner->class_device[c]));
    (void)runs(planner, planner->class_device[c], node, &why);
  }
  const psplit_code code =
    why.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                      "no device supports node \"%.120s\" (%.60s%s%.60s); reasons: (%.300s)",
                      psplit_i_node_label(planner->graph, node, label, sizeof label), of->domain,
                      *of->domain ? "." : "", of->op_type, why.bytes);
  psplit_i_text_fini(&why);
  return code;
}

/* A device that must have a stage and runs nothing that takes one. */
static psplit_code check_idle(const psplit_planner *planner, psplit_diag *diag) {
  const size_t n_nodes = planner->graph->n_nodes;
  const uint32_t n_stages = planner->options.n_stages;
  const bool may_idle = planner->n_candidates > n_stages || planner->options.max_segments > 1;
  for (uint32_t d = 0; d < n_stages && !may_idle; d++) {
    const uint8_t *refused = &planner->node_refused[planner->device_class[d] * n_nodes];
    bool any = n_stages == 1;
    for (uint32_t n = 0; n < n_nodes && !any; n++)
      any = !refused[n] && psplit_i_node_runs(planner->node_flags[n]);
    if (!any)
      return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                           "device \"%.100s\" supports no node of the model; ask for fewer stages, "
                           "or leave it out",
                           psplit_devices_name(planner->devices, d));
  }
  return PSPLIT_OK;
}

/* Marks by which nodes are kept apart: what one device runs and another does not, and stages. */
static psplit_code mark_apart(psplit_planner *planner, psplit_diag *diag) {
  const uint32_t n_nodes = planner->graph->n_nodes;
  uint32_t n_marks = 1;
  uint32_t *mark = psplit_i_arena_zeroed(&planner->arena, n_nodes, sizeof *mark);
  uint32_t *next = psplit_i_arena_array(&planner->scratch, 2 * (size_t)n_nodes, sizeof *next);
  if (!mark || !next) return psplit_i_nomem(diag);
  for (size_t c = 0; c < planner->n_classes; c++) {
    uint32_t n_next = 0;
    for (uint32_t m = 0; m < 2 * n_marks; m++) next[m] = PSPLIT_NONE;
    for (uint32_t n = 0; n < n_nodes; n++) {
      uint32_t *to = &next[2 * mark[n] + planner->node_refused[c * n_nodes + n]];
      if (*to == PSPLIT_NONE) *to = n_next++;
      mark[n] = *to;
    }
    n_marks = n_next;
  }
  for (uint32_t n = 0; n < n_nodes; n++) {
    if (planner->pin[n] != PSPLIT_NONE) mark[n] = n_marks + planner->pin[n];
    if (!psplit_i_node_runs(planner->node_flags[n])) mark[n] = planner->pin[n];
  }
  planner->apart = mark;
  return PSPLIT_OK;
}

psplit_code psplit_i_planner_find_refusals(psplit_planner *planner, psplit_diag *diag) {
  psplit_code code;
  const size_t n_nodes = planner->graph->n_nodes;
  bool any = false;
  planner->node_refused = NULL;
  planner->apart = planner->pin;
  for (uint32_t c = 0; c < planner->n_classes; c++)
    any |= support_of(planner, planner->class_device[c]) != NULL;
  if (!any) return PSPLIT_OK;
  uint8_t *refused = psplit_i_arena_array(&planner->arena, n_nodes * planner->n_classes, 1);
  if (!refused) return psplit_i_nomem(diag);
  any = false;
  for (size_t c = 0; c < planner->n_classes; c++)
    for (uint32_t n = 0; n < n_nodes; n++) {
      refused[c * n_nodes + n] = !runs(planner, planner->class_device[c], n, NULL);
      any |= refused[c * n_nodes + n];
    }
  if (!any) return PSPLIT_OK;
  planner->node_refused = refused;
  const uint32_t homeless = first_homeless(planner);
  if (homeless != PSPLIT_NONE) return no_home(planner, homeless, diag);
  PSPLIT_TRY(check_idle(planner, diag));
  PSPLIT_TRY(mark_apart(planner, diag));
out:
  return code;
}

void psplit_i_name_refused(const psplit_planner *planner, psplit_diag *diag) {
  const size_t n_nodes = planner->graph->n_nodes;
  uint32_t first = PSPLIT_NONE, n_refused = 0;
  char label[128];
  for (uint32_t n = 0; planner->node_refused && n < n_nodes; n++)
    for (size_t c = 0; c < planner->n_classes; c++)
      if (planner->node_refused[c * n_nodes + n]) {
        if (!n_refused++) first = n;
        break;
      }
  if (!n_refused) return;
  psplit_i_diag_add(
    diag, "%" PRIu32 " node%s (such as \"%s\") run%s on some devices alone%s", n_refused,
    n_refused == 1 ? "" : "s", psplit_i_node_label(planner->graph, first, label, sizeof label),
    n_refused == 1 ? "s" : "",
    planner->options.max_segments > 1 ? "" : ", which may take several segments on a device");
}
