/* What would fit: numbers of stages for which a cut was found, or a node that is too large. */
#include "what_fits.h"

#include <inttypes.h>
#include <stdio.h>

#include "devices_inside.h"
#include "fit.h"
#include "keep_state.h"
#include "least_memory.h"
#include "units.h"

static bool any_pin(const psplit_planner *planner) {
  for (uint32_t n = 0; n < planner->graph->n_nodes; n++)
    if (planner->pin[n] != PSPLIT_NONE || planner->together[n] != PSPLIT_NONE) return true;
  return false;
}

bool psplit_i_any_wish(const psplit_planner *planner) {
  return planner->node_refused || any_pin(planner);
}

static const char *name_of_value(const psplit_planner *planner, uint32_t value) {
  return value == PSPLIT_NONE ? "?" : planner->graph->values[value].name;
}

static const char *name_of_node(const psplit_planner *planner, uint32_t node) {
  if (node == PSPLIT_NONE) return "?";
  const char *name = psplit_i_node_known_as(planner->graph, &planner->graph->nodes[node]);
  return *name ? name : "?";
}

/* What the device's workspace leaves. */
static uint64_t room_of(const psplit_devices *devices, uint32_t d) {
  const uint64_t has = psplit_devices_memory_bytes(devices, d);
  const uint64_t workspace = psplit_devices_workspace_bytes(devices, d);
  return has == UINT64_MAX ? has : has > workspace ? has - workspace : 0;
}

/* The device that leaves most, and whether all are like it. */
static uint32_t find_roomiest(const psplit_devices *devices, bool *out_alike) {
  uint32_t roomiest = 0;
  *out_alike = true;
  for (uint32_t d = 1; d < psplit_devices_count(devices); d++) {
    if (room_of(devices, d) > room_of(devices, roomiest)) roomiest = d;
    *out_alike &= room_of(devices, d) == room_of(devices, 0) &&
                  devices->devices[d].model.keeps_copies == devices->devices[0].model.keeps_copies;
  }
  return roomiest;
}

/* Says that a supernode fits no device, if one does. */
static psplit_code find_too_large(psplit_planner *planner, psplit_i_what_fits *out,
                                  psplit_diag *diag) {
  char need[PSPLIT_I_UNIT_BYTES];
  psplit_i_least_memory least;
  const psplit_code code =
    psplit_i_least_memory_find(planner, psplit_devices_count(planner->devices), &least, diag);
  if (code != PSPLIT_OK || least.node == PSPLIT_NONE) return code;
  const char *undivided = psplit_i_why_undivided(planner, least.node, &out->advice);
  if (!undivided) return psplit_i_nomem(diag);
  snprintf(out->words, sizeof out->words,
           "; no number of stages fits: node \"%.256s\" and the nodes it must stay with need %s at "
           "least, the largest tensor there is \"%.256s\"%s",
           name_of_node(planner, least.node), psplit_i_in_bytes(least.node_bytes, need),
           name_of_value(planner, least.value), undivided);
  return PSPLIT_OK;
}

/* Says which supernode first fit does not get beyond. */
static psplit_code name_blocking(const psplit_planner *planner, const psplit_i_fit *fit,
                                 uint32_t n_assumed, psplit_i_what_fits *out, psplit_diag *diag) {
  char need[PSPLIT_I_UNIT_BYTES], of[32] = "";
  const char *undivided = psplit_i_why_undivided(planner, fit->blocking_node, &out->advice);
  if (!undivided) return psplit_i_nomem(diag);
  if (n_assumed != planner->options.n_stages) snprintf(of, sizeof of, " of %" PRIu32, n_assumed);
  snprintf(out->words, sizeof out->words,
           "; node \"%.256s\" and the nodes it must stay with need %s in a stage of their own%s, "
           "the largest tensor there is \"%.256s\"%s",
           name_of_node(planner, fit->blocking_node), psplit_i_in_bytes(fit->blocking_bytes, need),
           of, name_of_value(planner, fit->blocking_value), undivided);
  return PSPLIT_OK;
}

static void say_number(const psplit_planner *planner, uint32_t n_stages, const char *like,
                       psplit_i_what_fits *out) {
  if (!like && !psplit_i_any_wish(planner) && n_stages < planner->options.n_stages)
    out->advice = PSPLIT_I_HELPS(FEWER_STAGES);
  snprintf(out->words, sizeof out->words, "; %" PRIu32 " stage%s would fit%s%.256s%s%s%s", n_stages,
           n_stages == 1 ? "" : "s", like ? " on devices like \"" : "", like ? like : "",
           like ? "\"" : "", any_pin(planner) ? " without pins" : "",
           planner->node_refused ? " if devices supported all nodes" : "");
}

/* First fit on devices like the roomiest one. */
static psplit_code find_number(psplit_planner *planner, psplit_i_what_fits *out,
                               psplit_diag *diag) {
  psplit_code code;
  psplit_i_fit fit;
  bool alike;
  uint32_t n_assumed;
  const uint32_t n_nodes = planner->graph->n_nodes;
  psplit_i_builder b = {.planner = planner, .arena = &planner->scratch, .diag = diag};
  PSPLIT_TRY(psplit_i_builder_number(&b));
  uint32_t *group_stage = psplit_i_builder_array(&b, b.n_groups, sizeof *group_stage);
  uint32_t *classes = psplit_i_builder_array(&b, planner->n_state_classes, sizeof *classes);
  uint32_t *stage = psplit_i_builder_array(&b, n_nodes, sizeof *stage);
  if (!group_stage || !classes || !stage) PSPLIT_FAIL(psplit_i_nomem(diag));
  const uint32_t like = find_roomiest(planner->devices, &alike);
  PSPLIT_TRY(
    psplit_i_fit_alike(planner, b.group, b.n_groups, like, group_stage, &fit, &n_assumed, diag));
  for (uint32_t n = 0; n < n_nodes; n++)
    if (b.group[n] != PSPLIT_NONE) stage[n] = group_stage[b.group[n]];
  const bool asked =
    alike && !psplit_i_any_wish(planner) && fit.n_stages == planner->options.n_stages;
  if (fit.n_stages && !asked && psplit_i_states_are_kept(planner, stage, classes))
    say_number(planner, fit.n_stages, alike ? NULL : psplit_devices_name(planner->devices, like),
               out);
  else if (fit.blocking_node != PSPLIT_NONE)
    PSPLIT_TRY(name_blocking(planner, &fit, n_assumed, out, diag));
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

psplit_code psplit_i_what_fits_find(psplit_planner *planner, const psplit_i_request *r,
                                    psplit_i_what_fits *out, psplit_diag *diag) {
  *out = (psplit_i_what_fits){0};
  const psplit_code code = find_too_large(planner, out, diag);
  if (code != PSPLIT_OK || *out->words || planner->next_hop || planner->prefill ||
      psplit_i_request_joins_any(r))
    return code;
  return find_number(planner, out, diag);
}
