/* What would fit the memory of devices instead of the split that was asked for. */
#ifndef PSPLIT_PASSES_WHAT_FITS_H
#define PSPLIT_PASSES_WHAT_FITS_H

#include "request.h"

enum { PSPLIT_I_WHAT_FITS_BYTES = 768 };

typedef struct psplit_i_what_fits {
  /* "; 3 stages would fit", or the node that is in the way; "": neither is known */
  char words[PSPLIT_I_WHAT_FITS_BYTES];
  /* fewer stages, if that does what was asked, or to inline the node, if it is an If */
  psplit_i_advice advice;
} psplit_i_what_fits;

/* Looks for a number of stages that fit devices like the one with the most memory: the first fit of
 * the supernodes, which is such a split. Where pins or operators that a device lacks are in the way
 * besides, the words say so; with missing links, joined weights or prefill, no number is looked
 * for. That no number of stages fits is only said if a supernode needs more than any device has,
 * whatever else its stage holds. Resets planner->scratch. O(K n log n), and that 16 times at most
 * where the memory of a stage depends on the number of stages. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_what_fits_find(psplit_planner *planner,
                                                    const psplit_i_request *r,
                                                    psplit_i_what_fits *out, psplit_diag *diag);

/* Whether anything but memory restricts the placement of nodes: pins, nodes that are kept together,
 * operators that a device lacks. */
bool psplit_i_any_wish(const psplit_planner *planner);

#endif
