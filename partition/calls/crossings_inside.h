/* Inside the enumeration of crossings: labels, and their extension by one more cluster. */
#ifndef PSPLIT_PARTITION_CALLS_CROSSINGS_INSIDE_H
#define PSPLIT_PARTITION_CALLS_CROSSINGS_INSIDE_H

#include "crossings.h"

enum { SLOTS = 10 /* nets that are open at once */ };

enum {
  LEFT = PSPLIT_I_CALLS_LEFT,
  RIGHT = PSPLIT_I_CALLS_RIGHT,
  CPU = PSPLIT_I_CALLS_ON_CPU,
  CALL = PSPLIT_I_CALLS_INSIDE
};
enum { RIGHT_HAS = 1, CPU_HAS = 2, CALL_HAS = 4 };
enum { PART_BITS = PSPLIT_I_CALLS_PART_BITS, STATE_BITS = PART_BITS + 3, TYPE_BIT = 60 };

typedef struct psplit_i_calls_label {
  uint64_t state; /* STATE_BITS of each slot: its part, and who has it; from TYPE_BIT on which types
                   * of calls are inside */
  int64_t cost, last;   /* of the left and the right; when all that is inside so far has ended */
  uint64_t left, right; /* bytes */
  /* Of the one call inside of a type: when it can begin, and what it takes. */
  int64_t start[PSPLIT_I_CALLS_TYPES], load[PSPLIT_I_CALLS_TYPES];
  uint32_t left_cell, right_cell; /* bytes in parts of the memory */
  int64_t end[SLOTS];             /* of producers inside, but for such a call's */
  int64_t less;                   /* that it costs than it would, as others are one with it */
  psplit_i_calls_parts parts;
} psplit_i_calls_label;

typedef PSPLIT_VEC(psplit_i_calls_label) psplit_i_calls_labels;

typedef struct psplit_i_calls_enumeration {
  const psplit_i_calls_clusters *x;
  psplit_i_budget *budget;
  const psplit_i_calls_block *block;
  uint32_t a, b;  /* kinds */
  uint32_t types; /* that calls inside may be of, as bits */
  uint32_t ones;  /* those of which one call at most is inside; of the others any number is, each of
                   * which is known by paths alone */
  uint64_t left_unit, right_unit, most_left, most_right;
  uint32_t telling; /* types of which one call is told from several whatever else is inside */
  int64_t limit;
  const psplit_i_calls_sides *before, *behind; /* NULL: nothing is known of that side */
  uint64_t left_memory, right_memory;
  psplit_i_calls_grain grain;
  int64_t *less; /* scratch: by label, that it costs than it would */
  size_t n_less;
  uint32_t slot_of_net[SLOTS]; /* the net in a slot, or NONE */
  uint32_t n_slots;            /* the last that is taken, and those before */
  psplit_i_calls_labels now, next;
  bool failed, too_many;
} psplit_i_calls_enumeration;

/* Whether the label costs less than the limit, with all that the rest takes at least. */
bool psplit_i_calls_is_below(const psplit_i_calls_enumeration *n, const psplit_i_calls_label *l);

/* The one call of a type ends no sooner than what it has so far. */
void psplit_i_calls_end_calls(const psplit_i_calls_enumeration *n, psplit_i_calls_label *l);

/* Slots for nets that v makes; false: there are too few. */
bool psplit_i_calls_take_slots(psplit_i_calls_enumeration *n, uint32_t v);
/* Slots of nets that v is the last to read are free; NONE: that only the separator behind reads. */
void psplit_i_calls_free_slots(psplit_i_calls_enumeration *n, uint32_t v);

/* Nets that v makes are there, in the part `to`; `end`: when, of what is inside. */
void psplit_i_calls_open(const psplit_i_calls_enumeration *n, uint32_t v, uint32_t to, int64_t end,
                         psplit_i_calls_label *l);

/* n->next: the labels of n->now with cluster v in any part, where that is below the limit. False:
 * too many nets are open. */
bool psplit_i_calls_extend(psplit_i_calls_enumeration *n, uint32_t v);

#endif
