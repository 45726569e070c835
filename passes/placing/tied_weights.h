/* Tied weights: weights that several nodes use, such as an embedding that is also the output layer.
 * If the users are in different stages, each stage holds a copy; otherwise the users share a
 * stage. */
#ifndef PSPLIT_PASSES_TIED_H
#define PSPLIT_PASSES_TIED_H

#include "builder.h"

/* Smaller constants (axes, scales, masks of a few elements) are always duplicated. */
enum { PSPLIT_I_TIED_BYTES = 1024 };

typedef struct psplit_i_tie {
  uint32_t value;
  uint64_t bytes;
  uint32_t first_user, n_users; /* nodes [first_user, first_user + n_users) of ties->users */
} psplit_i_tie;

typedef struct psplit_i_tied_weights {
  PSPLIT_VEC(psplit_i_tie) weights; /* the largest first */
  PSPLIT_VEC(uint32_t) users;       /* neither free nor dead; distinct within a weight */
} psplit_i_tied_weights;

/* Finds the weights of at least TIED_BYTES that two or more nodes use, directly or through
 * functions of constants (a transposed embedding). `out` must be zeroed before and finalised after,
 * also on failure. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tied_weights_find(psplit_planner *planner, psplit_diag *diag,
                                                       psplit_i_tied_weights *out);
void psplit_i_tied_weights_fini(psplit_i_tied_weights *ties);

/* Whether the users of weight `tie` are in several stages. */
bool psplit_i_tie_is_cut(const psplit_planner *planner, const psplit_i_tied_weights *ties,
                         uint32_t tie);

/* In the problem that was built, merges the supernodes that use a weight with joined[weight] != 0
 * into one keep-together class, with the classes they are in. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_tied_weights_join(psplit_i_builder *b,
                                                       const psplit_i_tied_weights *ties,
                                                       const uint8_t *joined);

/* The effort of a cutter. */
typedef enum psplit_i_effort {
  PSPLIT_I_CUT,      /* the best split; groups may be refined */
  PSPLIT_I_CUT_SAME, /* the best split of the current groups */
  PSPLIT_I_CUT_ANY   /* any split, to find out whether there is one */
} psplit_i_effort;

/* Sets planner->stage, solution, copies and plan, with the users of the weights with joined[weight]
 * != 0 in one stage. Errors: INFEASIBLE among others. */
typedef psplit_code (*psplit_i_cutter)(void *user, const uint8_t *joined, psplit_i_effort effort,
                                       psplit_diag *diag);

/* Splits according to planner->options.tied_weights. AUTO takes the best split or, if that
 * duplicates weights, one that keeps the users of each together if its value is no worse. Errors:
 * those of `cut`; INFEASIBLE with the name of the weight that makes the problem infeasible. */
PSPLIT_MUST_USE psplit_code psplit_i_tied_weights_settle(psplit_planner *planner,
                                                         const psplit_i_tied_weights *ties,
                                                         psplit_i_cutter cut, void *user,
                                                         psplit_diag *diag);

#endif
