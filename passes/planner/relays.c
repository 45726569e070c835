/* Routes transfers through stages in between, where two stages have no link or where that saves
 * messages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "devices_inside.h"
#include "planner.h"

static int compare_by_value(const void *a, const void *b) {
  const psplit_plan_transfer *x = a, *y = b;
  if (x->value != y->value) return x->value < y->value ? -1 : 1;
  return x->to < y->to ? -1 : x->to > y->to;
}

void psplit_i_sort_by_value(psplit_plan_transfer *transfers, size_t n) {
  if (n) qsort(transfers, n, sizeof *transfers, compare_by_value);
}

static psplit_code no_way(const psplit_planner *planner, uint32_t from, uint32_t to,
                          psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_INFEASIBLE,
                       "no links lead from device \"%s\" (stage %" PRIu32
                       ") to \"%s\" (stage %" PRIu32
                       "), not by way of the stages in between either",
                       psplit_devices_name(planner->devices, from), from,
                       psplit_devices_name(planner->devices, to), to);
}

psplit_code psplit_i_relay_transfers(psplit_planner *planner, psplit_i_transfers *io_transfers,
                                     psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n_stages = planner->options.n_stages;
  psplit_i_transfers out = {0};
  if (!planner->next_hop || !io_transfers->n) return PSPLIT_OK;
  uint32_t *held = PSPLIT_NEW(&planner->scratch, uint32_t, n_stages);
  psplit_i_hop *hops = psplit_i_arena_array(&planner->scratch, n_stages, sizeof *hops);
  if (!held || !hops) return psplit_i_nomem(diag);
  psplit_i_sort_by_value(io_transfers->items, io_transfers->n);
  uint32_t stamp = 0;
  for (size_t t = 0; t < io_transfers->n; t++) {
    const psplit_plan_transfer *wish = &io_transfers->items[t];
    const uint32_t producer = planner->graph->values[wish->value].producer;
    if (!t || wish[-1].value != wish->value) {
      stamp++;
      for (uint32_t s = 0; s < n_stages; s++)
        if (s == planner->stage[producer] || psplit_i_planner_is_copied(planner, producer, s))
          held[s] = stamp;
    }
    const uint32_t n_hops =
      psplit_i_route(n_stages, planner->next_hop, wish->from, wish->to, held, stamp, hops);
    if (!n_hops) PSPLIT_TRY(no_way(planner, wish->from, wish->to, diag));
    for (uint32_t h = 0; h < n_hops; h++) {
      psplit_plan_transfer hop = *wish;
      hop.from = hops[h].from;
      hop.to = hops[h].to;
      if (!psplit_i_vec_push(&out, hop)) PSPLIT_FAIL(psplit_i_nomem(diag));
    }
  }
  psplit_i_vec_fini(io_transfers);
  *io_transfers = out;
  return PSPLIT_OK;
out:
  psplit_i_vec_fini(&out);
  return code;
}

bool psplit_i_planner_may_pass_on(const psplit_planner *planner) {
  const psplit_planner_options *options = &planner->options;
  return !planner->segmented && !planner->n_replicas &&
         (!planner->next_hop || planner->passes_on) &&
         options->message_latency == PSPLIT_LATENCY_PER_PAIR && !options->overlap &&
         options->objective == PSPLIT_THROUGHPUT && options->n_stages > 2 &&
         planner->n_classes == 1 && !options->training &&
         options->tied_weights != PSPLIT_TIED_TOGETHER &&
         psplit_devices_link(planner->devices, 0, 1).latency_ns > 0 &&
         psplit_i_devices_links_alike(planner->devices, options->n_stages, false);
}

void psplit_i_name_unreachable(const psplit_planner *planner, psplit_diag *diag) {
  const uint32_t n = planner->options.n_stages;
  for (uint32_t i = 0; planner->next_hop && i < n; i++)
    for (uint32_t j = i + 1; j < n; j++) {
      if (planner->next_hop[(size_t)i * n + j] != PSPLIT_NONE) continue;
      psplit_diag why = {0};
      (void)no_way(planner, i, j, &why);
      psplit_i_diag_add(diag, "%s", why.message);
      return;
    }
}
