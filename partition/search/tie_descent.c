/* Descent on ties: small moves over the boundaries of a split, to less communication, or to as much
 * communication with lower stage numbers.
 *
 * A cluster moves to the stage in front or behind, together with those of its stage that stand
 * between it and the boundary. It moves forward only if less is sent, and backward also if as much
 * is sent. So the pair (sum of communication, stages in the order of nodes) decreases
 * lexicographically with every move, and the descent ends in a split that no such move improves. No
 * load exceeds the bottleneck. */

#include "tie_descent.h"
#include "assignment.h"
#include "automaton.h"
#include "instance.h"
#include "problem.h"

typedef struct descent {
  const psplit_i_instance *instance;
  psplit_i_assignment *assignment;
  const psplit_i_tie_descent_options *options;
  int64_t *w, *recv, *send; /* [n_stages] */
  int64_t comm;
  uint32_t *n_counted; /* [n_stages] */
  uint32_t *mark;      /* [n_stages] stamp of the net that is counted */
  uint32_t stamp;
  uint32_t *moving, n_moving;   /* [n] clusters of one move */
  bool *is_moving;              /* [n] */
  uint32_t *touched, n_touched; /* nets of the move */
  uint32_t *net_stamp, move;    /* [n_nets] number of the move that touched it last */
  uint64_t n_steps;
} descent;

/* Adds (sign 1) the costs of net e to the loads, or subtracts them (-1). */
static void count_net(descent *l, uint32_t e, int64_t sign) {
  const psplit_i_instance *instance = l->instance;
  const psplit_i_assignment *assignment = l->assignment;
  const uint32_t home = assignment->stage[instance->net_pin[instance->net_off[e]]];
  bool sent = false;
  l->stamp++;
  for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++) {
    const uint32_t s = assignment->stage[instance->net_pin[k]];
    if (s == home || l->mark[s] == l->stamp) continue;
    l->mark[s] = l->stamp;
    const uint32_t from = assignment->device[home], to = assignment->device[s];
    const int64_t recv = sign * psplit_i_recv_ns(instance, e, from, to);
    const int64_t send =
      sent && !instance->p2p ? 0 : sign * psplit_i_send_ns(instance, e, from, to);
    l->recv[s] += recv;
    l->send[home] += send;
    l->comm += recv + send;
    sent = true;
  }
  l->n_steps += instance->net_off[e + 1] - instance->net_off[e];
}

static void touch_nets(descent *l) {
  const psplit_i_instance *instance = l->instance;
  l->n_touched = 0;
  l->move++;
  for (uint32_t i = 0; i < l->n_moving; i++)
    for (uint32_t k = instance->inc_off[l->moving[i]]; k < instance->inc_off[l->moving[i] + 1];
         k++) {
      const uint32_t e = instance->inc[k] >> 1;
      if (l->net_stamp[e] == l->move) continue;
      l->net_stamp[e] = l->move;
      l->touched[l->n_touched++] = e;
    }
}

static void move_gathered(descent *l, uint32_t from, uint32_t to) {
  const psplit_i_instance *instance = l->instance;
  for (uint32_t i = 0; i < l->n_touched; i++) count_net(l, l->touched[i], -1);
  for (uint32_t i = 0; i < l->n_moving; i++) {
    const uint32_t v = l->moving[i];
    l->w[from] -= instance->w[(size_t)l->assignment->device[from] * instance->n + v];
    l->w[to] += instance->w[(size_t)l->assignment->device[to] * instance->n + v];
    l->n_counted[from] -= instance->n_counted[v];
    l->n_counted[to] += instance->n_counted[v];
    l->assignment->stage[v] = to;
  }
  for (uint32_t i = 0; i < l->n_touched; i++) count_net(l, l->touched[i], 1);
}

static bool is_light(const descent *l, uint32_t s) {
  return psplit_i_load(l->instance, l->w[s], l->recv[s], l->send[s]) <= l->assignment->value;
}

/* Whether all loads that the move may have raised are within the bottleneck: those of stages with a
 * pin of a touched net. */
static bool all_are_light(const descent *l, uint32_t from, uint32_t to) {
  const psplit_i_instance *instance = l->instance;
  if (!is_light(l, from) || !is_light(l, to)) return false;
  for (uint32_t i = 0; i < l->n_touched; i++)
    for (uint32_t k = instance->net_off[l->touched[i]]; k < instance->net_off[l->touched[i] + 1];
         k++)
      if (!is_light(l, l->assignment->stage[instance->net_pin[k]])) return false;
  return true;
}

/* The memory of one stage. */
static bool fits(descent *l, uint32_t s) {
  const psplit_i_instance *instance = l->instance;
  const uint64_t limit = instance->problem->devices[l->assignment->device[s]].memory_bytes;
  if (!instance->has_memory || limit == 0) return true;
  uint64_t weight = 0, act = 0;
  for (uint32_t i = 0; i < instance->n; i++) {
    if (l->assignment->stage[i] != s) continue;
    weight += instance->weight_bytes[i];
    act += instance->act_bytes[i];
  }
  for (uint32_t g = 0; g < instance->n_groups; g++)
    for (uint32_t k = instance->group_off[g]; k < instance->group_off[g + 1]; k++)
      if (l->assignment->stage[instance->group_cluster[k]] == s) {
        weight += instance->group_bytes[g];
        break;
      }
  l->n_steps += instance->n;
  const uint64_t held = instance->stash ? instance->n_stages - s : 1;
  return psplit_i_sat_add_u64(weight, psplit_i_sat_mul_u64(held, act)) <= limit;
}

/* Collects v and everything of its stage that must move with it. Returns false if that may not
 * move, or is too much. */
static bool gather(descent *l, uint32_t v, uint32_t to) {
  const psplit_i_instance *instance = l->instance;
  const uint32_t from = l->assignment->stage[v];
  const bool back = to < from;
  const uint32_t *off = back ? instance->pred_off : instance->succ_off;
  const uint32_t *next = back ? instance->pred : instance->succ;
  bool may = true;
  l->n_moving = 0;
  l->moving[l->n_moving++] = v;
  l->is_moving[v] = true;
  for (uint32_t i = 0; i < l->n_moving && may; i++) {
    const uint32_t u = l->moving[i];
    may = instance->pin[u] == PSPLIT_NONE &&
          instance->w[(size_t)l->assignment->device[to] * instance->n + u] < PSPLIT_I_INF;
    for (uint32_t k = off[u]; k < off[u + 1] && may; k++) {
      const uint32_t x = next[k];
      if (l->assignment->stage[x] != from || l->is_moving[x]) continue;
      if (l->n_moving == l->options->most_together) may = false;
      if (!may) break;
      l->moving[l->n_moving++] = x;
      l->is_moving[x] = true;
    }
    l->n_steps += off[u + 1] - off[u] + 1;
  }
  for (uint32_t i = 0; i < l->n_moving; i++) l->is_moving[l->moving[i]] = false;
  return may;
}

static bool try_move(descent *l, uint32_t v, uint32_t to) {
  const uint32_t from = l->assignment->stage[v];
  if (l->assignment->device[to] == PSPLIT_NONE || !gather(l, v, to)) return false;
  const int64_t before = l->comm;
  touch_nets(l);
  move_gathered(l, from, to);
  const bool empties = l->options->keep_full && l->n_counted[from] == 0;
  if (!empties && (l->comm < before || (l->comm == before && to < from)) &&
      all_are_light(l, from, to) && fits(l, to))
    return true;
  move_gathered(l, to, from);
  return false;
}

static void run(descent *l) {
  const uint32_t n = l->instance->n;
  for (bool any = true; any;) {
    any = false;
    for (uint32_t i = 0; i < n; i++) {
      const uint32_t v = l->options->order[i];
      while (l->assignment->stage[v] > 0 && try_move(l, v, l->assignment->stage[v] - 1)) any = true;
      if (l->assignment->stage[v] + 1 < l->instance->n_stages)
        any |= try_move(l, v, l->assignment->stage[v] + 1);
      if (l->n_steps > l->options->max_steps) return;
    }
  }
}

psplit_code psplit_i_descend_ties(const psplit_i_instance *instance,
                                  const psplit_i_automaton *automaton,
                                  const psplit_i_tie_descent_options *options,
                                  psplit_i_assignment *assignment) {
  descent l = {.instance = instance, .assignment = assignment, .options = options};
  const uint32_t n_stages = instance->n_stages;
  if (!psplit_i_takes(PSPLIT_I_RULE_TIES, automaton->features)) return PSPLIT_OK;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_code code = PSPLIT_NOMEM;
  l.w = PSPLIT_NEW(&arena, int64_t, (size_t)n_stages * 5);
  l.n_counted = PSPLIT_NEW(&arena, uint32_t, n_stages);
  l.mark = PSPLIT_NEW(&arena, uint32_t, n_stages);
  l.moving = psplit_i_arena_array(&arena, (size_t)options->most_together + 1, sizeof *l.moving);
  l.is_moving = PSPLIT_NEW(&arena, bool, instance->n);
  l.touched = psplit_i_arena_array(&arena, instance->n_nets, sizeof *l.touched);
  l.net_stamp = PSPLIT_NEW(&arena, uint32_t, instance->n_nets);
  if (!l.w || !l.n_counted || !l.mark || !l.moving || !l.is_moving || !l.touched || !l.net_stamp)
    goto out;
  code = PSPLIT_OK;
  l.recv = l.w + n_stages;
  l.send = l.recv + n_stages;
  for (uint32_t i = 0; i < instance->n; i++) {
    l.w[assignment->stage[i]] +=
      instance->w[(size_t)assignment->device[assignment->stage[i]] * instance->n + i];
    l.n_counted[assignment->stage[i]] += instance->n_counted[i];
  }
  for (uint32_t e = 0; e < instance->n_nets; e++) count_net(&l, e, 1);
  l.n_steps = 0;
  run(&l);
  psplit_i_assignment_evaluate(assignment, instance, automaton, l.w);
out:
  psplit_i_arena_fini(&arena);
  return code;
}
