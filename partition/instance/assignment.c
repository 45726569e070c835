/* Assignments of clusters to stages: exact value, comparison. */
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "instance.h"
#include "problem.h"
#include "relay.h"

psplit_code psplit_i_assignment_init(psplit_i_assignment *assignment,
                                     const psplit_i_instance *instance, psplit_i_arena *arena) {
  assignment->value = assignment->comm = PSPLIT_I_INF;
  assignment->stage = PSPLIT_NEW(arena, uint32_t, instance->n);
  assignment->device = PSPLIT_NEW(arena, uint32_t, instance->n_stages);
  assignment->replicas = PSPLIT_NEW(arena, uint32_t, instance->n_stages);
  assignment->next_net = NULL;
  assignment->hops = NULL;
  if (instance->makes_message) {
    const size_t n = instance->n_stages;
    assignment->next_net = PSPLIT_NEW(arena, uint32_t, instance->n_nets);
    assignment->hops = PSPLIT_NEW(arena, uint8_t, instance->problem->next_hop ? n * n : 1);
    if (!assignment->next_net || !assignment->hops) return PSPLIT_NOMEM;
  }
  return assignment->stage && assignment->device && assignment->replicas ? PSPLIT_OK : PSPLIT_NOMEM;
}

void psplit_i_assignment_copy(psplit_i_assignment *to, const psplit_i_assignment *from,
                              const psplit_i_instance *instance) {
  to->value = from->value;
  to->comm = from->comm;
  memcpy(to->stage, from->stage, instance->n * sizeof *to->stage);
  memcpy(to->device, from->device, instance->n_stages * sizeof *to->device);
  memcpy(to->replicas, from->replicas, instance->n_stages * sizeof *to->replicas);
}

bool psplit_i_assignment_better(const psplit_i_assignment *a, const psplit_i_assignment *b,
                                const psplit_i_instance *instance) {
  if (a->value != b->value) return a->value < b->value;
  if (a->value >= PSPLIT_I_INF) return false;
  if (a->comm != b->comm) return a->comm < b->comm;
  for (uint32_t i = 0; i < instance->n; i++)
    if (a->stage[i] != b->stage[i]) return a->stage[i] < b->stage[i];
  return false;
}

void psplit_i_assignment_times_sent(const psplit_i_assignment *assignment,
                                    const psplit_i_instance *instance, uint32_t *times_sent,
                                    uint32_t *mark) {
  memset(mark, 0xff, instance->n_stages * sizeof *mark);
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t *pins = instance->net_pin + instance->net_off[e];
    const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
    uint32_t n = 0;
    mark[assignment->stage[pins[0]]] = e;
    for (uint32_t k = 1; k < n_pins; k++)
      if (mark[assignment->stage[pins[k]]] != e) {
        mark[assignment->stage[pins[k]]] = e;
        n++;
      }
    times_sent[e] = n > 0 && instance->p2p ? n : 1;
  }
}

/* What each stage receives and sends; false where a tensor cannot reach a stage. */
static bool count_direct(psplit_i_assignment *assignment, const psplit_i_instance *instance,
                         uint32_t *mark, int64_t *recv, int64_t *send) {
  memset(mark, 0xff, instance->n_stages * sizeof *mark);
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t *pins = instance->net_pin + instance->net_off[e];
    const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
    const uint32_t home = assignment->stage[pins[0]];
    int64_t n = 0;
    for (uint32_t k = 1; k < n_pins; k++) {
      const uint32_t s = assignment->stage[pins[k]];
      if (s == home || mark[s] == e) continue;
      mark[s] = e;
      n++;
      recv[s] +=
        psplit_i_tensor_recv_ns(instance, e, assignment->device[home], assignment->device[s]);
      if (n == 1 || instance->p2p)
        send[home] +=
          psplit_i_tensor_send_ns(instance, e, assignment->device[home], assignment->device[s]);
    }
  }
  return true;
}

static void count_message(const psplit_i_assignment *assignment, const psplit_i_instance *instance,
                          uint32_t from, uint32_t to, int64_t *recv, int64_t *send) {
  const uint32_t sender = assignment->device[from], receiver = assignment->device[to];
  send[from] += psplit_i_message_ns(instance, sender, receiver, true);
  recv[to] += psplit_i_message_ns(instance, sender, receiver, false);
}

/* One message for each pair of stages; marks[2 * n_stages]. */
static void count_messages(psplit_i_assignment *assignment, const psplit_i_instance *instance,
                           uint32_t *marks, int64_t *recv, int64_t *send) {
  uint32_t *first = marks + instance->n_stages; /* net that a stage makes */
  memset(marks, 0xff, 2 * (size_t)instance->n_stages * sizeof *marks);
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    uint32_t *home = &first[assignment->stage[instance->net_pin[instance->net_off[e]]]];
    if (!instance->makes_message[e]) continue;
    assignment->next_net[e] = *home;
    *home = e;
  }
  for (uint32_t s = 0; s < instance->n_stages; s++)
    for (uint32_t e = first[s]; e != PSPLIT_NONE; e = assignment->next_net[e])
      for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
        const uint32_t to = assignment->stage[instance->net_pin[k]];
        if (to == s || marks[to] == s) continue;
        marks[to] = s;
        count_message(assignment, instance, s, to, recv, send);
      }
}

/* One message for all that a stage sends, and one for all that it receives; marks[2 * n_stages]. */
static void count_shared_messages(const psplit_i_assignment *assignment,
                                  const psplit_i_instance *instance, uint32_t *marks, int64_t *recv,
                                  int64_t *send) {
  const uint32_t n = instance->n_stages;
  memset(marks, 0, 2 * (size_t)n * sizeof *marks);
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t home = assignment->stage[instance->net_pin[instance->net_off[e]]];
    for (uint32_t k = instance->net_off[e] + 1;
         instance->makes_message[e] && k < instance->net_off[e + 1]; k++) {
      const uint32_t to = assignment->stage[instance->net_pin[k]];
      if (to != home) marks[home] = marks[n + to] = 1;
    }
  }
  for (uint32_t s = 0; s < n; s++) {
    const uint32_t type = assignment->device[s];
    if (marks[s]) send[s] += psplit_i_message_ns(instance, type, type, true);
    if (marks[n + s]) recv[s] += psplit_i_message_ns(instance, type, type, false);
  }
}

static bool count_relayed(psplit_i_assignment *assignment, const psplit_i_instance *instance,
                          uint32_t *marks, int64_t *recv, int64_t *send) {
  const uint32_t n = instance->n_stages;
  psplit_i_relay relay = {.stage = assignment->stage,
                          .device = assignment->device,
                          .recv = recv,
                          .send = send,
                          .wants = marks,
                          .held = marks + n,
                          .hops = (psplit_i_hop *)(marks + 2 * (size_t)n)};
  memset(marks, 0xff, 2 * (size_t)n * sizeof *marks);
  if (instance->makes_message) memset(assignment->hops, 0, (size_t)n * n);
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    uint8_t *hops = instance->makes_message && instance->makes_message[e] ? assignment->hops : NULL;
    if (!psplit_i_relay_net(instance, e, &relay, hops)) return false;
  }
  for (uint32_t from = 0; instance->makes_message && from < n; from++)
    for (uint32_t to = from + 1; to < n; to++)
      if (assignment->hops[(size_t)from * n + to])
        count_message(assignment, instance, from, to, recv, send);
  return true;
}

void psplit_i_assignment_evaluate(psplit_i_assignment *assignment,
                                  const psplit_i_instance *instance,
                                  const psplit_i_automaton *automaton, int64_t *scratch) {
  const uint32_t n_stages = instance->n_stages;
  memset(scratch, 0, (size_t)n_stages * 3 * sizeof *scratch);
  int64_t *w = scratch, *recv = w + n_stages, *send = recv + n_stages;
  uint32_t *mark = (uint32_t *)(send + n_stages);
  for (uint32_t i = 0; i < instance->n; i++)
    w[assignment->stage[i]] +=
      instance->w[(size_t)assignment->device[assignment->stage[i]] * instance->n + i];
  assignment->value = assignment->comm = PSPLIT_I_INF;
  if (!(instance->problem->next_hop ? count_relayed : count_direct)(assignment, instance, mark,
                                                                    recv, send))
    return;
  if (psplit_i_one_message(instance))
    count_shared_messages(assignment, instance, mark, recv, send);
  else if (instance->makes_message && !instance->problem->next_hop)
    count_messages(assignment, instance, mark, recv, send);
  assignment->value = assignment->comm = 0;
  for (uint32_t s = 0; s < n_stages; s++) assignment->comm += recv[s] + send[s];
  uint64_t *weights = (uint64_t *)mark; /* mark is not needed any more, and large enough */
  if (automaton->replicated) {
    memset(weights, 0, n_stages * sizeof *weights);
    for (uint32_t i = 0; i < instance->n; i++)
      weights[assignment->stage[i]] += instance->weight_bytes[i];
    for (uint32_t g = 0; g < instance->n_groups; g++)
      for (uint32_t k = instance->group_off[g]; k < instance->group_off[g + 1]; k++) {
        bool seen = false;
        for (uint32_t l = instance->group_off[g]; l < k; l++)
          seen |= assignment->stage[instance->group_cluster[l]] ==
                  assignment->stage[instance->group_cluster[k]];
        if (!seen)
          weights[assignment->stage[instance->group_cluster[k]]] += instance->group_bytes[g];
      }
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    int64_t load = psplit_i_load(instance, w[s], recv[s], send[s]);
    if (assignment->replicas[s] > 1)
      load = psplit_i_automaton_copies_load(automaton, load, assignment->replicas[s], weights[s]);
    if (automaton->adds_up)
      assignment->value += load;
    else if (load > assignment->value)
      assignment->value = load;
  }
}

uint32_t psplit_i_slowest_stage(const psplit_i_instance *instance, const int64_t *scratch) {
  const size_t n = instance->n_stages;
  uint32_t slowest = 0;
  int64_t most = -1;
  for (uint32_t s = 0; s < n; s++) {
    const int64_t load = psplit_i_load(instance, scratch[s], scratch[n + s], scratch[2 * n + s]);
    if (load <= most) continue;
    most = load;
    slowest = s;
  }
  return slowest;
}
