/* State of the search for a proof by cases, shared by its files. */
#ifndef PSPLIT_PARTITION_CASE_PROOF_INSIDE_H
#define PSPLIT_PARTITION_CASE_PROOF_INSIDE_H

#include "case_proof.h"
#include "vec.h"

/* The cells of the empty downset and of the downset of all clusters, which are never divided. */
enum { PSPLIT_I_CASE_EMPTY = 0, PSPLIT_I_CASE_WHOLE = 1 };

/* One count of a label: `count` stages (at least two) receive net `net`, whose producer is left. */
typedef struct psplit_i_case_receivers {
  uint32_t net, count;
} psplit_i_case_receivers;

/* What is known of the stage in front of a label's stages if tensors may take any route
 * (partition/exact/bypasses.c): it is not bypassed; it is bypassed, and sends something to the
 * stage behind it, or nothing; or this is not known, and the stage behind it is bypassed and
 * receives something, or may receive nothing. */
typedef enum psplit_i_beside {
  PSPLIT_I_NOT_BYPASSED,
  PSPLIT_I_SENDS,
  PSPLIT_I_SENDS_NOTHING,
  PSPLIT_I_BESIDE_READER,
  PSPLIT_I_BESIDE_ANY
} psplit_i_beside;

/* In `state`, a downset of `cell` that weighs at least `left` may be left. */
typedef struct psplit_i_case_label {
  int64_t left;
  uint32_t state, cell, next; /* next: label of the same state and cell */
  uint32_t counts, n_counts;  /* its receivers: p->counts[counts .. counts + n_counts - 1] */
  psplit_i_beside beside;
} psplit_i_case_label;

/* A stage that begins behind a downset of cell `from`, and whose communication takes at least
 * `comm`. */
typedef struct psplit_i_case_stage {
  uint32_t from;
  int64_t comm;
} psplit_i_case_stage;

/* Stages by the cell that they end in: off[cells + 1]. */
typedef struct psplit_i_case_rows {
  PSPLIT_VEC(psplit_i_case_stage) stages;
  PSPLIT_VEC(size_t) off;
  bool failed;
} psplit_i_case_rows;

typedef struct psplit_i_case_search {
  psplit_i_cells *cells;
  const psplit_i_case_request *request;
  psplit_i_arena arena; /* of the whole search */
  bool by_place;        /* states are places in the order of devices */
  uint32_t n_states, n_types;
  uint32_t *radix, *count; /* [n_types] */
  uint32_t *type_at;       /* [n_stages] type by place, from the last device on */
  int64_t *reach;          /* [n_types] largest weight that one stage can have */
  int64_t *room;           /* [n_states] largest weight that fits on the devices not used */
  PSPLIT_VEC(psplit_i_cell) list;
  psplit_i_case_rows *fits; /* [n_types] */
  bool *live;               /* [list.n] the cell lies on a chain */
  bool *tracked;            /* [n_nets] receivers of the net are counted */
  PSPLIT_VEC(psplit_i_case_label) labels;
  PSPLIT_VEC(psplit_i_case_receivers) counts;
  PSPLIT_VEC(uint64_t) steps; /* label << 32 | label */
  uint32_t *first;            /* [n_states * list.n] first label */
  bool open;                  /* a chain was found */
} psplit_i_case_search;

/* Runs the program over cells and used devices: sets p->live and p->open from p->list and p->fits.
 * *out_done is false if it stopped at the limits on labels and steps, or at the budget. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_case_program(psplit_i_case_search *p, bool *out_done);

#endif
