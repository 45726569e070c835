/* A beam of partial splits, which grow from the last stage to the first by stages whose clusters
 * have about the highest prices (prices.h) in sum: of the whole graph, or of a few stages of a
 * split. */
#ifndef PSPLIT_PARTITION_PRICE_BEAM_H
#define PSPLIT_PARTITION_PRICE_BEAM_H

#include "budget.h"
#include "closure.h"
#include "downsets.h"
#include "prices.h"

enum {
  PSPLIT_I_BEAM_WIDTH = 16, /* partial splits that are kept */
  PSPLIT_I_BEAM_TRIES = 4,  /* stages from one of them */
  PSPLIT_I_BEAM_GROWN = PSPLIT_I_BEAM_WIDTH * PSPLIT_I_BEAM_TRIES
};

/* What is left in front of some stages. */
typedef struct psplit_i_partial {
  uint64_t *left;     /* bits by cluster */
  uint16_t *n_stages; /* [n_nets] that receive the net */
  int64_t price_left; /* of what is left */
  uint32_t number;
} psplit_i_partial;

typedef struct psplit_i_beam {
  const psplit_i_instance *instance;
  psplit_i_instance counted; /* each net is sent as often as stages there are for it */
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_i_closure closure;
  psplit_i_pricing *pricing; /* of `counted`; NULL: the graph is too wide */
  psplit_i_prices prices;
  psplit_i_downsets *set;  /* gets the downsets between stages that are kept; the caller's */
  psplit_i_downsets level; /* of the stage that is formed */
  psplit_i_partial kept[PSPLIT_I_BEAM_WIDTH], grown[PSPLIT_I_BEAM_GROWN];
  uint32_t n_kept, n_grown;
  int64_t limit; /* of a stage's load */
  uint64_t salt;
  const uint32_t *stage; /* [n] of a split; NULL: all stages are formed */
  uint32_t first;        /* of these stages: those in front stay */
  uint32_t *last_net;    /* [n_stages] scratch: that a stage was seen to receive */
  int32_t *price;        /* [n] changed a little */
  uint8_t *sides, *side; /* [n] */
} psplit_i_beam;

/* The beam is zero but for its instance and its budget; prices are those for a limit of `value`, in
 * proportion to times. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_beam_init(psplit_i_beam *beam, int64_t value);
void psplit_i_beam_fini(psplit_i_beam *beam);
/* Prices grow at the limit, in so many rounds; *out_sum: of all clusters, 0: the budget did not do.
 * Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_beam_price(psplit_i_beam *beam, uint32_t n_rounds,
                                                int64_t *out_sum);
/* Forms stages of loads up to the limit: all but the first. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_beam_run(psplit_i_beam *beam);
/* The same from stage `last` of a split to the one behind stage `first`, where stages in front of
 * `first` and behind `last` stay. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_beam_window(psplit_i_beam *beam, const uint32_t *stage,
                                                 uint32_t first, uint32_t last);

#endif
