/* The program over a row of blocks: what separators' calls and the ways to cut blocks add up to,
 * with the bytes of the call that is open and the accelerators that were used. */
#ifndef PSPLIT_PARTITION_CALLS_ROW_H
#define PSPLIT_PARTITION_CALLS_ROW_H

#include "block_parts.h"

/* Where a row of separators ends: behind the last one. */
typedef struct psplit_i_calls_ending {
  uint32_t state, kind;
  psplit_i_calls_side from;
  const psplit_i_calls_crossing *crossing;
} psplit_i_calls_ending;

typedef struct psplit_i_calls_row {
  const psplit_i_calls_clusters *x;
  psplit_i_budget *budget;
  uint32_t n;                  /* separators */
  psplit_i_calls_block *block; /* [n + 1] whose lists of crossings are the caller's to fill */
  uint32_t n_states;           /* accelerators used, by type: mixed radix, the first type lowest */
  /* By kinds: [n * kinds] with any number of accelerators, from the first block and from the last;
   * [n_states * kinds] of one separator, of every other one; [n * n_states * kinds] of all, NULL:
   * those are too many. */
  psplit_i_calls_sides *ahead, *behind, *turn[2], *row;
  bool keeps;                    /* on `row` */
  bool own;                      /* crossings count as what they are, not as what is like them */
  bool told;                     /* those alone of which that is known */
  psplit_i_calls_choice *choice; /* [n + 1] of a placement */
  int64_t limit;                 /* what costs less is looked for */
  int64_t price[PSPLIT_I_CALLS_TYPES]; /* of an accelerator, in `ahead` and `behind` */
  int64_t all_price;                   /* of all of them */
  bool failed, spent;                  /* memory; budget */
} psplit_i_calls_row;

typedef enum psplit_i_calls_what {
  PSPLIT_I_CALLS_BOUND, /* what crossings cost at least */
  PSPLIT_I_CALLS_OWN,   /* what they are themselves */
  PSPLIT_I_CALLS_OWN_TOLD
} psplit_i_calls_what;

/* For clusters with separators; arrays are the arena's. False: NOMEM. */
bool psplit_i_calls_row_init(psplit_i_calls_row *row, const psplit_i_calls_clusters *clusters,
                             psplit_i_budget *budget, int64_t limit, psplit_i_arena *arena);
/* Lists that grew are freed; also of a row all zero. */
void psplit_i_calls_row_fini(psplit_i_calls_row *row);

/* Accelerators of a type that all blocks together want too many of get a price (Lagrange): no
 * placement costs less than the least of all with what its calls are priced at, less what all
 * accelerators are. */
void psplit_i_calls_row_set_prices(psplit_i_calls_row *row);
/* From both sides, without counting accelerators. */
void psplit_i_calls_row_look(psplit_i_calls_row *row);
/* Tells block k what is known of both sides of it. */
void psplit_i_calls_row_set_sides(const psplit_i_calls_row *row, uint32_t k);

/* The least of all, with accelerators counted, at most the limit. */
int64_t psplit_i_calls_row_bound(psplit_i_calls_row *row);
/* The same, and row->choice; false: there is none below the limit, or too much to keep. *out_cost
 * 0: it is not known. */
bool psplit_i_calls_row_choose(psplit_i_calls_row *row, psplit_i_calls_what what,
                               int64_t *out_cost);

#endif
