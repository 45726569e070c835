/* What lies ahead in an order of items if no stage is to take longer than a target: the order is
 * looked at as a chain, of which stages are intervals. A cut in front of place p costs those who
 * send and receive across it; tensors count for the stage that a stage of the target's size can
 * reach from them, so what only passes over stages counts for none. It is a guess, which the
 * network sees; loads are followed exactly in stages.h. */
#ifndef PSPLIT_POLICY_OUTLOOK_H
#define PSPLIT_POLICY_OUTLOOK_H

#include "view.h"

typedef struct psplit_i_outlook {
  const psplit_i_view *view;
  double mean_speed; /* of the devices */
  uint32_t *place;   /* [n] of an item in the order */
  double *ahead;     /* [n + 1] work in front of a place, on a device of that speed, ns */
  double *bytes;     /* [n + 1] likewise, without groups */
  double memory;     /* the most that a device has; 0: no limit */
  double target;     /* ns; what is below is for it */
  double *enter,
    *leave;       /* [n + 1] what a cut in front of a place costs the stage behind, in front */
  uint32_t *need; /* [n + 1] stages that take all from a place on */
  uint32_t *reach,
    *back;          /* [n] how far a stage gets from a place; where one that ends there begins */
  uint32_t *sorted; /* scratch: places of consumers */
} psplit_i_outlook;

/* Arrays are of `arena`; no target yet. O(n + pins). Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_outlook_init(psplit_i_outlook *outlook,
                                                  const psplit_i_view *view, psplit_i_arena *arena);

/* O(n + pins log pins of a net). */
void psplit_i_outlook_aim(psplit_i_outlook *outlook, double target);

/* The least target, within 1/500, for which there seem to be devices enough; aimed at then.
 * A dozen times aim(). */
double psplit_i_outlook_least(psplit_i_outlook *outlook);

/* From `place` on, for a last stage which has `room` ns left (of a device of mean speed). */
typedef struct psplit_i_prospect {
  uint32_t need; /* stages behind it, in the best case */
  double cut;    /* the least cost of a cut that it reaches, ns */
  double fill;   /* work that it takes on the way to the best case, ns */
} psplit_i_prospect;
psplit_i_prospect psplit_i_outlook_from(const psplit_i_outlook *outlook, uint32_t place,
                                        double room);

#endif
