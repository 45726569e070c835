/* Internal to pricing: the steps of the elimination, and their tables. From the bottom up:
 *
 *   pricing_order.c   the elimination order
 *   pricing_lists.c   lists of (load, price): insertion, combination, storage
 *   pricing_labels.c  load and price of the factors of a step for the current labels
 *   pricing_tables.c  forward pass: the table of each step from those that it joins
 *   pricing_above.c   the same for values above a threshold only
 *   pricing.c         the largest value; backward pass for the largest value with each cluster
 *   pricing_stage.c   traces a feasible stage of about the largest value
 *   pricing_trace.c   traces a stage of exactly the value in the last table
 *
 * Functions that make lists may run out of memory (then p->failed and p->late are set) or out of
 * the budget (p->late). Their results are meaningless then. */
#ifndef PSPLIT_PARTITION_PRICING_INSIDE_H
#define PSPLIT_PARTITION_PRICING_INSIDE_H

#include "pricing.h"

enum {
  MOST_WIDTH = 8,
  FULL_WIDTH = 6,  /* width of complete tables */
  MOST_DIRECT = 3, /* nets with more pins get a variable of their own */
  LABELS = 3,
  MOST_JOINED = 64, /* tables that a step may join */
  JOINED_PART = 4,  /* of two long lists, about one pair in JOINED_PART is looked at */
  WAYS = 3,         /* number of joins per pair of lists, over both passes */
  CODED = 8,        /* nets of a step for which the traced number of receivers is recorded */
  MOST_OWN = 64,    /* combinations of the numbers of receivers of a step's nets */
  NO_PRICE = INT32_MIN,
  MOST_TRACES = 8 /* attempts to trace a stage, each with a smaller load */
};

/* A factor: WHOLE_NET is a net with all its n_scope pins. A net with a variable of its own is
 * divided into PAYS, its cost (scope: producer, variable), and MUST_PAY for each consumer, the
 * constraint (scope: producer, variable, consumer). TABLE is the result of an earlier step. */
typedef enum part_kind { WHOLE_NET, PAYS, MUST_PAY, TABLE } part_kind;

typedef struct part {
  part_kind kind;
  uint32_t of; /* the net, or the step whose table it is */
  uint32_t n_scope;
  uint32_t scope[MOST_WIDTH];
  bool gone;
} part;

typedef struct entry {
  int32_t load, price;
} entry;

/* The best pair of an entry of one list and one of another. */
typedef struct pick {
  int32_t price, load_a, load_b;
} pick;

/* Merged entries of similar load: the smallest load and the largest price. */
typedef struct bin {
  int32_t load, price;
} bin;

/* A list under construction, as bins. Bins from `first` to `end` are in use or were cleared. */
typedef struct shelf {
  bin *bins; /* [n_bins] */
  uint32_t first, end;
} shelf;

typedef struct list {
  uint32_t first, n; /* index and length in the pool */
} list;

/* The elimination of variable `var`: its factors, and the table that results. Lists of the table
 * are indexed by the labels of `scope`, of which the first varies fastest. */
typedef struct step {
  uint32_t var, n_scope, scope[MOST_WIDTH];
  uint32_t n_parts, n_tables; /* factors that are tables come first */
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

/* A relaxed solution: its value by prices of clusters and of load, and its load. */
typedef struct relaxed {
  int64_t value, load;
} relaxed;

/* State of psplit_i_pricing_above(), allocated at its first call. */
typedef struct above_tables {
  bool on; /* tables hold only entries that may reach `least` */
  /* by list of a step and joined table: index of the list where the own variable has label 0 */
  uint32_t *place;
  size_t *first_place; /* [n_vars] */
  int32_t *own_load;   /* [n_lists * LABELS] at `limit`; -1: infeasible */
  int64_t limit;       /* -1: own_load is not computed yet */
  relaxed *inside;     /* [n_lists] */
  int64_t *outside;    /* [n_lists] */
  int64_t slope;       /* price of load, in fixed point */
  int64_t floor;       /* `least` minus the price of the whole limit */
  uint32_t *first_net; /* [n_vars + 1] of `net`: nets of the step with prices for receivers */
  uint32_t *net;
  size_t *first_deal; /* [n_vars] of `deal` */
  uint8_t *deal;      /* by list, label and net of the step */
  uint32_t turn;      /* step length of the price of load, as a shift */
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
  bool *counted; /* [n_nets] nets that the tables take into account */
  uint32_t most_width, most_lists;
  bool wide; /* only psplit_i_pricing_above() is called */
  pool pool;
  uint8_t *label; /* by variable */
  uint32_t shift, most_bins, n_bins;
  int32_t cap;    /* the limit in units of load; loads are shifted right, so rounded down */
  uint64_t scale; /* bin of a load: (load * scale) >> 32 */
  const int32_t *price;
  const int32_t *receiver; /* by net; NULL: receivers have no prices */
  uint32_t *own_net;       /* [parts of a step] nets whose receivers have prices */
  uint8_t *own_deal;       /* and the role of the stage in each, for the current labels */
  int8_t *paid;            /* by net, while a stage is traced; NULL: not requested */
  const uint8_t *sides;    /* permitted sides of each cluster, as bits; NULL: all */
  int32_t *room;           /* [n_vars] load that is left for the table of a step */
  entry *goal;             /* [n_vars] entry in the table of a step that is to be traced */
  /* the list under construction; the outside lists of the tables of a step */
  shelf at_work, *outer;
  entry *row[MOST_JOINED + 2]; /* [n_bins] each */
  above_tables above;
  uint32_t loose; /* table of a connected component that was eliminated completely, or NONE */
  psplit_i_budget *budget;
  bool failed, late;
};

/* --- pricing_order.c --- */

/* Makes the steps for the nets that are counted. Returns false if the graph is too wide, or
 * p->failed. */
bool psplit_i_pricing_build(psplit_i_pricing *p);

/* --- pricing_lists.c --- */

static inline const entry *psplit_i_pricing_at(const psplit_i_pricing *p, list l) {
  return p->pool.entries + l.first;
}

static inline uint32_t psplit_i_pricing_bin_of(const psplit_i_pricing *p, int32_t load) {
  return (uint32_t)(((uint64_t)(uint32_t)load * p->scale) >> 32);
}

static inline void psplit_i_pricing_clear(shelf *to) { to->first = to->end = 0; }
/* Requires load <= cap. */
void psplit_i_pricing_put(const psplit_i_pricing *p, shelf *to, int32_t load, int32_t price);
/* Inserts the sum of each entry of a, each entry of b, and `more`. */
void psplit_i_pricing_put_sums(psplit_i_pricing *p, shelf *to, const entry *a, uint32_t n_a,
                               const entry *b, uint32_t n_b, entry more);
/* The same as a list, out[n_bins]; returns its length. Uses p->at_work. */
uint32_t psplit_i_pricing_sums(psplit_i_pricing *p, const entry *a, uint32_t n_a, const entry *b,
                               uint32_t n_b, entry *out);
/* Makes room in the pool for one more list. Returns false if p->failed. Invalidates pointers from
 * psplit_i_pricing_at(). */
bool psplit_i_pricing_more_room(psplit_i_pricing *p);
/* Stores a list under construction in the pool. The result is empty if p->failed. */
list psplit_i_pricing_keep(psplit_i_pricing *p, const shelf *from);
/* The pair of the largest total price whose total load is at most `room`; NO_PRICE if there is
 * none. */
pick psplit_i_pricing_best_of(int32_t room, const entry *a, uint32_t n_a, const entry *b,
                              uint32_t n_b);

/* --- pricing_labels.c --- */

static inline const step *psplit_i_pricing_step_of(const psplit_i_pricing *p, const step *s,
                                                   uint32_t table) {
  return &p->steps[p->parts[s->parts[table]].of];
}

/* The index of the list of a joined table for the current labels. */
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

/* What a stage spends on net e, given whether it pays for the net and the label of the producer. */
int64_t psplit_i_pricing_net_cost(const psplit_i_pricing *p, uint32_t e, bool pays,
                                  uint8_t producer);
/* The only permitted label of the variable, or LABELS if there are several. */
uint8_t psplit_i_pricing_only_label(const psplit_i_pricing *p, uint32_t var);
/* Sets the labels of the scope from a list index. Returns false if one of them is not permitted. */
bool psplit_i_pricing_set_labels(psplit_i_pricing *p, const step *s, uint32_t index);
/* Sets the label of the step's own variable. Returns false if it is not permitted, or if the load
 * exceeds the limit. *out_own is the load and price of the variable and of the factors that are no
 * tables. */
bool psplit_i_pricing_set_own(psplit_i_pricing *p, const step *s, uint8_t label, entry *out_own);
/* The role of the stage in the net of a factor, for the current labels: 0, none; 1, it receives the
 * net; 1 + m, it sends it to up to m receivers. */
uint8_t psplit_i_pricing_deal_of(const psplit_i_pricing *p, const part *q);
/* A sending stage is credited what a receiving stage is charged. */
static inline int32_t psplit_i_pricing_deal_price(const psplit_i_pricing *p, uint32_t e,
                                                  uint8_t deal) {
  return deal == 0 ? 0 : deal == 1 ? -p->receiver[e] : p->receiver[e];
}
/* The roles in all nets of a step whose receivers have prices, in p->own_net and p->own_deal.
 * Returns their number. */
uint32_t psplit_i_pricing_deals_of(const psplit_i_pricing *p, const step *s);
/* Enumerates the numbers of receivers of each such net. out[MOST_OWN] are the resulting loads and
 * prices, where `own` is that of one receiver each; returns how many there are. If there are too
 * many combinations, further receivers of a net are relaxed: their price counts, and their load
 * does not. codes[MOST_OWN], or NULL: the additional receivers of the first CODED nets, one byte
 * each. */
uint32_t psplit_i_pricing_ways(const psplit_i_pricing *p, const uint32_t *net, const uint8_t *deal,
                               uint32_t n_nets, entry own, entry *out, uint64_t *codes);
/* The same for the current labels. */
uint32_t psplit_i_pricing_ways_of(const psplit_i_pricing *p, const step *s, entry own, entry *out,
                                  uint64_t *codes);

/* --- pricing_tables.c --- */

/* Prepares for new tables. Returns false if out of memory. */
bool psplit_i_pricing_begin(psplit_i_pricing *p, int64_t limit, uint32_t n_parts,
                            const int32_t *price, const uint8_t *sides, psplit_i_budget *budget);
/* Makes all tables of the forward pass, unless p->late. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pricing_fill(psplit_i_pricing *p, int64_t limit,
                                                  uint32_t n_parts, const int32_t *price,
                                                  const uint8_t *sides, psplit_i_budget *budget);

/* --- pricing_above.c --- */

/* For the current labels and the list `place` of a step: the relaxed value that an entry of each
 * joined table must reach. Returns false if the combination cannot reach `least` at all. */
bool psplit_i_pricing_floors(const psplit_i_pricing *p, const step *s, uint32_t place, entry own,
                             int64_t *out_floor);
/* Copies the entries of a list whose relaxed value reaches the floor, possibly in place. Returns
 * their number. */
uint32_t psplit_i_pricing_reach(const psplit_i_pricing *p, list l, int64_t floor, entry *out);

/* --- pricing_stage.c --- */

/* For the current labels, row t becomes the combination of the first t + 1 tables of a step (never
 * the last table), with n_row[t] entries. With tables of psplit_i_pricing_above(), only entries
 * count that may reach `least` together with `own`. */
void psplit_i_pricing_join_inside(psplit_i_pricing *p, const step *s, entry own, uint32_t *n_row);

#endif
