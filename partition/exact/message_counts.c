/* Messages in the exact program: who sends to whom.
 *
 * Stages are formed from the last one. Of each stage behind that waits for messages from clusters
 * which are left, a label says which clusters these are, and to how many stages they may come: as
 * many as the stage has time to receive a message from. A stage that is formed with any of them
 * sends it one message. What such a stage is called counts for nothing, so labels in which stages
 * wait for the same in another order are one. A number that is as large as clusters and devices in
 * front allow binds no stage and is left out. */
#include "exact_inside.h"
#include "instance.h"
#include "methods.h"
#include "union_find.h"

bool psplit_i_exact_counts_messages(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton) {
  return instance->makes_message && instance->p2p && instance->all_forward &&
         psplit_i_takes(PSPLIT_I_RULE_COUNT_MESSAGES, automaton->features);
}

bool psplit_i_messages_apply(const psplit_i_program *x) {
  return psplit_i_exact_counts_messages(x->instance, x->automaton) && !x->options->send_once &&
         !x->options->least_comm;
}

psplit_code psplit_i_messages_init(psplit_i_expander *d) {
  const psplit_i_instance *instance = d->x->instance;
  const size_t n_pins = instance->net_off[instance->n_nets], n_stages = instance->n_stages;
  if (d->x->floor.by_pairs && instance->n_roots > 0) {
    d->part = PSPLIT_NEW(&d->arena, uint32_t, instance->n);
    d->sender_seen = PSPLIT_NEW(&d->arena, uint32_t, instance->n);
    if (!d->part || !d->sender_seen) return PSPLIT_NOMEM;
  }
  if (!d->x->messages) return PSPLIT_OK;
  d->waiting = PSPLIT_NEW(&d->arena, psplit_i_waiting_stage, n_stages);
  d->awaited = PSPLIT_NEW(&d->arena, psplit_i_awaited_cluster, n_pins);
  d->first_awaited = PSPLIT_NEW(&d->arena, uint32_t, instance->n);
  if (!d->sender_seen) d->sender_seen = PSPLIT_NEW(&d->arena, uint32_t, instance->n);
  d->next_waiting = PSPLIT_NEW(&d->arena, uint32_t, n_pins + 2 * n_stages);
  d->pairs = PSPLIT_NEW(&d->arena, uint32_t, 2 * (size_t)instance->n_nets + n_pins + 2 * n_stages);
  if (!d->waiting || !d->awaited || !d->first_awaited || !d->sender_seen || !d->next_waiting ||
      !d->pairs)
    return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < instance->n; v++) d->first_awaited[v] = PSPLIT_NONE;
  return PSPLIT_OK;
}

/* Of one stage: list[0] has how many clusters it waits for, list[1] from how many stages at most,
 * then come the clusters. */
static uint64_t waiting_key(const uint32_t *list) {
  const uint32_t n = list[0] & ~PSPLIT_I_WAITING;
  uint64_t key = psplit_i_splitmix64(0x3e55a9e, list[1]);
  for (uint32_t i = 0; i < n; i++) key = psplit_i_mix64(key + list[2 + i] + 1);
  return key;
}

/* A sum: two stages may wait for the same. */
static uint64_t key_of_all(const uint32_t *list, uint32_t n) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < n; i += 2 + (list[i] & ~PSPLIT_I_WAITING)) sum += waiting_key(list + i);
  return n ? psplit_i_mix64(sum) : 0;
}

void psplit_i_messages_load(psplit_i_expander *d, const uint32_t *list, uint32_t n) {
  d->receivers ^= key_of_all(list, n);
  for (uint32_t k = 0; k < d->n_awaited; k++) d->first_awaited[d->awaited[k].cluster] = PSPLIT_NONE;
  d->n_awaited = d->n_waiting = d->n_messages = d->n_trunk_times = 0;
  for (uint32_t i = 0; i < n;) {
    const uint32_t n_here = list[i] & ~PSPLIT_I_WAITING;
    d->waiting[d->n_waiting] = (psplit_i_waiting_stage){d->n_awaited, n_here, list[i + 1], 0};
    for (uint32_t k = 0; k < n_here; k++) {
      const uint32_t v = list[i + 2 + k];
      d->awaited[d->n_awaited] = (psplit_i_awaited_cluster){v, d->n_waiting, d->first_awaited[v]};
      d->first_awaited[v] = d->n_awaited++;
    }
    d->n_waiting++;
    i += 2 + n_here;
  }
}

void psplit_i_messages_take(psplit_i_expander *d, uint32_t cluster, bool add) {
  const psplit_i_instance *instance = d->x->instance;
  for (uint32_t k = d->first_awaited[cluster]; k != PSPLIT_NONE; k = d->awaited[k].next) {
    psplit_i_waiting_stage *w = &d->waiting[d->awaited[k].stage];
    if (add)
      d->n_messages += w->n_here++ == 0;
    else
      d->n_messages -= --w->n_here == 0;
  }
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    const uint32_t inside = d->tracker.n_in[e] + (add ? 0 : 1);
    if (!(instance->inc[k] & 1) || !instance->on_trunk[e]) continue;
    if (inside == instance->net_off[e + 1] - instance->net_off[e]) continue; /* it is not sent */
    d->n_trunk_times += add ? d->times_sent[e] : 0 - d->times_sent[e];
  }
}

int64_t psplit_i_messages_more_sent(const psplit_i_expander *d, uint32_t type) {
  const int64_t message = psplit_i_message_ns(d->x->instance, type, type, true);
  return ((int64_t)d->n_messages - (int64_t)d->n_trunk_times) * message;
}

static void sort(uint32_t *items, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t k = i; k > 0 && items[k] < items[k - 1]; k--) {
      const uint32_t item = items[k];
      items[k] = items[k - 1];
      items[k - 1] = item;
    }
}

/* Clusters left that the stage waits for messages from, ascending. */
static uint32_t list_senders(psplit_i_expander *d, uint32_t *out_clusters) {
  const psplit_i_instance *instance = d->x->instance;
  uint32_t n = 0;
  d->n_sender_seen++;
  for (uint32_t i = 0; i < d->n_taken; i++)
    for (uint32_t k = instance->inc_off[d->taken[i]]; k < instance->inc_off[d->taken[i] + 1]; k++) {
      const uint32_t e = instance->inc[k] >> 1, from = psplit_i_net_producer(instance, e);
      if ((instance->inc[k] & 1) || !instance->makes_message[e] || !psplit_i_is_left(d, from) ||
          d->sender_seen[from] == d->n_sender_seen)
        continue;
      d->sender_seen[from] = d->n_sender_seen;
      out_clusters[n++] = from;
    }
  sort(out_clusters, n);
  return n;
}

/* Most stages, up to `most`, that the stage has time to receive a message from; NONE: not even from
 * as many as it must. */
static uint32_t most_senders(const psplit_i_expander *d, uint32_t type, uint32_t most) {
  const psplit_i_instance *instance = d->x->instance;
  const psplit_i_load_tracker *tracker = &d->tracker;
  const int64_t message = psplit_i_message_ns(instance, type, type, false);
  const int64_t send = tracker->send[type] + psplit_i_messages_more_sent(d, type);
  const int64_t recv = tracker->recv[type] - (int64_t)tracker->n_on_trunk[1] * message;
  for (uint32_t n = most + 1; n-- > (most > 0);)
    if (psplit_i_load(instance, tracker->w[type], recv + n * message, send) <= d->x->options->limit)
      return n;
  return PSPLIT_NONE;
}

/* Adds a stage that waits for the n clusters that stand behind its two numbers already. */
static void add_waiting(psplit_i_expander *d, uint32_t n, uint32_t senders, uint32_t stages_left) {
  uint32_t *list = d->next_waiting + d->n_next_waiting;
  const uint32_t most = n < stages_left ? n : stages_left;
  list[0] = n | PSPLIT_I_WAITING;
  list[1] = senders < most ? senders : PSPLIT_NONE;
  d->n_next_waiting += 2 + n;
  d->n_still_waiting++;
}

/* The stages behind this one, once it has sent them what it does. */
static bool list_waiting(psplit_i_expander *d, uint32_t stages_left) {
  for (uint32_t s = 0; s < d->n_waiting; s++) {
    const psplit_i_waiting_stage *w = &d->waiting[s];
    uint32_t *clusters = d->next_waiting + d->n_next_waiting + 2, n = 0;
    uint32_t senders = w->senders;
    if (w->n_here == w->n) continue;
    if (w->n_here > 0 && senders != PSPLIT_NONE && --senders == 0) return false;
    for (uint32_t k = w->first; k < w->first + w->n; k++)
      if (psplit_i_is_left(d, d->awaited[k].cluster)) clusters[n++] = d->awaited[k].cluster;
    add_waiting(d, n, senders, stages_left);
  }
  return true;
}

bool psplit_i_messages_pass(psplit_i_expander *d, const psplit_i_transition *move,
                            uint64_t *inout_receivers) {
  const psplit_i_automaton *m = d->x->automaton;
  const uint32_t stages_left = m->n_stages - m->used[move->next];
  d->n_steps += d->n_taken / 4;
  d->n_next_waiting = d->n_still_waiting = 0;
  const uint32_t n = list_senders(d, d->next_waiting + 2);
  const uint32_t senders = most_senders(d, move->type, n < stages_left ? n : stages_left);
  if (senders == PSPLIT_NONE || (n > 0 && senders == 0)) return false;
  if (n > 0) add_waiting(d, n, senders, stages_left);
  if (!list_waiting(d, stages_left)) return false;
  *inout_receivers ^= key_of_all(d->next_waiting, d->n_next_waiting);
  return true;
}

/* Parts of what is left. *out_silent: where messages are counted, as if stages behind that wait for
 * clusters joined these, so that each has one more; where stages pass on, without the parts that
 * something is sent from to a stage behind. */
static uint32_t count_parts(psplit_i_expander *d, uint32_t *out_silent) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  uint32_t n_parts = 0, n_joined = 0, n_open = 0;
  for (uint32_t word = 0; word < x->words; word++)
    for (uint64_t bits = d->left[word]; bits; bits &= bits - 1) {
      const uint32_t v = word * 64 + (uint32_t)__builtin_ctzll(bits);
      d->part[v] = v;
      n_parts += !psplit_i_is_weightless(x, v);
    }
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    const uint32_t from = psplit_i_net_producer(instance, e);
    if (!instance->makes_message[e] || !psplit_i_is_left(d, from)) continue;
    for (uint32_t k = instance->net_off[e] + 1; k < instance->net_off[e + 1]; k++)
      if (psplit_i_is_left(d, instance->net_pin[k]))
        n_parts -= psplit_i_unite(d->part, from, instance->net_pin[k]);
  }
  for (uint32_t i = 0; x->messages && i < d->n_next_waiting;) {
    const uint32_t n = d->next_waiting[i] & ~PSPLIT_I_WAITING;
    for (uint32_t k = 1; k < n; k++)
      n_joined += psplit_i_unite(d->part, d->next_waiting[i + 2], d->next_waiting[i + 2 + k]);
    i += 2 + n;
  }
  d->n_sender_seen++;
  for (uint32_t e = 0; x->bypasses && e < instance->n_nets; e++) {
    const uint32_t from = psplit_i_net_producer(instance, e);
    if (!instance->makes_message[e] || d->n_placed[e] == 0 || !psplit_i_is_left(d, from)) continue;
    uint32_t *seen = &d->sender_seen[psplit_i_find(d->part, from)];
    n_open += *seen != d->n_sender_seen;
    *seen = d->n_sender_seen;
  }
  *out_silent = n_parts - n_joined - n_open;
  return n_parts;
}

bool psplit_i_messages_exceed(psplit_i_expander *d, const psplit_i_transition *move, double spare) {
  enum { NETS_PER_STEP = 16 };
  const psplit_i_program *x = d->x;
  const psplit_i_load_tracker *tracker = &d->tracker;
  const uint32_t n_devices = x->automaton->n_stages - x->automaton->used[move->next];
  const int64_t limit = x->options->limit;
  uint32_t n_roots = 0, n_leaves = 0;
  if (x->instance->n_roots == 0) return false;
  for (uint32_t word = 0; word < x->words; word++)
    for (uint64_t bits = d->left[word]; bits; bits &= bits - 1) {
      const uint32_t v = word * 64 + (uint32_t)__builtin_ctzll(bits);
      n_roots += x->instance->is_root[v];
      n_leaves += x->instance->is_leaf[v];
    }
  const psplit_i_message_floor *floor = &x->floor;
  if (!floor->by_pairs)
    return psplit_i_message_floor_within(floor, n_devices, n_roots, n_leaves, 0, limit) > spare;
  /* Each stage that waits is sent a message at least; else this one, unless by the trunk, which it
   * may pass on where links are missing. */
  const bool apart = tracker->n_messages[1] > 0 && tracker->n_on_trunk[1] == 0;
  const uint32_t n_behind = x->messages ? d->n_still_waiting : apart && x->instance->p2p;
  uint32_t n_quiet = n_roots > 0, n_silent = x->bypasses ? 0 : n_quiet;
  if (psplit_i_message_floor_within(floor, n_devices, n_quiet, n_silent, n_behind, limit) <= spare)
    return false; /* however many parts there are */
  n_quiet = count_parts(d, &n_silent);
  d->n_steps += x->instance->n_nets / NETS_PER_STEP;
  if (x->bypasses && n_leaves < n_silent) n_silent = n_leaves;
  return psplit_i_message_floor_within(floor, n_devices, n_quiet, n_silent, n_behind, limit) >
         spare;
}

uint32_t psplit_i_messages_list(const psplit_i_expander *d, uint32_t *out_list) {
  for (uint32_t i = 0; i < d->n_next_waiting; i++) out_list[i] = d->next_waiting[i];
  return d->n_next_waiting;
}
