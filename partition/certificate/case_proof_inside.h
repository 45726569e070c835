/* State of the search for a proof by cases, shared by its files. */
#ifndef PSPLIT_PARTITION_CASE_PROOF_INSIDE_H
#define PSPLIT_PARTITION_CASE_PROOF_INSIDE_H

#include "case_proof.h"
#include "vec.h"

/* The cells of the empty downset and of all clusters, which are never divided. */
enum { PSPLIT_I_CASE_EMPTY = 0, PSPLIT_I_CASE_WHOLE = 1 };

/* In a label's counts: `count` stages, two or more, receive net `net` from what is left. */
typedef struct psplit_i_case_receivers {
  uint32_t net, count;
} psplit_i_case_receivers;

/* What is known of the next stage in front where tensors go any way (partition/exact/bypasses.c):
 * it is not bypassed; it is, and sends the one behind it something, or nothing; either, beside one
 * that is and receives something, or may not. */
typedef enum psplit_i_beside {
  PSPLIT_I_NOT_BYPASSED,
  PSPLIT_I_SENDS,
  PSPLIT_I_SENDS_NOTHING,
  PSPLIT_I_BESIDE_READER,
  PSPLIT_I_BESIDE_ANY
} psplit_i_beside;

/* A downset of `cell` that weighs `left` at least may be left in `state`. */
typedef struct psplit_i_case_label {
  int64_t left;
  uint32_t state, cell, next; /* next: of the same state and cell */
  uint32_t counts, n_counts;  /* its receivers: n_counts of p->counts from there on */
  psplit_i_beside beside;
} psplit_i_case_label;

/* A stage that begins behind a downset of cell `from`, and pays `comm` at least. */
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
  bool by_place;        /* states are places in the order */
  uint32_t n_states, n_types;
  uint32_t *radix, *count; /* [n_types] */
  uint32_t *type_at;       /* [n_stages] by place from the last */
  int64_t *reach;          /* [n_types] most weight of one stage */
  int64_t *room;           /* [n_states] most weight that devices not used can take */
  PSPLIT_VEC(psplit_i_cell) list;
  psplit_i_case_rows *fits; /* [n_types] */
  bool *live;               /* [list.n] on a chain */
  bool *tracked;            /* [n_nets] receivers are counted */
  PSPLIT_VEC(psplit_i_case_label) labels;
  PSPLIT_VEC(psplit_i_case_receivers) counts;
  PSPLIT_VEC(uint64_t) steps; /* label << 32 | label */
  uint32_t *first;            /* [n_states * list.n] labels */
  bool open;                  /* a chain was found */
} psplit_i_case_search;

/* The program over cells and devices used: fills p->live and p->open from p->list and p->fits.
 * *out_done: it came to an end, before the limits on labels and steps, and the budget. Errors:
 * NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_case_program(psplit_i_case_search *p, bool *out_done);

#endif
