/* What stays out of the stage that grows, for good, and what it costs.
 *
 * Clusters are taken in decreasing order. One that was passed over stays out, and so does whatever
 * comes before it: a stage with that would have to hold it, too. What the stage receives from there
 * it receives for good, and what is sent from there into the stage or behind it stages in front
 * send for good, whatever the stage takes besides.
 *
 * Where few stages lead to a label it pays to see that early: from the next round on what comes
 * before a cluster is followed. Of those with a net that crosses out of what is left, as the others
 * cost nothing yet, there is a list of the ones that may still be taken. What was done to it last
 * is undone first. */
#include "bounds.h"
#include "exact_inside.h"

enum {
  LOOKED_AT_PER_STEP = 32,
  MANY_STAGES = 1 << 14, /* of so many in a round */
  PART_LEADS_ON = 64     /* less than one part leads to a label: few do */
};

/* Net e leads from a cluster that stays out. `sent`, `received`: it does so since now. */
static void count_net(const psplit_i_expander *d, uint32_t e, bool sent, bool received,
                      psplit_i_passed *p) {
  const psplit_i_instance *instance = d->x->instance;
  if (sent) p->sent_ns += d->x->least_send[e];
  if (!received) return;
  p->recv_ns += d->x->least_recv[e];
  if (!instance->makes_message) return;
  p->message |= instance->makes_message[e];
  p->on_trunk |= instance->on_trunk[e];
}

/* Whether the stage receives net e if it does not make it: it reads it, or passes it on. */
static bool is_received(const psplit_i_expander *d, uint32_t e) {
  if (d->tracker.n_in[e] > 0) return true;
  return d->x->bypasses && !d->bypassed && d->x->instance->makes_message[e] && d->n_placed[e] > 0;
}

static void enter(psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p) {
  psplit_i_crossing *const list = d->crossing, *const end = &list[d->x->instance->n];
  list[cluster].crosses = true;
  list[cluster].next = d->x->instance->n;
  list[cluster].previous = end->previous;
  list[end->previous].next = cluster;
  end->previous = cluster;
  d->crossed[p->n_crossed++] = cluster;
}

/* A cluster is taken, or stays out. */
static void leave(psplit_i_expander *d, uint32_t cluster, bool stays, psplit_i_passed *p) {
  psplit_i_crossing *const list = d->crossing;
  list[list[cluster].previous].next = list[cluster].next;
  list[list[cluster].next].previous = list[cluster].previous;
  list[cluster].decided = true;
  list[cluster].stays = stays;
  d->crossed[p->n_crossed++] = cluster;
}

static void count_nets(const psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p) {
  const psplit_i_instance *instance = d->x->instance;
  p->unseen = true;
  for (uint32_t k = instance->inc_off[cluster]; k < instance->inc_off[cluster + 1]; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (instance->inc[k] & 1) count_net(d, e, d->n_placed[e] > 0, is_received(d, e), p);
  }
}

static void stay_out(psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p) {
  leave(d, cluster, true, p);
  count_nets(d, cluster, p);
}

static const uint64_t *behind(const psplit_i_expander *d, uint32_t cluster) {
  return d->x->closure.behind + (size_t)cluster * d->x->words;
}

/* Whether the stage, which has decided of all from `from` on, passed over what is behind the
 * cluster. */
static bool is_cut_off(const psplit_i_expander *d, uint32_t cluster, uint32_t from) {
  const uint64_t *row = behind(d, cluster);
  uint64_t bits = row[from / 64] & d->left[from / 64] & (UINT64_MAX << (from % 64));
  for (uint32_t word = from / 64 + 1; !bits && word < d->x->words; word++)
    bits = row[word] & d->left[word];
  return bits != 0;
}

psplit_code psplit_i_exact_follow(psplit_i_program *x, uint64_t n_stages, uint64_t n_labels) {
  const bool few = n_stages >= MANY_STAGES && n_labels < n_stages / PART_LEADS_ON;
  if (x->follows || x->bypasses || x->instance->n > PSPLIT_I_LARGE ||
      !(few || x->options->follow_always))
    return PSPLIT_OK;
  x->follows = true;
  return psplit_i_closure_make(x->instance, x->options->budget, &x->closure);
}

psplit_code psplit_i_passed_init(psplit_i_expander *d) {
  const uint32_t n = d->x->instance->n;
  d->passed = PSPLIT_NEW(&d->arena, psplit_i_passed, (size_t)n + 1);
  d->crossing = PSPLIT_NEW(&d->arena, psplit_i_crossing, (size_t)n + 1);
  d->crossed = PSPLIT_NEW(&d->arena, uint32_t, 2 * (size_t)n);
  if (d->arena.failed) return PSPLIT_NOMEM;
  d->crossing[n] = (psplit_i_crossing){.next = n, .previous = n};
  return PSPLIT_OK;
}

void psplit_i_passed_start(psplit_i_expander *d) {
  const psplit_i_instance *instance = d->x->instance;
  d->passed[0] = (psplit_i_passed){0};
  for (uint32_t e = 0; d->x->follows && e < instance->n_nets; e++) {
    const uint32_t source = psplit_i_net_producer(instance, e);
    if (d->n_placed[e] > 0 && psplit_i_is_left(d, source) && !d->crossing[source].crosses)
      enter(d, source, &d->passed[0]);
  }
}

void psplit_i_passed_end(psplit_i_expander *d, const psplit_i_passed *p) {
  psplit_i_passed_undo(d, p, &(psplit_i_passed){0});
}

void psplit_i_passed_take(psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p) {
  const psplit_i_instance *instance = d->x->instance;
  const uint32_t from = instance->inc_off[cluster], to = instance->inc_off[cluster + 1];
  if (!d->x->follows) return;
  if (d->crossing[cluster].crosses) leave(d, cluster, false, p);
  for (uint32_t k = from; k < to; k++) {
    const uint32_t e = instance->inc[k] >> 1;
    if (!(instance->inc[k] & 1) && d->crossing[psplit_i_net_producer(instance, e)].stays)
      count_net(d, e, d->n_placed[e] == 1, d->tracker.n_in[e] == 1, p);
  }
  /* Then those that cross since now: all of their nets are counted at once. */
  for (uint32_t k = from; k < to; k++) {
    const uint32_t source = psplit_i_net_producer(instance, instance->inc[k] >> 1);
    if (instance->inc[k] & 1 || !psplit_i_is_left(d, source) || d->crossing[source].crosses)
      continue;
    enter(d, source, p);
    if (is_cut_off(d, source, cluster)) stay_out(d, source, p);
  }
}

void psplit_i_passed_over(psplit_i_expander *d, uint32_t cluster, psplit_i_passed *p) {
  const uint32_t end = d->x->instance->n, word = cluster / 64, bit = cluster % 64;
  uint32_t n_looked_at = 0;
  if (!d->x->follows) {
    count_nets(d, cluster, p);
    return;
  }
  for (uint32_t i = d->crossing[end].next, next; i != end; i = next, n_looked_at++) {
    next = d->crossing[i].next;
    if (behind(d, i)[word] >> bit & 1) stay_out(d, i, p);
  }
  d->n_steps += n_looked_at / LOOKED_AT_PER_STEP;
}

void psplit_i_passed_beside(psplit_i_expander *d, uint32_t from, uint32_t to, psplit_i_passed *p) {
  if (d->x->follows) return; /* something behind them was passed over */
  for (uint32_t word = from / 64; word * 64 < to; word++) {
    uint64_t bits = d->left[word];
    if (word == from / 64) bits &= UINT64_MAX << (from % 64);
    if (to - word * 64 < 64) bits &= (UINT64_C(1) << (to - word * 64)) - 1;
    for (; bits; bits &= bits - 1) count_nets(d, word * 64 + (uint32_t)__builtin_ctzll(bits), p);
  }
}

void psplit_i_passed_undo(psplit_i_expander *d, const psplit_i_passed *undone,
                          const psplit_i_passed *p) {
  psplit_i_crossing *const list = d->crossing;
  for (uint32_t k = undone->n_crossed; k-- > p->n_crossed;) {
    const uint32_t i = d->crossed[k];
    if (list[i].decided) { /* back into the list */
      list[list[i].previous].next = list[list[i].next].previous = i;
      list[i].decided = list[i].stays = false;
    } else {
      list[list[i].previous].next = list[i].next;
      list[list[i].next].previous = list[i].previous;
      list[i].crosses = false;
    }
  }
}
