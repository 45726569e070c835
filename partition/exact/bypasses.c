/* What stages pass on, in the exact program: a bound on splits whose tensors go by any way.
 *
 * Loads are counted as by shared memory: a stage receives in one message at least, and sends in
 * one. A stage is *bypassed* if some message goes from a stage in front of it to one behind it. Of
 * one that is not:
 *
 *   - A tensor that is made in front and read behind it goes by way of it, whichever way that is:
 *     it receives it and sends it.
 *   - If the next stage behind it is bypassed, and receives anything, then that comes from this
 *     one, for it would go past this one else; and so does the message past that stage. So this one
 *     sends two.
 *   - If the next in front of it is bypassed, and sends anything, that comes to this one, and so
 *     does the message past that stage. So this one receives two.
 *
 * The first and the last stage are not bypassed. Whatever way tensors go, some stages are bypassed
 * and the others are not; the program tries both of each stage, so its NO holds for all ways. No
 * stage may be empty here: one that is may pass on what it does not need, and takes two messages of
 * others for one. A label says of the stage formed last whether it is bypassed, and what it has
 * paid for the next in front.
 *
 * Dominance: of two labels with the same left, on the same devices, one goes for the other where it
 * asks no more of the stage in front, since all else that a completion takes depends on what is
 * left alone. A stage that is bypassed is the same behind all that let it be: behind one that has
 * paid for its message, for the other message alone, or is bypassed itself; the former lets it send
 * nothing, too. One that is not sends more behind a bypassed one that receives something, and as
 * much behind one that receives nothing as behind one that is not bypassed. */
#include "exact_inside.h"
#include "instance.h"
#include "methods.h"

/* What a label says of the stage in front, which is formed next. Of two the first does not dominate
 * the second. */
enum {
  PASSES_ALL,    /* it is not bypassed, nor is the stage behind */
  SENDS_NOTHING, /* it is bypassed, and the stage behind has time for the other message alone */
  SENDS_APART,   /* it is bypassed, and the stage behind has time for its message */
  BESIDE_READER, /* either: the stage behind is bypassed, and receives something */
  BESIDE_SOURCE  /* either: the stage behind is bypassed, and receives nothing */
};

bool psplit_i_exact_counts_bypasses(const psplit_i_instance *instance,
                                    const psplit_i_automaton *automaton) {
  return psplit_i_one_message(instance) && instance->all_forward && automaton->all_used &&
         psplit_i_takes(PSPLIT_I_RULE_COUNT_BYPASSES, automaton->features);
}

void psplit_i_bypasses_load(psplit_i_expander *d, const uint32_t *list, uint32_t n) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  d->receivers = 0; /* it says something else now */
  d->beside = n ? list[0] : PASSES_ALL;
  d->passing = (psplit_i_passing){0};
  for (uint32_t e = 0; e < instance->n_nets; e++) {
    if (!instance->makes_message[e] || d->n_placed[e] == 0 ||
        !psplit_i_is_left(d, psplit_i_net_producer(instance, e)))
      continue;
    d->passing.send_ns += x->least_send[e];
    d->passing.recv_ns += x->least_recv[e];
    d->passing.n_sent++;
    d->passing.n_received++;
  }
}

uint32_t psplit_i_bypasses_list(const psplit_i_expander *d, uint32_t *out_list) {
  out_list[0] = d->next_beside;
  return d->next_beside != PASSES_ALL;
}

bool psplit_i_bypasses_cover(uint32_t beside, uint32_t other) {
  if (beside == BESIDE_SOURCE) return true;
  return beside >= other && other != PASSES_ALL;
}

void psplit_i_bypasses_take(psplit_i_expander *d, uint32_t cluster, bool add) {
  const psplit_i_program *x = d->x;
  const psplit_i_instance *instance = x->instance;
  const int sign = add ? -1 : 1;
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1, others = d->tracker.n_in[e] - (add ? 1 : 0);
    const bool made_here = instance->inc[k] & 1;
    /* Only what is read behind the stage goes past it. */
    if (!instance->makes_message[e] || d->n_placed[e] == d->tracker.n_in[e]) continue;
    if (made_here) {
      d->passing.send_ns += sign * x->least_send[e];
      d->passing.n_sent += (uint32_t)sign;
    }
    if (others > 0) continue; /* the stage receives it for itself */
    d->passing.recv_ns += sign * x->least_recv[e];
    d->passing.n_received += (uint32_t)sign;
  }
}

bool psplit_i_bypasses_may(const psplit_i_expander *d, bool bypassed) {
  if (d->from->parent == PSPLIT_NONE) return !bypassed;
  if (bypassed) return d->beside != PASSES_ALL;
  return d->beside != SENDS_APART && d->beside != SENDS_NOTHING;
}

static int64_t sent_messages(const psplit_i_expander *d) {
  if (d->beside == BESIDE_READER) return 2;
  return d->tracker.n_messages[0] > 0 || d->passing.n_sent > 0;
}

int64_t psplit_i_bypasses_more_sent(const psplit_i_expander *d, uint32_t type) {
  const int64_t own = d->tracker.n_messages[0] > 0;
  if (d->bypassed) return 0;
  return d->passing.send_ns + (sent_messages(d) - own) * d->x->instance->least_message[type];
}

/* More than the tracker has, if that much is received in `messages` of them at least. */
static int64_t more_received(const psplit_i_expander *d, uint32_t type, int64_t messages) {
  const psplit_i_instance *instance = d->x->instance;
  const int64_t own = d->tracker.n_messages[1] > 0;
  const int64_t any = own || d->passing.n_received > 0, n = messages > any ? messages : any;
  return d->passing.recv_ns + (n - own) * instance->least_message[instance->n_types + type];
}

bool psplit_i_bypasses_sends_in_vain(const psplit_i_expander *d) {
  return d->bypassed && d->beside == SENDS_NOTHING && d->tracker.n_messages[0] > 0;
}

/* Whether a cluster is left that sends nothing: a stage that sends nothing has one. *out_any:
 * whether any is left. */
static bool any_leaf(const psplit_i_expander *d, bool *out_any) {
  bool leaf = false;
  *out_any = false;
  for (uint32_t word = 0; word < d->x->words && !leaf; word++)
    for (uint64_t bits = d->left[word]; bits && !leaf; bits &= bits - 1) {
      leaf = d->x->instance->is_leaf[word * 64 + (uint32_t)__builtin_ctzll(bits)];
      *out_any = true;
    }
  return leaf;
}

static uint64_t key_of(uint32_t beside) {
  return beside == PASSES_ALL ? 0 : psplit_i_splitmix64(0xb19a55ed, beside);
}

static uint32_t add_way(psplit_i_expander *d, uint32_t n, uint32_t beside, int64_t more_ns,
                        psplit_i_bypass_way *out_ways) {
  (void)d;
  out_ways[n] = (psplit_i_bypass_way){.beside = beside, .more_ns = more_ns, .key = key_of(beside)};
  return n + 1;
}

uint32_t psplit_i_bypasses_ways(psplit_i_expander *d, uint32_t type,
                                psplit_i_bypass_way *out_ways) {
  bool any;
  const bool leaf = any_leaf(d, &any);
  uint32_t n = 0;
  if (d->bypassed) {
    if (!any || psplit_i_bypasses_sends_in_vain(d)) return 0; /* the first stage never is */
    return add_way(d, n, d->tracker.n_messages[1] > 0 ? BESIDE_READER : BESIDE_SOURCE, 0, out_ways);
  }
  const int64_t sent = psplit_i_bypasses_more_sent(d, type);
  n = add_way(d, n, PASSES_ALL, sent + more_received(d, type, 0), out_ways);
  if (any) n = add_way(d, n, SENDS_APART, sent + more_received(d, type, 2), out_ways);
  if (leaf) n = add_way(d, n, SENDS_NOTHING, sent + more_received(d, type, 1), out_ways);
  return n;
}
