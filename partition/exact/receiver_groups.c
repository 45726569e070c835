/* Receivers of nets over links between pairs of devices.
 *
 * What a stage pays to send a net depends on where the receivers are, so labels count receivers by
 * group: stages that all stages in front reach alike. The fewer stages are in front, the fewer
 * groups. What a stage receives counts at the least, since who sends is not known. But where it
 * has no time left to receive a net over some link, the stages that have no other cannot hold the
 * producer: labels carry a mask of them, and what any one net takes counts truly. */
#include "exact_inside.h"
#include "instance.h"

enum {
  MOST_STAGES = 128, /* the table of groups grows with their cube */
  MASK_BITS = 32     /* more stages than that have no masks */
};

/* Flag of a net in a label's list: what follows is a mask. */
static const uint32_t IS_MASK = UINT32_C(1) << 31;

bool psplit_i_groups_apply(const psplit_i_program *x) {
  const psplit_i_instance *instance = x->instance;
  return instance->link && instance->p2p && instance->all_forward && x->automaton->all_used &&
         !x->automaton->replicated && !x->options->send_once && !x->options->least_comm &&
         instance->n_stages <= MOST_STAGES;
}

bool psplit_i_groups_prepare(psplit_i_program *x) {
  const psplit_i_instance *instance = x->instance;
  const uint32_t n = instance->n_stages;
  x->alike = psplit_i_arena_array(&x->arena, (size_t)n + 1, n * sizeof *x->alike);
  x->type_of_stage = PSPLIT_NEW(&x->arena, uint32_t, n);
  x->most_extra = PSPLIT_NEW(&x->arena, int64_t, n);
  if (!x->alike || !x->type_of_stage || !x->most_extra) return false;
  for (uint32_t t = 0, s = 0; t < instance->n_types; t++)
    for (uint32_t k = 0; k < instance->problem->devices[t].count; k++) x->type_of_stage[s++] = t;
  const uint32_t *type = x->type_of_stage;
  for (uint32_t top = 0; top <= n; top++)
    for (uint32_t r = top; r < n; r++) {
      uint32_t like = top;
      for (bool same = false; like < r; like += !same) {
        same = true;
        for (uint32_t p = 0; p < top && same; p++)
          same = instance->device_link[(size_t)type[p] * instance->n_types + type[like]] ==
                 instance->device_link[(size_t)type[p] * instance->n_types + type[r]];
        if (same) break;
      }
      x->alike[(size_t)top * n + r] = like;
    }
  for (uint32_t s = 0; s < n; s++)
    for (uint32_t p = 0; p < s; p++)
      for (uint32_t e = 0; e < instance->n_nets; e++) {
        const int64_t extra = psplit_i_recv_ns(instance, e, type[p], type[s]) -
                              instance->recv[(size_t)type[s] * instance->n_nets + e];
        if (extra > x->most_extra[s]) x->most_extra[s] = extra;
      }
  return true;
}

psplit_code psplit_i_groups_init(psplit_i_expander *d) {
  const psplit_i_instance *instance = d->x->instance;
  const uint32_t n_nets = instance->n_nets;
  if (!d->x->alike) return PSPLIT_OK;
  d->groups = PSPLIT_NEW(&d->arena, psplit_i_receiver_group, instance->net_off[n_nets]);
  d->first_group = PSPLIT_NEW(&d->arena, uint32_t, (size_t)n_nets + 1);
  d->here = PSPLIT_NEW(&d->arena, uint32_t, n_nets);
  d->group_hash = PSPLIT_NEW(&d->arena, uint64_t, n_nets);
  d->sent_ns = PSPLIT_NEW(&d->arena, int64_t, n_nets);
  d->pairs = PSPLIT_NEW(&d->arena, uint32_t, 2 * ((size_t)instance->net_off[n_nets] + n_nets));
  if (instance->n_stages <= MASK_BITS) {
    d->mask = PSPLIT_NEW(&d->arena, uint32_t, n_nets);
    d->seen = PSPLIT_NEW(&d->arena, uint32_t, n_nets);
    d->barred = PSPLIT_NEW(&d->arena, psplit_i_barred_net, n_nets);
    d->next_barred = PSPLIT_NEW(&d->arena, psplit_i_barred_net, n_nets);
    if (!d->mask || !d->seen || !d->barred || !d->next_barred) return PSPLIT_NOMEM;
  }
  return d->groups && d->first_group && d->here && d->group_hash && d->sent_ns && d->pairs
           ? PSPLIT_OK
           : PSPLIT_NOMEM;
}

static uint64_t group_key(uint32_t net, uint32_t group, uint32_t count) {
  return count ? psplit_i_count_key(net, group << PSPLIT_I_GROUP_SHIFT | count) : 0;
}

/* Hash of what changes when the stage itself receives the net. */
static uint64_t joining_key(const psplit_i_expander *d, uint32_t e) {
  return group_key(e, d->here_group, d->here[e]) ^ group_key(e, d->here_group, d->here[e] + 1);
}

/* Adds receivers to the groups of the net that was listed last. */
static void add_group(psplit_i_expander *d, uint32_t *n, uint32_t net, uint32_t group,
                      uint32_t count) {
  uint32_t k = d->first_group[net];
  while (k < *n && d->groups[k].group != group) k++;
  if (k == *n)
    d->groups[(*n)++] = (psplit_i_receiver_group){net, group, count};
  else
    d->groups[k].count += count;
}

void psplit_i_groups_load(psplit_i_expander *d, const uint32_t *pairs, uint32_t n_pairs) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  const uint32_t n_stages = instance->n_stages;
  d->stage = n_stages - x->automaton->used[d->from->state] - 1;
  const uint32_t *alike = x->alike + (size_t)d->stage * n_stages;
  d->here_group = alike[d->stage];
  uint32_t n = 0, i = 0;
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    d->first_group[e] = n;
    d->here[e] = d->times_sent[e] = 0;
    d->group_hash[e] = 0;
    d->sent_ns[e] = 0;
    for (; i < n_pairs && pairs[i] == e; i += 2) {
      const uint32_t group = pairs[i + 1] >> PSPLIT_I_GROUP_SHIFT;
      const uint32_t count = pairs[i + 1] & ((UINT32_C(1) << PSPLIT_I_GROUP_SHIFT) - 1);
      d->sent_ns[e] +=
        count * psplit_i_send_ns(instance, e, x->type_of_stage[d->stage], x->type_of_stage[group]);
      d->times_sent[e] += count;
      add_group(d, &n, e, alike[group], count);
    }
    for (uint32_t k = d->first_group[e]; k < n; k++) {
      d->group_hash[e] ^= group_key(e, d->groups[k].group, d->groups[k].count);
      if (d->groups[k].group == d->here_group) d->here[e] = d->groups[k].count;
    }
    d->receivers ^= d->group_hash[e];
  }
  d->first_group[instance->n_nets] = n;
  while (d->n_barred > 0) d->mask[d->barred[--d->n_barred].net] = 0;
  for (; i < n_pairs; i += 2) {
    const uint32_t net = pairs[i] & ~IS_MASK;
    d->barred[d->n_barred++] = (psplit_i_barred_net){net, d->mask[net] = pairs[i + 1]};
  }
}

void psplit_i_groups_take(psplit_i_expander *d, uint32_t cluster, bool add) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (!x->counted[e]) continue;
    const uint32_t others = d->tracker.n_in[e] - (add ? 1 : 0);
    if (instance->inc[k] & 1) {
      d->receivers ^= d->group_hash[e] ^ (others > 0 ? joining_key(d, e) : 0);
      if (d->barred && d->mask[e] >> d->stage & 1) d->n_barred_here += add ? 1 : UINT32_MAX;
    } else if (others == 0 && psplit_i_is_left(d, psplit_i_net_producer(instance, e)))
      d->receivers ^= joining_key(d, e);
  }
}

/* Stages in front of this one that cannot send net e: it has no more than `slack` to spare. */
static uint32_t without_time(const psplit_i_expander *d, uint32_t e, int64_t slack) {
  const psplit_i_program *x = d->x;
  const uint32_t type = x->type_of_stage[d->stage];
  const int64_t least = x->instance->recv[(size_t)type * x->instance->n_nets + e];
  uint32_t mask = 0;
  for (uint32_t p = 0; p < d->stage; p++)
    if (psplit_i_recv_ns(x->instance, e, x->type_of_stage[p], type) - least > slack)
      mask |= UINT32_C(1) << p;
  return mask;
}

/* Adds net e with the mask that it has now. False: no stage in front can send it. */
static bool add_barred(psplit_i_expander *d, uint32_t e, int64_t slack, uint64_t *inout_receivers) {
  const uint32_t all = d->stage < MASK_BITS ? (UINT32_C(1) << d->stage) - 1 : UINT32_MAX;
  if (d->seen[e] == d->n_seen || !psplit_i_is_left(d, psplit_i_net_producer(d->x->instance, e)))
    return true;
  d->seen[e] = d->n_seen;
  uint32_t mask = d->mask[e] & all;
  if (d->tracker.n_in[e] > 0) mask |= without_time(d, e, slack);
  if (mask == all) return false;
  if (mask == 0) return true;
  *inout_receivers ^= psplit_i_count_key(e | IS_MASK, mask);
  d->next_barred[d->n_next_barred++] = (psplit_i_barred_net){e, mask};
  return true;
}

bool psplit_i_groups_bar(psplit_i_expander *d, const psplit_i_transition *move,
                         uint64_t *inout_receivers) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  d->n_next_barred = 0;
  if (!d->barred || d->stage == 0) return true;
  const int64_t used = instance->overlap
                         ? d->tracker.recv[move->type]
                         : psplit_i_load_tracker_load(&d->tracker, x->automaton, move);
  const int64_t slack = x->options->limit - used;
  d->n_seen++;
  for (uint32_t k = 0; k < d->n_barred; k++)
    if (!add_barred(d, d->barred[k].net, slack, inout_receivers)) return false;
  if (slack >= x->most_extra[d->stage]) return true;
  for (uint32_t i = 0; i < d->n_taken; i++) {
    const uint32_t v = d->taken[i];
    for (uint32_t k = instance->inc_off[v]; k < instance->inc_off[v + 1]; k++)
      if (!(instance->inc[k] & 1) && x->counted[instance->inc[k] >> 1] &&
          !add_barred(d, instance->inc[k] >> 1, slack, inout_receivers))
        return false;
  }
  d->n_steps += d->n_taken / 4;
  return true;
}

uint32_t psplit_i_groups_list(const psplit_i_expander *d, uint32_t *pairs) {
  const psplit_i_program *x = d->x;
  uint32_t n = 0;
  for (uint32_t e = 0; e < x->instance->n_nets; e++) {
    if (!x->counted[e] || !psplit_i_is_left(d, psplit_i_net_producer(x->instance, e))) continue;
    bool joins = d->tracker.n_in[e] > 0;
    for (uint32_t k = d->first_group[e]; k < d->first_group[e + 1]; k++) {
      const bool here = joins && d->groups[k].group == d->here_group;
      pairs[n++] = e;
      pairs[n++] = d->groups[k].group << PSPLIT_I_GROUP_SHIFT | (d->groups[k].count + here);
      joins &= !here;
    }
    if (!joins) continue;
    pairs[n++] = e;
    pairs[n++] = d->here_group << PSPLIT_I_GROUP_SHIFT | 1;
  }
  for (uint32_t k = 0; k < d->n_next_barred; k++) {
    pairs[n++] = d->next_barred[k].net | IS_MASK;
    pairs[n++] = d->next_barred[k].mask;
  }
  return n;
}
