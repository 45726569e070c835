/* Balls, each with an amount, are packed: what is behind a pair in all balls together is no more
 * than the pair costs, or, of pairs of a small net, what is paid for the net: limits that
 * ball_sides.h has. Then pairs in different parts cost no less than the sum of amounts times
 * (weight - T): the dual of a linear program over spreading metrics (Even, Naor, Rao and Schieber,
 * JACM 2000).
 *
 * As Garg and Koenemann do (SIAM Journal on Computing 2007), limits have lengths, which come to
 * those of pairs, and a ball with about the least ratio is packed until a limit of it is full.
 * Lengths grow by how full limits are.
 * Balls are grown around a class of clusters at a time, with the smaller classes the more a ball
 * changes others.
 * The balls of the first part of the budget only find lengths. Behind it lengths grow the slower,
 * the more balls there is time for. Amounts of these grow and shrink at the end, while lengths do
 * not change: in the norm of a high power of how full limits are, which sees the fullest ones
 * alone, each by the root of how its limits' fullness is against the mean, and by most of what it
 * changed by before (momentum); the power grows, too.
 * Then each ball is divided by how full the fullest of its limits is. Last, what limits have left
 * is filled. */
#include "ball_packing.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "ball_sides.h"
#include "balls.h"

enum {
  FIRST = 3,              /* one of so many parts of the budget is for lengths alone */
  MOST_FIRST = 16,        /* balls for each cluster that are for lengths alone */
  MOST_EACH = 64,         /* balls for each cluster that are kept */
  MOST_MORE = 1024,       /* balls that are kept besides, in all */
  MOST_ENTRIES = 6 << 20, /* limits of all balls that are kept */
  ENTRY_OPS = 64,         /* of the budget for an entry, or there are fewer */
  BALL_LIMITS = 8,        /* a ball kept has so many limits in the mean, or fewer are kept */
  MOST_CLASSES = 16,      /* of clusters */
  LEAST_IN_CLASS = 4,     /* clusters in each class, or all clusters are one class */
  FEW_PACKED = 4,  /* of balls grown: where fewer are packed, a class has half as many clusters */
  MANY_PACKED = 2, /* the same: where more are, it has twice as many */
  LEVELS = 6,      /* the power of the norm is 2^LEVELS at first */
  IMPROVEMENTS = 100,
  SQUARED = 50,       /* improvements before the power is squared */
  SQUARED_AGAIN = 80, /* improvements before it is squared once more */
  LOOK_OPS = 6,       /* operations that a look at a neighbour stands for */
  PACK_OPS = 16
};
#define GROWTH 0.3 /* of lengths, where a limit is filled once, at most */
#define STEADY \
  0.4 /* the same, over the root of how many balls for each cluster follow, up to MOST_FIRST */
#define LIKELY 0.93    /* of what lengths say is more at most, is proved in the end */
#define WORTH 5e-4     /* of the bound: less is not worth the time */
#define SURELY 1e-6    /* relative error of an amount and what it fills, at most */
#define MOST_FACTOR 2. /* by which an amount changes at once */
#define MOMENTUM 0.9   /* the power of its last factor that it changes by as well, */
#define FALLS 1e-3     /* unless that made all amounts worth so much less */

typedef struct packing {
  psplit_i_ball_graph graph;
  psplit_i_balls balls;
  psplit_i_ball_sides sides;
  psplit_i_budget *budget;
  double work, n_parts, most; /* most: T as balls are chosen */
  double *length;             /* [n_pairs] what those of limits come to */
  double *of_limit;           /* [sides.n] length of a limit with room for 1 */
  double *full;               /* [sides.n] */
  double *filled;             /* [sides.n] by the last ball; 0: it is not touched */
  uint32_t *touched;          /* [n_touched] limits */
  uint32_t n_touched;
  double *ratio;      /* [n] of the last ball around a cluster: no more than now */
  double level;       /* balls whose ratio is less are packed */
  double growth;      /* of lengths */
  uint32_t n_classes; /* of clusters: the i-th is of class i % n_classes */
  uint32_t class_at;  /* that is looked at next */
  uint32_t n_empty;   /* classes in a row, none of whose clusters has a ball */
  bool of_all;        /* level is of all clusters, not of a class alone */
  uint64_t n_packed;
  uint64_t left_behind;       /* of the budget, to balls that are kept */
  bool keeps;                 /* balls that it packs */
  uint32_t n_kept, most_kept; /* balls */
  uint32_t most_entries;
  uint32_t *off;           /* [most_kept + 1] */
  uint32_t *limit;         /* [most_entries] */
  float *fills;            /* [most_entries] of its room */
  double *weight, *amount; /* [most_kept] */
} packing;

/* A limit, and its pairs. */
static void lengthen(packing *p, uint32_t limit, double by) {
  const psplit_i_ball_sides *s = &p->sides;
  p->of_limit[limit] += by;
  for (uint32_t l = s->pair_off[limit]; l < s->pair_off[limit + 1]; l++)
    p->length[s->pair[l]] += by * s->pair_fills[l];
}

static psplit_code packing_init(packing *p, const psplit_i_pairs *pairs, psplit_i_arena *arena) {
  psplit_code code = psplit_i_ball_graph_make(pairs, arena, &p->graph);
  if (code == PSPLIT_OK) code = psplit_i_balls_init(&p->balls, &p->graph, arena);
  if (code == PSPLIT_OK) code = psplit_i_ball_sides_make(pairs, &p->graph, arena, &p->sides);
  if (code != PSPLIT_OK) return code;
  p->length = PSPLIT_NEW(arena, double, p->graph.n_pairs);
  p->of_limit = PSPLIT_NEW(arena, double, p->sides.n);
  p->full = PSPLIT_NEW(arena, double, p->sides.n);
  p->filled = PSPLIT_NEW(arena, double, p->sides.n);
  p->touched = PSPLIT_NEW(arena, uint32_t, p->sides.n);
  p->ratio = PSPLIT_NEW(arena, double, p->graph.n);
  if (arena->failed) return PSPLIT_NOMEM;
  for (uint32_t r = 0; r < p->sides.n; r++) lengthen(p, r, 1);
  for (uint32_t i = 0; i < p->graph.n; i++) p->work += p->graph.weight[i];
  return PSPLIT_OK;
}

static psplit_code make_room(packing *p, psplit_i_arena *arena) {
  const uint64_t affordable = psplit_i_budget_left(p->budget) / ENTRY_OPS + p->graph.n;
  p->most_entries = affordable < MOST_ENTRIES ? (uint32_t)affordable : MOST_ENTRIES;
  p->most_kept = MOST_MORE + MOST_EACH * p->graph.n;
  if (p->most_kept > p->most_entries / BALL_LIMITS)
    p->most_kept = p->most_entries / BALL_LIMITS + 1;
  p->off = PSPLIT_NEW(arena, uint32_t, p->most_kept + 1);
  p->weight = PSPLIT_NEW(arena, double, p->most_kept);
  p->amount = PSPLIT_NEW(arena, double, p->most_kept);
  p->limit = psplit_i_arena_array(arena, p->most_entries, sizeof *p->limit);
  p->fills = psplit_i_arena_array(arena, p->most_entries, sizeof *p->fills);
  p->keeps = true;
  return arena->failed ? PSPLIT_NOMEM : PSPLIT_OK;
}

/* Whether there is room and time for one more ball, with what comes behind it. */
static bool may_go_on(const packing *p) {
  if (!p->keeps) return psplit_i_budget_left(p->budget) > p->left_behind;
  const uint64_t n = p->off[p->n_kept];
  return p->n_kept < p->most_kept && n + p->sides.n <= p->most_entries &&
         psplit_i_budget_left(p->budget) > (n / 2 + p->sides.n) * IMPROVEMENTS;
}

static bool grow(packing *p, uint32_t root) {
  p->ratio[root] = psplit_i_ball_grow(&p->balls, root, p->length, p->most);
  return psplit_i_spend(p->budget, LOOK_OPS * p->balls.n_looks + PACK_OPS);
}

static void keep(packing *p, double weight, double amount) {
  uint32_t end = p->off[p->n_kept];
  for (uint32_t k = 0; k < p->n_touched; k++) {
    p->limit[end] = p->touched[k];
    p->fills[end++] = (float)p->filled[p->touched[k]];
  }
  p->weight[p->n_kept] = weight;
  p->amount[p->n_kept] = amount;
  p->off[++p->n_kept] = end;
}

/* Limits that the last ball touches; returns how full it makes the fullest. */
static double touch(packing *p) {
  const psplit_i_balls *b = &p->balls;
  const psplit_i_ball_sides *s = &p->sides;
  double most = 0;
  for (uint32_t k = 0; k < p->n_touched; k++) p->filled[p->touched[k]] = 0;
  p->n_touched = 0;
  for (uint32_t k = 1; k < b->n_ball; k++) {
    const uint32_t e = b->entry[b->order[k]];
    const double behind = b->behind[b->order[k]];
    for (uint32_t l = s->off[e]; behind > 0 && l < s->off[e + 1]; l++) {
      const uint32_t r = s->of[l];
      if (!(p->filled[r] > 0)) p->touched[p->n_touched++] = r;
      p->filled[r] += behind * s->fills[l];
      if (p->filled[r] > most) most = p->filled[r];
    }
  }
  return most;
}

/* Packs the last ball until a limit is full, once more. False where it has no pair. */
static bool pack(packing *p) {
  const double weight = psplit_i_ball_weigh(&p->balls);
  const double most = touch(p); /* full a limit becomes by an amount of 1 */
  if (!(most > 0) || !isfinite(most)) return false;
  for (uint32_t k = 0; k < p->n_touched; k++) {
    const uint32_t r = p->touched[k];
    lengthen(p, r, p->of_limit[r] * p->growth * p->filled[r] / most);
  }
  p->n_packed++;
  if (p->keeps) keep(p, weight, 1 / most);
  return true;
}

/* The next class of clusters: of half as many where few of the balls that are grown are packed, and
 * of twice as many where most are. */
static void next_class(packing *p, uint64_t n_grown, uint64_t n_packed) {
  if (n_packed * FEW_PACKED < n_grown && p->graph.n / p->n_classes >= 2 * LEAST_IN_CLASS &&
      p->n_classes < MOST_CLASSES)
    p->n_classes *= 2;
  else if (n_packed * MANY_PACKED > n_grown && p->n_classes > 1)
    p->n_classes /= 2;
  assert(p->n_classes > 0); /* a power of two */
  p->class_at = (p->class_at + 1) % p->n_classes;
}

/* Packs balls around the clusters of a class whose ratio is about the least; false: no budget or
 * room, or no cluster has a ball. */
static bool pack_round(packing *p) {
  const double most = p->level * (1 + p->growth);
  const uint64_t n_before = p->n_packed;
  uint64_t n_grown = 0;
  double least = INFINITY;
  for (uint32_t i = p->class_at; i < p->graph.n; i += p->n_classes) {
    for (; p->ratio[i] <= most; n_grown++) {
      if (!may_go_on(p) || !grow(p, i)) return false;
      if (p->ratio[i] <= most && !pack(p)) p->ratio[i] = INFINITY;
    }
    if (p->ratio[i] < least) least = p->ratio[i];
  }
  p->of_all = p->n_classes == 1;
  p->n_empty = isfinite(least) ? 0 : p->n_empty + 1;
  if (isfinite(least)) p->level = least;
  next_class(p, n_grown, p->n_packed - n_before);
  return p->n_empty < p->n_classes;
}

/* Ratios of a class as lengths and p->most are. False: no budget, or none has a ball. */
static bool look(packing *p) {
  double least = INFINITY;
  for (uint32_t i = p->class_at; i < p->graph.n; i += p->n_classes) {
    if (!grow(p, i)) return false;
    if (p->ratio[i] < least) least = p->ratio[i];
  }
  p->level = least;
  return isfinite(least);
}

/* Lengths that grow fast are found sooner, and those that grow slowly are better where there is
 * time for many balls, at the pace so far. */
static double growth_behind(const packing *p, uint64_t spent) {
  const double each = (double)spent / (double)p->n_packed;
  const double balls = (double)psplit_i_budget_left(p->budget) / each / p->graph.n;
  const double growth = STEADY / sqrt(balls < MOST_FIRST ? balls : MOST_FIRST);
  return growth < GROWTH ? growth : GROWTH;
}

/* Whatever is packed, balls say no more of T as it is: lengths over the least ratio would be what
 * is cut. */
static double most_to_gain(const packing *p) {
  double sum = 0;
  for (uint32_t r = 0; r < p->sides.n; r++) sum += p->of_limit[r];
  return sum / p->level;
}

static void fill(packing *p) {
  memset(p->full, 0, p->sides.n * sizeof *p->full);
  for (uint32_t k = 0; k < p->n_kept; k++)
    for (uint32_t l = p->off[k]; l < p->off[k + 1]; l++)
      p->full[p->limit[l]] += p->amount[k] * (double)p->fills[l];
}

/* Amounts that change: momentum ends where they were worth more in the norm before. */
typedef struct improvement {
  int levels;            /* the norm's power is 2^levels */
  double value;          /* what is packed over the norm, as of the last time */
  double *pays, *factor; /* [n_kept] in the norm; of the last time, or 1 */
} improvement;

static double root(double x, int levels) {
  for (int i = 0; i < levels; i++) x = sqrt(x);
  return x;
}

/* Amounts change by how full the limits of each ball are, once. */
static void improve(packing *p, int levels, improvement *by) {
  double most = 0, all = 0, sum = 0, gain = 0;
  fill(p);
  for (uint32_t r = 0; r < p->sides.n; r++)
    if (p->full[r] > most) most = p->full[r];
  for (uint32_t r = 0; r < p->sides.n; r++) {
    double power = p->full[r] / most;
    for (int k = 0; k < levels; k++) power *= power;
    p->full[r] = power;
    all += power;
  }
  for (uint32_t k = 0; k < p->n_kept; k++) {
    by->pays[k] = 0;
    for (uint32_t l = p->off[k]; l < p->off[k + 1]; l++)
      by->pays[k] += (double)p->fills[l] * p->full[p->limit[l]];
    sum += p->amount[k] * by->pays[k];
    gain += p->amount[k] * (p->weight[k] - p->most);
  }
  const double value = gain / most / root(all, levels);
  const bool falls = by->levels == levels && value < by->value * (1 - FALLS);
  for (uint32_t k = 0; k < p->n_kept; k++) {
    const double now = root(sum / gain / by->pays[k] * (p->weight[k] - p->most), levels);
    const double before = falls ? 1 : pow(by->factor[k], MOMENTUM);
    by->factor[k] = fmin(fmin(now, MOST_FACTOR) * before, MOST_FACTOR);
    p->amount[k] *= by->factor[k];
  }
  by->levels = levels;
  by->value = value;
}

static psplit_code improve_all(packing *p, psplit_i_arena *arena) {
  improvement by = {.pays = PSPLIT_NEW(arena, double, p->n_kept + 1),
                    .factor = PSPLIT_NEW(arena, double, p->n_kept + 1)};
  if (arena->failed) return PSPLIT_NOMEM;
  for (uint32_t k = 0; k < p->n_kept; k++) by.factor[k] = 1;
  for (int k = 0; k < IMPROVEMENTS && p->n_kept > 0; k++) {
    if (!psplit_i_spend(p->budget, p->off[p->n_kept] / 2 + p->sides.n)) break;
    improve(p, LEVELS + (k >= SQUARED) + (k >= SQUARED_AGAIN), &by);
  }
  return PSPLIT_OK;
}

/* Each ball over how full the fullest of its limits is: then none is more than full. */
static void shrink(packing *p) {
  fill(p);
  for (uint32_t k = 0; k < p->n_kept; k++) {
    double most = 0;
    for (uint32_t l = p->off[k]; l < p->off[k + 1]; l++)
      if (p->full[p->limit[l]] > most) most = p->full[p->limit[l]];
    const double amount = p->amount[k] / most * (1 - SURELY);
    p->amount[k] = isfinite(amount) ? amount : 0;
  }
}

/* Each ball in turn, the last first, grows until one of its limits is full. */
static void top_up(packing *p) {
  fill(p);
  for (uint32_t k = p->n_kept; k-- > 0;) {
    double more = INFINITY;
    for (uint32_t l = p->off[k]; l < p->off[k + 1]; l++) {
      const double room = (1 - 2 * SURELY - p->full[p->limit[l]]) / (double)p->fills[l];
      if (room < more) more = room;
    }
    if (!(more > 0) || !isfinite(more)) continue;
    p->amount[k] += more;
    for (uint32_t l = p->off[k]; l < p->off[k + 1]; l++)
      p->full[p->limit[l]] += more * (double)p->fills[l];
  }
}

static psplit_i_packed sum_up(const packing *p) {
  psplit_i_packed sum = {0};
  for (uint32_t k = 0; k < p->n_kept; k++) {
    sum.weight += p->amount[k] * p->weight[k] * (1 - SURELY);
    sum.balls += p->amount[k];
  }
  return sum;
}

psplit_code psplit_i_pack_balls(const psplit_i_pairs *pairs, uint32_t n_parts, double most,
                                psplit_i_budget *budget, psplit_i_arena *arena,
                                psplit_i_packed *out) {
  packing p = {
    .budget = budget, .n_parts = n_parts, .most = most, .growth = GROWTH, .n_classes = 1};
  const uint64_t start = psplit_i_budget_left(budget);
  double likely = most;
  *out = (psplit_i_packed){0};
  const psplit_code code = packing_init(&p, pairs, arena);
  if (code != PSPLIT_OK) return code;
  while (p.n_classes < MOST_CLASSES && p.graph.n / p.n_classes >= 2 * LEAST_IN_CLASS)
    p.n_classes *= 2;
  p.left_behind = start - start / FIRST;
  if (!look(&p)) return PSPLIT_OK;
  for (bool more = true; more && p.n_packed < MOST_FIRST * (uint64_t)p.graph.n;) {
    more = pack_round(&p);
    likely = (p.work + LIKELY * most_to_gain(&p)) / p.n_parts;
    if (likely >= most * (1 + WORTH)) continue;
    if (p.of_all) return PSPLIT_OK; /* balls would take time and say next to nothing */
    p.n_classes = 1;
    p.class_at = 0;
  }
  p.most = likely > most ? likely : most;
  if (p.n_packed > 0) p.growth = growth_behind(&p, start - psplit_i_budget_left(budget));
  if (!look(&p)) return PSPLIT_OK;
  if (make_room(&p, arena) != PSPLIT_OK) return PSPLIT_NOMEM;
  while (pack_round(&p)) continue;
  if (improve_all(&p, arena) != PSPLIT_OK) return PSPLIT_NOMEM;
  shrink(&p);
  top_up(&p);
  *out = sum_up(&p);
  return PSPLIT_OK;
}
