/* Inside the worth of stages: the steps of the elimination, and their tables. From the bottom up:
 *
 *   worth_order.c  the order in which variables go
 *   stage_worth.c  tables forth and back, and a stage from them */
#ifndef PSPLIT_PARTITION_STAGE_WORTH_INSIDE_H
#define PSPLIT_PARTITION_STAGE_WORTH_INSIDE_H

#include "stage_worth.h"

enum {
  MOST_WIDTH = 6,
  MOST_DIRECT = 3, /* pins */
  LABELS = 3,
  MOST_JOINED = 64, /* tables that one variable joins */
  JOINED_PART = 4,  /* of two long lists, one of so many pairs is looked at */
  WAYS = 3,         /* in which two lists are joined, forth and back */
  MOST_OWN = 16,    /* ways to choose how many receivers a step's nets have */
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

/* Of loads that are close: the least, and the largest price. */
typedef struct bin {
  int32_t load, price;
} bin;

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

struct psplit_i_worth {
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
  pool pool;
  uint8_t *label; /* by variable */
  uint32_t shift, most_bins, n_bins;
  int32_t cap;    /* the limit; loads are shifted, and so rounded down */
  uint64_t scale; /* bin of a load: (load * scale) >> 32 */
  const int32_t *price;
  const int32_t *receiver;     /* by net; NULL: there are no such prices */
  const uint8_t *sides;        /* that clusters may be on, as bits; NULL: all */
  int32_t *room;               /* [n_vars] load that the table of a step may take */
  bin *bins, *child_bins;      /* of the list at work; of those outside the tables of a step */
  entry *row[MOST_JOINED + 2]; /* [n_bins] each */
  uint32_t loose;              /* table of what is not connected to the rest, or NONE */
  psplit_i_budget *budget;
  bool failed, late;
};

/* --- worth_order.c --- */

/* Nets with more pins than `most_pins` are left out; false: the graph is too wide, or p->failed. */
bool psplit_i_worth_build(psplit_i_worth *p, uint32_t most_pins);

#endif
