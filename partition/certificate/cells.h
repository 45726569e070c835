/* Cells of downsets: what a proof by cases tells apart.
 *
 * A contiguous split is a chain of downsets, each a stage larger than the one before it. A cell is
 * a set of downsets of which some clusters are known to be in, some to be out, and between which
 * two weights they lie. A tree of questions divides all downsets into cells; what a stage from a
 * downset of one cell to one of another takes at least follows from what is known of both. Cells
 * that leave no chain of cheap stages prove a bound, and whoever has the tree can check it:
 * docs/certificates.md. */
#ifndef PSPLIT_PARTITION_CELLS_H
#define PSPLIT_PARTITION_CELLS_H

#include "automaton.h"
#include "bits.h"
#include "budget.h"
#include "instance.h"

/* Tensors of which one crosses whichever downset of a cell it is: the first one's producer is in,
 * each next one's producer is the consumer of the one before or comes before it, the last consumer
 * is out. */
typedef struct psplit_i_path {
  int64_t amount;  /* of what crossing takes; all paths of a cell share what a tensor takes */
  uint32_t *steps; /* [2 * n_steps] net, consumer */
  uint32_t n_steps;
  uint64_t *pins; /* bitset: of all its nets */
  bool message;   /* each of its nets makes one */
} psplit_i_path;

typedef struct psplit_i_cell {
  uint64_t *in, *out; /* bitsets of clusters: in every downset of the cell; in none */
  int64_t low, high;  /* weight (min_time) of its downsets */
  uint32_t n_free;    /* clusters neither in nor out; 0: one downset */
  int64_t *most;      /* [2 * n_types] time of all clusters that are in; of all that are not out */
  uint64_t in_bytes, most_bytes; /* memory of the same */
  /* Nets that cross for certain: [n_ahead] with the producer in and a consumer out, [n_behind] with
   * the producer out and a consumer in. */
  uint32_t *ahead, *behind, n_ahead, n_behind;
  psplit_i_path *paths[2]; /* of what is received behind a downset; sent before one */
  uint32_t n_paths[2];
  uint32_t question; /* where it is in the tree */
} psplit_i_cell;

enum { PSPLIT_I_ASK_NOTHING, PSPLIT_I_ASK_NODE, PSPLIT_I_ASK_WEIGHT };

/* A node of the tree: a cell, or a question with two answers. */
typedef struct psplit_i_question {
  uint32_t kind;
  uint32_t cluster;        /* ASK_NODE: is it out (no), or in (yes)? */
  int64_t weight;          /* ASK_WEIGHT: is the downset no heavier (no), or heavier (yes)? */
  uint32_t no, yes;        /* questions; NONE: nobody */
  psplit_i_path *paths[2]; /* ASK_NOTHING: of the cell */
  uint32_t n_paths[2];
} psplit_i_question;

typedef struct psplit_i_cells {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_arena arena; /* owns everything, cells too */
  uint32_t n, words;
  uint64_t *before, *behind; /* [n * words] a cluster with all that comes before it; behind it */
  uint64_t *forbidden;       /* [n_types * words] */
  int64_t *scale_up, *scale_down; /* [n_types] least time over min_time, as a fraction */
  uint64_t *counted; /* clusters that make a stage non-empty; NULL: empty stages are allowed */
  /* Clusters that no message comes to; that none leaves (message_floor.h). NULL: none count. */
  uint64_t *roots, *leaves;
  int64_t *least_send, *least_recv;                  /* [n_nets] over types that pay */
  uint64_t *all;                                     /* every cluster */
  uint64_t *left, *fresh_in, *fresh_out, *free_bits; /* scratch */
  PSPLIT_VEC(psplit_i_question) tree;
} psplit_i_cells;

/* Only scale_up and scale_down, for bounds on totals. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cells_scale(psplit_i_cells *cells,
                                                 const psplit_i_instance *instance,
                                                 const psplit_i_automaton *automaton);
/* Errors: NOMEM. O(clusters^2 / 64) bytes. */
PSPLIT_MUST_USE psplit_code psplit_i_cells_init(psplit_i_cells *cells,
                                                const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                bool no_empty_stages);
void psplit_i_cells_fini(psplit_i_cells *cells);

/* The cell of all downsets (0), of the empty one (-1), of all clusters (1). */
PSPLIT_MUST_USE psplit_code psplit_i_cells_whole(psplit_i_cells *cells, int which,
                                                 psplit_i_cell *out);
/* Divides a cell in two by the question that leaves least open; adds it to the tree. *out_n is how
 * many of the two hold anything: 0 to 2. Errors: NOMEM. O(free clusters * clusters / 64 + pins). */
PSPLIT_MUST_USE psplit_code psplit_i_cells_divide(psplit_i_cells *cells, const psplit_i_cell *cell,
                                                  psplit_i_cell out[2], uint32_t *out_n);

/* Finds the paths of a described cell, at most as much as `enough`. Without them what crosses is
 * counted only where that is certain. Errors: NOMEM. One maximum flow each way. */
PSPLIT_MUST_USE psplit_code psplit_i_cell_paths_find(psplit_i_cells *cells, psplit_i_cell *cell,
                                                     int64_t enough, psplit_i_budget *budget);

/* The messages of a stage from a downset of `from` to one of `to`, and what goes past it for
 * certain: from in front of it to what stands behind. */
typedef struct psplit_i_cell_messages {
  bool sends, receives; /* one of its own, for certain */
  bool passes;
  int64_t send_ns, recv_ns; /* of what goes past; receiving what it reads as well is not in it */
} psplit_i_cell_messages;

/* `type`: of the device that the stage is on. O(what crosses). */
psplit_i_cell_messages psplit_i_cells_messages(const psplit_i_cells *cells,
                                               const psplit_i_cell *from, const psplit_i_cell *to,
                                               uint32_t type);

/* What a stage on a device of `type` takes at least that reaches from a downset of `from` to one of
 * `to`, a tensor sent once, and `more` time for sending; INF: there is none. *out_comm is the part
 * of it that adds to the time of any stage between the two; 0 with overlap. */
int64_t psplit_i_cells_load(const psplit_i_cells *cells, const psplit_i_cell *from,
                            const psplit_i_cell *to, uint32_t type, int64_t more,
                            int64_t *out_comm);

#endif
