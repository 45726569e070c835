/* Stages while they are being filled: loads, memory, and what each candidate would make of them. */
#ifndef PSPLIT_POLICY_STAGES_H
#define PSPLIT_POLICY_STAGES_H

#include "outlook.h"

/* What an item can be placed on: a stage that there is, or a new one on a device of a type. */
typedef struct psplit_i_candidate {
  uint32_t stage, type;
  bool fits;        /* within memory */
  bool leaves_room; /* and the rest, as far as sums can tell */
} psplit_i_candidate;

typedef struct psplit_i_stages {
  const psplit_i_view *view;
  const psplit_i_outlook *outlook;
  uint32_t last;                         /* largest stage that holds something; NONE: none does */
  uint32_t *stage;                       /* [n] of placed items, else NONE */
  uint32_t *type;                        /* [n_stages]; NONE: not opened */
  int64_t *compute, *recv, *send, *open; /* [n_stages]; open: what may have to be sent yet */
  uint64_t *weights, *activations;       /* [n_stages] bytes */
  uint64_t *receives;                    /* [n_nets * n_words] stages with a consumer, as bits */
  uint32_t *n_unplaced;                  /* [n_nets] consumers */
  uint64_t *holds;                       /* [n_groups * n_words] stages with a user */
  uint32_t n_words;
  uint32_t *n_left;    /* [n_types] devices */
  int64_t most;        /* largest load */
  int64_t rest;        /* least times of items not placed */
  uint64_t bytes_left; /* of these */
  int64_t *extra;      /* [n_stages] scratch */
  uint32_t *touched;   /* [n_stages] scratch */
  bool *is_pred;       /* [n_stages] scratch */
} psplit_i_stages;

/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_stages_init(psplit_i_stages *stages,
                                                 const psplit_i_outlook *outlook,
                                                 psplit_i_arena *arena);
/* Empties them. */
void psplit_i_stages_clear(psplit_i_stages *stages);

/* At most so many candidates at once: the last stages, and new ones. */
enum { PSPLIT_I_MOST_CANDIDATES = 48 };

/* Candidates for item i, all of whose predecessors are placed, with their features. Order, pins and
 * devices rule out the others, and so does memory unless none is left; at least one. */
uint32_t psplit_i_stages_candidates(psplit_i_stages *stages, uint32_t i,
                                    psplit_i_candidate *out_candidate, psplit_i_real *out_x);
void psplit_i_stages_place(psplit_i_stages *stages, uint32_t i,
                           const psplit_i_candidate *candidate);

#endif
