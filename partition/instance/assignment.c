/* Contiguous solutions over items: exact value, comparison. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "instance.h"
#include "problem.h"
#include "relay.h"

psplit_code psplit_i_cut_init(psplit_cut *cut, const psplit_core *core, psplit_arena *arena) {
  cut->value = cut->comm = PSPLIT_I_INF;
  cut->stage = PSPLIT_NEW(arena, uint32_t, core->n);
  cut->device = PSPLIT_NEW(arena, uint32_t, core->n_stages);
  cut->replicas = PSPLIT_NEW(arena, uint32_t, core->n_stages);
  return cut->stage && cut->device && cut->replicas ? PSPLIT_OK : PSPLIT_NOMEM;
}

void psplit_i_cut_copy(psplit_cut *to, const psplit_cut *from, const psplit_core *core) {
  to->value = from->value;
  to->comm = from->comm;
  memcpy(to->stage, from->stage, core->n * sizeof *to->stage);
  memcpy(to->device, from->device, core->n_stages * sizeof *to->device);
  memcpy(to->replicas, from->replicas, core->n_stages * sizeof *to->replicas);
}

bool psplit_i_cut_better(const psplit_cut *a, const psplit_cut *b, const psplit_core *core) {
  if (a->value != b->value) return a->value < b->value;
  if (a->value >= PSPLIT_I_INF) return false;
  if (a->comm != b->comm) return a->comm < b->comm;
  for (uint32_t i = 0; i < core->n; i++)
    if (a->stage[i] != b->stage[i]) return a->stage[i] < b->stage[i];
  return false;
}

void psplit_i_cut_times_sent(const psplit_cut *cut, const psplit_core *core, uint32_t *times_sent,
                             uint32_t *mark) {
  memset(mark, 0xff, core->n_stages * sizeof *mark);
  for (uint32_t e = 0; e < core->n_nets; e++) {
    const uint32_t *pins = core->net_pin + core->net_off[e];
    const uint32_t n_pins = core->net_off[e + 1] - core->net_off[e];
    uint32_t n = 0;
    mark[cut->stage[pins[0]]] = e;
    for (uint32_t k = 1; k < n_pins; k++)
      if (mark[cut->stage[pins[k]]] != e) {
        mark[cut->stage[pins[k]]] = e;
        n++;
      }
    times_sent[e] = n > 0 && core->p2p ? n : 1;
  }
}

/* What each stage receives and sends; false where a tensor has no way. */
static bool count_direct(psplit_cut *cut, const psplit_core *core, uint32_t *mark, int64_t *recv,
                         int64_t *send) {
  memset(mark, 0xff, core->n_stages * sizeof *mark);
  for (uint32_t e = 0; e < core->n_nets; e++) {
    const uint32_t *pins = core->net_pin + core->net_off[e];
    const uint32_t n_pins = core->net_off[e + 1] - core->net_off[e];
    const uint32_t home = cut->stage[pins[0]];
    int64_t n = 0;
    for (uint32_t k = 1; k < n_pins; k++) {
      const uint32_t s = cut->stage[pins[k]];
      if (s == home || mark[s] == e) continue;
      mark[s] = e;
      n++;
      recv[s] += core->recv[(size_t)cut->device[s] * core->n_nets + e];
    }
    if (n > 0)
      send[home] += core->send[(size_t)cut->device[home] * core->n_nets + e] * (core->p2p ? n : 1);
  }
  return true;
}

static bool count_relayed(psplit_cut *cut, const psplit_core *core, uint32_t *marks, int64_t *recv,
                          int64_t *send) {
  const uint32_t n = core->n_stages;
  psplit_relay relay = {marks, marks + n, (psplit_hop *)(marks + 2 * (size_t)n)};
  memset(marks, 0xff, 2 * (size_t)n * sizeof *marks);
  for (uint32_t e = 0; e < core->n_nets; e++)
    if (!psplit_i_relay_net(core, e, cut->stage, cut->device, &relay, e, recv, send, NULL))
      return false;
  return true;
}

void psplit_i_cut_evaluate(psplit_cut *cut, const psplit_core *core, const psplit_machine *machine,
                           int64_t *scratch) {
  const uint32_t n_stages = core->n_stages;
  memset(scratch, 0, (size_t)n_stages * 3 * sizeof *scratch);
  int64_t *w = scratch, *recv = w + n_stages, *send = recv + n_stages;
  uint32_t *mark = (uint32_t *)(send + n_stages);
  for (uint32_t i = 0; i < core->n; i++)
    w[cut->stage[i]] += core->w[(size_t)cut->device[cut->stage[i]] * core->n + i];
  cut->value = cut->comm = PSPLIT_I_INF;
  if (!(core->problem->next_hop ? count_relayed : count_direct)(cut, core, mark, recv, send))
    return;
  cut->value = cut->comm = 0;
  for (uint32_t s = 0; s < n_stages; s++) cut->comm += recv[s] + send[s];
  uint64_t *weights = (uint64_t *)mark; /* mark is done with; same size or larger */
  if (machine->replicated) {
    memset(weights, 0, n_stages * sizeof *weights);
    for (uint32_t i = 0; i < core->n; i++) weights[cut->stage[i]] += core->weight_bytes[i];
    for (uint32_t g = 0; g < core->n_groups; g++)
      for (uint32_t k = core->group_off[g]; k < core->group_off[g + 1]; k++) {
        bool seen = false;
        for (uint32_t l = core->group_off[g]; l < k; l++)
          seen |= cut->stage[core->group_item[l]] == cut->stage[core->group_item[k]];
        if (!seen) weights[cut->stage[core->group_item[k]]] += core->group_bytes[g];
      }
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    int64_t load = psplit_i_load(core, w[s], recv[s], send[s]);
    if (cut->replicas[s] > 1) {
      const double r = cut->replicas[s];
      load = (load + cut->replicas[s] - 1) / cut->replicas[s] +
             (int64_t)(4 * (r - 1) / r * (double)weights[s] * machine->sync_ns_per_byte);
    }
    if (machine->adds_up)
      cut->value += load;
    else if (load > cut->value)
      cut->value = load;
  }
}
