/* Inside the worth of stages: the steps of the elimination, and their tables. From the bottom up:
 *
 *   pricing_order.c   the order in which variables go
 *   pricing_lists.c   lists of (load, price): put together, joined, kept
 *   pricing_labels.c  what the parts of a step cost with the labels as they are
 *   pricing_tables.c  tables forth: each step's from those that it joins
 *   pricing_above.c   the same of what may be worth so much alone
 *   pricing.c   the most that a stage is worth; tables back, for the most with each cluster
 *   pricing_stage.c   a stage that is worth the most, traced from the last table on
 *   pricing_trace.c   a stage that is worth exactly what the last table says
 *
 * Whatever makes lists may run out of memory (p->failed, and p->late with it) or out of the budget
 * (p->late): what it says then says nothing. */
#ifndef PSPLIT_PARTITION_PRICING_INSIDE_H
#define PSPLIT_PARTITION_PRICING_INSIDE_H

#include "pricing.h"

enum {
  MOST_WIDTH = 8,
  FULL_WIDTH = 6,  /* of tables that are made whole */
  MOST_DIRECT = 3, /* pins */
  LABELS = 3,
  MOST_JOINED = 64, /* tables that one variable joins */
  JOINED_PART = 4,  /* of two long lists, one of so many pairs is looked at */
  WAYS = 3,         /* in which two lists are joined, forth and back */
  CODED = 8,        /* nets of a step of which it is told how many receivers are paid for */
  MOST_OWN = 64,    /* ways to choose how many receivers a step's nets have */
  NO_PRICE = INT32_MIN,
  MOST_TRACES = 8 /* of a stage, the load of which is too large at first */
};

/* A part: `net` with all its pins (n_scope pins), or of a net with a variable of its own what that
 * costs (scope: producer, variable), or when it must (scope: producer, variable, consumer). */
typedef enum part_kind { WHOLE_NET, PAYS, MUST_PAY, TABLE } part_kind;

typedef struct part {
  part_kind kind;
  uint32_t of; /* net, or the step whose table it is */
  uint32_t n_scope;
  uint32_t scope[MOST_WIDTH];
  bool gone;
} part;

typedef struct entry {
  int32_t load, price;
} entry;

/* An entry of one list and one of another. */
typedef struct pick {
  int32_t price, load_a, load_b;
} pick;

/* Of loads that are close: the least, and the largest price. */
typedef struct bin {
  int32_t load, price;
} bin;

/* Bins of a list that is made: those from `first` to `end` hold something, or were cleared. */
typedef struct shelf {
  bin *bins; /* [n_bins] */
  uint32_t first, end;
} shelf;

typedef struct list {
  uint32_t first, n; /* of the pool */
} list;

/* Variable `var` goes: its parts, and what is left of them. Tables are indexed by the labels of
 * `scope`, the first fastest. */
typedef struct step {
  uint32_t var, n_scope, scope[MOST_WIDTH];
  uint32_t n_parts, n_tables; /* parts that are tables come first */
  uint32_t *parts;
  uint32_t first_list, n_lists;
} step;

typedef struct use {
  uint32_t part, next;
} use;

typedef struct pool {
  entry *entries;
  size_t n, most;
} pool;

/* By prices of clusters and of load: what is worth most, and what it takes. */
typedef struct relaxed {
  int64_t value, load;
} relaxed;

/* What tells whether an entry may be worth `least`; made when that is asked for first. */
typedef struct above_tables {
  bool on;             /* tables have such entries alone */
  uint32_t *place;     /* by list of a step and table it joins, its own variable labelled 0 */
  size_t *first_place; /* [n_vars] */
  int32_t *own_load;   /* [n_lists * LABELS] at `limit`; -1: ruled out */
  int64_t limit;       /* -1: not yet */
  relaxed *inside;     /* [n_lists] */
  int64_t *outside;    /* [n_lists] */
  int64_t slope;       /* price of load */
  int64_t floor;       /* what `least` is without the load's price */
  uint32_t *first_net; /* [n_vars + 1] of `net`: nets of the step with prices for receivers */
  uint32_t *net;
  size_t *first_deal; /* [n_vars] of `deal` */
  uint8_t *deal;      /* by list, label and net of the step */
  uint32_t turn;      /* how the price of load changes */
  bool went_up;
} above_tables;

struct psplit_i_pricing {
  const psplit_i_instance *instance;
  psplit_i_arena arena;
  uint32_t n_vars, n_parts;
  part *parts;
  use *uses;
  uint32_t *first_use; /* by variable */
  uint32_t n_uses;
  step *steps;
  list *inside, *outside; /* by step and labels */
  uint32_t n_lists;
  bool *counted; /* [n_nets] which nets stages pay for, and have in order */
  uint32_t most_width, most_lists;
  bool wide; /* no more than psplit_i_pricing_above() is asked for */
  pool pool;
  uint8_t *label; /* by variable */
  uint32_t shift, most_bins, n_bins;
  int32_t cap;    /* the limit; loads are shifted, and so rounded down */
  uint64_t scale; /* bin of a load: (load * scale) >> 32 */
  const int32_t *price;
  const int32_t *receiver;     /* by net; NULL: there are no such prices */
  uint32_t *own_net;           /* [parts of a step] with prices for receivers, */
  uint8_t *own_deal;           /* and what the stage does with each, by labels as they are */
  int8_t *paid;                /* by net, where a stage is traced; NULL: not asked for */
  const uint8_t *sides;        /* that clusters may be on, as bits; NULL: all */
  int32_t *room;               /* [n_vars] load that the table of a step may take */
  entry *goal;                 /* [n_vars] of the table of a step, which a stage is traced from */
  shelf at_work, *outer;       /* the list at work; those outside the tables of a step */
  entry *row[MOST_JOINED + 2]; /* [n_bins] each */
  above_tables above;
  uint32_t loose; /* table of what is not connected to the rest, or NONE */
  psplit_i_budget *budget;
  bool failed, late;
};

/* --- pricing_order.c --- */

/* Steps for the nets that are counted; false: the graph is too wide, or p->failed. */
bool psplit_i_pricing_build(psplit_i_pricing *p);

/* --- pricing_lists.c --- */

static inline const entry *psplit_i_pricing_at(const psplit_i_pricing *p, list l) {
  return p->pool.entries + l.first;
}

static inline uint32_t psplit_i_pricing_bin_of(const psplit_i_pricing *p, int32_t load) {
  return (uint32_t)(((uint64_t)(uint32_t)load * p->scale) >> 32);
}

static inline void psplit_i_pricing_clear(shelf *to) { to->first = to->end = 0; }
/* load <= cap. */
void psplit_i_pricing_put(const psplit_i_pricing *p, shelf *to, int32_t load, int32_t price);
/* Puts each entry of a with each of b, and with `more`. */
void psplit_i_pricing_put_sums(psplit_i_pricing *p, shelf *to, const entry *a, uint32_t n_a,
                               const entry *b, uint32_t n_b, entry more);
/* The same as a list, out[n_bins]: its length. By p->at_work. */
uint32_t psplit_i_pricing_sums(psplit_i_pricing *p, const entry *a, uint32_t n_a, const entry *b,
                               uint32_t n_b, entry *out);
/* Room in the pool for one more list; false: p->failed. Moves what psplit_i_pricing_at() gave. */
bool psplit_i_pricing_more_room(psplit_i_pricing *p);
/* What a shelf holds, in the pool; empty if p->failed. */
list psplit_i_pricing_keep(psplit_i_pricing *p, const shelf *from);
/* Of those with no larger load than `room` the one that is worth most; NO_PRICE: there is none. */
pick psplit_i_pricing_best_of(int32_t room, const entry *a, uint32_t n_a, const entry *b,
                              uint32_t n_b);

/* --- pricing_labels.c --- */

static inline const step *psplit_i_pricing_step_of(const psplit_i_pricing *p, const step *s,
                                                   uint32_t table) {
  return &p->steps[p->parts[s->parts[table]].of];
}

/* The place of a table of a step among the lists, with labels as they are. */
static inline uint32_t psplit_i_pricing_place_of(const psplit_i_pricing *p, const step *s,
                                                 uint32_t table) {
  const step *of = psplit_i_pricing_step_of(p, s, table);
  uint32_t index = 0;
  for (uint32_t i = of->n_scope; i-- > 0;) index = index * LABELS + p->label[of->scope[i]];
  return of->first_list + index;
}

static inline bool psplit_i_pricing_may_be(const psplit_i_pricing *p, uint32_t var, uint8_t label) {
  if (var >= p->instance->n) return label < 2;
  return !p->sides || (p->sides[var] >> label & 1) == 1;
}

/* What a stage that pays for net e, or does not, spends on it, by the label of its producer. */
int64_t psplit_i_pricing_net_cost(const psplit_i_pricing *p, uint32_t e, bool pays,
                                  uint8_t producer);
/* The only label that the variable may have; LABELS: there are several. */
uint8_t psplit_i_pricing_only_label(const psplit_i_pricing *p, uint32_t var);
/* Sets the labels of the scope; false: some variable may not have its own. */
bool psplit_i_pricing_set_labels(psplit_i_pricing *p, const step *s, uint32_t index);
/* Sets the label of the step's own variable; false: it may not have it, or nothing fits with it.
 * *out_own: load and price of the variable and of the step's parts that are no tables. */
bool psplit_i_pricing_set_own(psplit_i_pricing *p, const step *s, uint8_t label, entry *out_own);
/* What a stage does with the net of a part, with labels as they are: 0, nothing; 1, it receives it;
 * 1 + m, it sends it to m receivers or fewer. */
uint8_t psplit_i_pricing_deal_of(const psplit_i_pricing *p, const part *q);
/* A stage that sends gets what one that receives pays. */
static inline int32_t psplit_i_pricing_deal_price(const psplit_i_pricing *p, uint32_t e,
                                                  uint8_t deal) {
  return deal == 0 ? 0 : deal == 1 ? -p->receiver[e] : p->receiver[e];
}
/* The same of all nets of a step with prices for receivers, in p->own_net and p->own_deal: how many
 * there are. */
uint32_t psplit_i_pricing_deals_of(const psplit_i_pricing *p, const step *s);
/* Load and price of a step's own for every number of receivers of each such net, `own` being for
 * one: out[MOST_OWN], and how many. Where these are too many ways, more receivers of a net are
 * worth their price and take nothing. codes[MOST_OWN], or NULL: receivers more than one, by bytes
 * of the first CODED nets. */
uint32_t psplit_i_pricing_ways(const psplit_i_pricing *p, const uint32_t *net, const uint8_t *deal,
                               uint32_t n_nets, entry own, entry *out, uint64_t *codes);
/* The same with labels as they are. */
uint32_t psplit_i_pricing_ways_of(const psplit_i_pricing *p, const step *s, entry own, entry *out,
                                  uint64_t *codes);

/* --- pricing_tables.c --- */

/* Makes ready for tables; false: out of memory. */
bool psplit_i_pricing_begin(psplit_i_pricing *p, int64_t limit, uint32_t n_parts,
                            const int32_t *price, const uint8_t *sides, psplit_i_budget *budget);
/* Makes all tables of what is inside, unless p->late. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_fill(psplit_i_pricing *p, int64_t limit,
                                                  uint32_t n_parts, const int32_t *price,
                                                  const uint8_t *sides, psplit_i_budget *budget);

/* --- pricing_above.c --- */

/* With labels as they are, and the list of a step at `place`: what an entry of each table has to
 * reach by the price of load, if the whole is to. false: it does not. */
bool psplit_i_pricing_floors(const psplit_i_pricing *p, const step *s, uint32_t place, entry own,
                             int64_t *out_floor);
/* The entries of a list that reach the floor, which may be its own place: how many. */
uint32_t psplit_i_pricing_reach(const psplit_i_pricing *p, list l, int64_t floor, entry *out);

/* --- pricing_stage.c --- */

/* Row t becomes what the first tables of a step, up to t and but for the last one, bring together,
 * with labels as they are: n_row[t] entries. Of tables of what is above, `own` tells which reach
 * that. */
void psplit_i_pricing_join_inside(psplit_i_pricing *p, const step *s, entry own, uint32_t *n_row);

#endif
