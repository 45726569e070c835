/* Whole stages in a row of fans. Each separator is in one stage, and a stage that has two has all
 * that lies between them. So between the separators a and z, of which no stage has both, are whole
 * stages: that of a with a part A of what is between, H, some in the middle, and that of z with the
 * rest. Let x be the time of what is in front of the rest, W that of H. In a split within T
 *
 *   load so far of the stage of a + time(A) + what it sends         <= T
 *   the same + time(middle) + what they send and receive            <= T (1 + middle)
 *   time(z) + W - x + what it receives                              =  load so far of that of z
 *
 * where what is sent or received is no less than a convex function of time(A) or x (fan_lines.h).
 * Besides, all of these stages must have room for what they take of H together, if what stages take
 * that miss a broad net counts in part or not at all: clusters that read all broad nets are in
 * none of those. So a broad net goes to some number of stages at least, which counts as well where
 * the stage of its producer ends in a fan before.
 *
 * The less a stage holds so far, the better for all that follows, so for each number of stages the
 * least load so far is enough; besides, a stage that began later sends fewer of the tensors of
 * clusters in front of a. Where no such row ends within the stages that there are, no split is
 * within T: an integer program, not an average over fans.
 *
 * Nothing is counted twice: a stage receives in the fan in which it begins, and sends in the one in
 * which it ends. */
#include "bounds.h"
#include "fan_lines.h"
#include "problem.h"

#include <string.h>

enum {
  ONE = PSPLIT_I_FAN_ONE,
  MOST_LABELS = 4, /* for one number of stages */
  MOST_BACK = 4,   /* fans from a broad net back to its producer */
  FINE = 1 << 20,  /* labels and fans of which all limits are asked, of others to one part in */
  CLOSE = 1 << 14
};

/* A stage that holds a separator, behind `used` others. */
typedef struct label {
  uint32_t used;
  uint32_t begin; /* it holds all clusters from this one to the separator */
  int64_t load;   /* so far, at least */
} label;

typedef PSPLIT_VEC(label) labels;

typedef struct row {
  const psplit_i_fans *fans;
  uint32_t n_stages;
  int64_t limit;
  int64_t saved;                /* of the fan, most_saved() */
  bool lacks_room, lacks_parts; /* by the last cut; by one so far, and more parts may help */
  /* [fans, OPEN + 1] at most the latest d open producers of a fan are in the stage of a, which ends
   * there: what they send to later fans, beyond one receiver each. */
  int64_t *later;
  labels now, next;
  psplit_i_budget *budget;
  bool failed;
} row;

typedef struct range {
  int64_t low, high;
} range;

static bool is_better(label a, label b) { return a.load <= b.load && a.begin >= b.begin; }

static void merge(label *into, label other) {
  if (other.load < into->load) into->load = other.load;
  if (other.begin > into->begin) into->begin = other.begin;
}

static void add(row *r, label new) {
  uint32_t n_alike = 0, last = 0;
  size_t kept = 0;
  if (new.load > r->limit || new.used >= r->n_stages) return;
  for (size_t k = 0; k < r->next.n; k++) {
    const label old = r->next.items[k];
    if (old.used <= new.used && is_better(old, new)) return;
  }
  for (size_t k = 0; k < r->next.n; k++) {
    const label old = r->next.items[k];
    if (old.used >= new.used && is_better(new, old)) continue;
    if (old.used == new.used) n_alike++, last = (uint32_t)kept;
    r->next.items[kept++] = old;
  }
  r->next.n = kept;
  if (n_alike >= MOST_LABELS)
    merge(&r->next.items[last], new);
  else if (!psplit_i_vec_push(&r->next, new))
    r->failed = true;
}

/* The x of [0, time] with x + cost(x) <= most; high < low: none. */
static range within(const psplit_i_fans *fans, psplit_i_fan_lines cost, int64_t time,
                    int64_t most) {
  range x = {0, most < time ? most : time};
  for (uint32_t k = cost.first; k < cost.end; k++) {
    const psplit_i_fan_line line = fans->lines.items[k];
    const int64_t left = ONE * most - line.at_zero, per_time = ONE + line.slope;
    if (per_time > 0) {
      const int64_t high = psplit_i_floor_div(left, per_time);
      if (high < x.high) x.high = high;
    } else if (per_time < 0) {
      const int64_t low = -psplit_i_floor_div(left, -per_time);
      if (low > x.low) x.low = low;
    } else if (left < 0) {
      x.high = -1;
    }
  }
  return x;
}

/* The most that a stage with neither separator has of a fan. */
static int64_t most_inside(const psplit_i_fans *fans, psplit_i_fan_lines of, int64_t time,
                           int64_t limit) {
  if (limit < 0) return 0;
  for (uint32_t k = of.first; k < of.end; k++) {
    const psplit_i_fan_line line = fans->lines.items[k];
    const int64_t most = psplit_i_floor_div(line.at_zero + line.slope * limit, ONE);
    if (most < time) time = most;
  }
  return time > 0 ? time : 0;
}

static int64_t most_missing(const psplit_i_fans *fans, const psplit_i_fan *f, int64_t limit) {
  int64_t most = 0;
  for (uint32_t k = 0; k < f->n_broad; k++) {
    const int64_t here = most_inside(fans, f->missing[k], f->time, limit);
    if (here > most) most = here;
  }
  return most;
}

/* What is saved at most by what the stage of z has of a fan, rounded up. */
static int64_t most_saved(const psplit_i_fans *fans, const psplit_i_fan *f, int64_t limit) {
  const int64_t load = limit - f->back_time - f->back_recv;
  int64_t most = fans->most;
  for (uint32_t k = f->saved.first; k < f->saved.end; k++) {
    const psplit_i_fan_line line = fans->lines.items[k];
    const int64_t here = -psplit_i_floor_div(-line.at_zero - line.slope * load, ONE);
    if (here < most) most = here;
  }
  return most;
}

static int64_t at_least_0(int64_t x) { return x > 0 ? x : 0; }

/* Whether all stages have room for what they take together, whatever a load counts in those that
 * miss a broad net; `left` to the stage of a. Returns the first share for which they do not, so 0
 * if more such stages would not help; SHARES: they have. */
static int64_t first_lacking(const psplit_i_fan *f, int64_t limit, int64_t left, int64_t saved,
                             uint32_t whole, uint32_t parts) {
  const int64_t ends = at_least_0(left) + limit - f->back_time - f->back_recv + saved;
  const int64_t room =
    psplit_i_sat_add_i64(ends, psplit_i_sat_mul_i64(whole, at_least_0(limit - f->broad_recv)));
  for (int64_t k = 0; k < PSPLIT_I_FAN_SHARES; k++) {
    const int64_t in_parts = psplit_i_sat_mul_i64(k * parts, limit);
    if (psplit_i_sat_add_i64(psplit_i_sat_mul_i64(PSPLIT_I_FAN_SHARES, room), in_parts) <
        f->shared[k])
      return k;
  }
  return PSPLIT_I_FAN_SHARES;
}

static int64_t *later_of(const row *r, const psplit_i_fan *f) {
  return r->later + (size_t)(f - r->fans->fan) * (PSPLIT_I_FAN_OPEN + 1);
}

/* The least number of stages without z that receive all broad nets, if none has their producers. */
static uint32_t least_whole(const row *r, const psplit_i_fan *f) {
  uint32_t low = 0, high = r->n_stages;
  const int64_t saved = most_saved(r->fans, f, r->limit);
  while (low < high) {
    const uint32_t whole = low + (high - low) / 2;
    if (first_lacking(f, r->limit, 0, saved, whole, r->n_stages) == PSPLIT_I_FAN_SHARES)
      high = whole;
    else
      low = whole + 1;
  }
  return low;
}

/* Adds what broad nets of a fan are sent if the stage of their producer ended in a fan before. A
 * fan that fits one stage may be in that of z. */
static void add_later(row *r, uint32_t k) {
  const psplit_i_fan *f = &r->fans->fan[k];
  if (f->n_broad == 0 || f->time + f->back_time <= r->limit) return;
  const int64_t whole = least_whole(r, f);
  for (uint32_t e = 0; e < f->n_broad; e++) {
    const psplit_i_fan_net net = f->broad[e];
    const int64_t more = psplit_i_sat_mul_i64(whole + net.certain - 1, net.send);
    for (uint32_t j = k; j-- > 0 && k - j <= MOST_BACK && net.producer < r->fans->fan[j].first;) {
      const psplit_i_fan *before = &r->fans->fan[j];
      uint32_t d = 0; /* open producers up to this one */
      if (net.producer + 1 < before->first)
        while (d++ < before->n_open && before->open[d - 1] != net.producer) continue;
      for (; d <= before->n_open && more > 0; d++) {
        int64_t *sent = &later_of(r, before)[d];
        *sent = psplit_i_sat_add_i64(*sent, more);
        if (*sent > r->limit) *sent = r->limit + 1; /* too much whatever it is */
      }
    }
  }
  psplit_i_spend(r->budget, 16 + 64 * (uint64_t)f->n_broad);
}

static uint32_t open_in(const psplit_i_fan *f, uint32_t begin) {
  uint32_t d = 0;
  while (d < f->n_open && f->open[d] >= begin) d++;
  return d;
}

/* The stage of a ends in the fan, and `whole` and `parts` stages are in the middle, which receive
 * all broad nets or not: adds the stage of z. Returns whether nothing of the fan need be left to
 * it. */
static bool cut(row *r, const psplit_i_fan *f, label from, uint32_t whole, uint32_t parts,
                int64_t per_whole, int64_t per_part) {
  const psplit_i_fans *fans = r->fans;
  const uint32_t d = open_in(f, from.begin);
  const int64_t left = r->limit - from.load - later_of(r, f)[d];
  const int64_t again = whole > 0 ? f->broad_send[d] * (whole - 1) + f->certain_send[d] : 0;
  const range a = within(fans, f->send[d], f->time, left - again);
  if (a.low > a.high) return true;
  const int64_t lacking = first_lacking(
    f, r->limit, left - whole * f->broad_send[d] - f->certain_send[d], r->saved, whole, parts);
  r->lacks_room = lacking < PSPLIT_I_FAN_SHARES;
  r->lacks_parts |= r->lacks_room && lacking > 0;
  if (r->lacks_room) return false;
  range x = a;
  if (whole + parts > 0) {
    int64_t most =
      left + (int64_t)parts * r->limit + whole * (r->limit - f->broad_recv - f->broad_send[d]);
    if (most > fans->most) most = fans->most;
    x = within(fans, f->send[d], f->time, most);
    const int64_t sum = a.high + whole * per_whole + parts * per_part;
    if (sum < x.high) x.high = sum;
  }
  if (x.low > x.high) return false;
  const int64_t at = f->best_front < x.low    ? x.low
                     : f->best_front > x.high ? x.high
                                              : f->best_front;
  const int64_t received = -psplit_i_floor_div(-psplit_i_fan_at(fans, f->recv, at), ONE);
  add(r, (label){from.used + 1 + whole + parts, f->end, f->back_time + f->time - at + received});
  return at == f->best_front;
}

static void pass(row *r, const psplit_i_fan *f) {
  const int64_t per_whole = most_inside(r->fans, f->middle, f->time, r->limit - f->broad_recv);
  const int64_t per_part = f->n_broad > 0 ? most_missing(r->fans, f, r->limit) : 0;
  r->saved = most_saved(r->fans, f, r->limit);
  r->next.n = 0;
  for (size_t k = 0; k < r->now.n && !r->failed; k++) {
    const label from = r->now.items[k];
    const uint32_t most = r->n_stages - from.used;
    add(r, (label){from.used, from.begin, from.load + f->time + f->back_time});
    for (uint32_t parts = 0; parts < most && (parts == 0 || per_part > 0 || r->lacks_parts);
         parts++) {
      bool all = false;
      r->lacks_room = r->lacks_parts = false;
      for (uint32_t whole = 0; whole + parts < most && !all; whole++) {
        psplit_i_spend(r->budget, 16);
        all = cut(r, f, from, whole, parts, per_whole, per_part);
        if (per_whole == 0 && !(r->lacks_room && r->limit > f->broad_recv)) break;
      }
      if (all && !r->lacks_parts && parts * per_part >= f->time) break;
    }
  }
}

/* Whether a split may be within the limit; true where the budget ends. */
static bool may_be(row *r, int64_t limit) {
  r->limit = limit;
  r->now.n = r->next.n = 0;
  add(r, (label){0, 0, 0});
  memset(r->later, 0, (size_t)r->fans->n * (PSPLIT_I_FAN_OPEN + 1) * sizeof *r->later);
  for (uint32_t k = 1; k < r->fans->n; k++) add_later(r, k);
  for (uint32_t k = 0; k < r->fans->n && !r->failed; k++) {
    const labels swap = r->now;
    r->now = r->next;
    r->next = swap;
    if (r->now.n == 0) return false;
    if (psplit_i_expired(r->budget)) return true;
    pass(r, &r->fans->fan[k]);
  }
  return r->failed || r->next.n > 0;
}

psplit_code psplit_i_bound_fan_row(const psplit_i_bound_query *query, psplit_i_budget *budget,
                                   int64_t *inout_bound) {
  psplit_i_fans fans;
  bool any;
  int64_t high = query->value;
  if (high >= PSPLIT_I_INF || *inout_bound >= high) return PSPLIT_OK;
  psplit_code code =
    psplit_i_fans_make(query->instance, query->automaton, high - 1, budget, &any, &fans);
  if (code != PSPLIT_OK) return code;
  row r = {.fans = &fans, .n_stages = query->automaton->n_stages, .budget = budget};
  r.later =
    psplit_i_arena_array(&fans.arena, (size_t)fans.n * (PSPLIT_I_FAN_OPEN + 1), sizeof *r.later);
  r.failed = !r.later;
  const int64_t close = fans.n > FINE / CLOSE ? high / CLOSE : 0;
  for (int64_t limit = *inout_bound; any && !r.failed;) {
    if (may_be(&r, limit))
      high = limit;
    else
      *inout_bound = limit + 1;
    if (high - *inout_bound <= close || psplit_i_expired(budget)) break;
    limit = *inout_bound + (high - *inout_bound) / 2;
  }
  psplit_i_vec_fini(&r.now);
  psplit_i_vec_fini(&r.next);
  psplit_i_fans_fini(&fans);
  return r.failed ? PSPLIT_NOMEM : PSPLIT_OK;
}
