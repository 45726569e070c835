/* Cells of downsets: the cases of a proof by cases.
 *
 * A contiguous split is a chain of downsets, each of which adds a stage to the one before it. A
 * cell is a set of downsets of which some clusters are known to be in, some are known to be out,
 * and whose weight lies in an interval. A tree of questions divides all downsets into cells. The
 * properties of two cells imply the least load of a stage from a downset of one to a downset of the
 * other. If no chain of stages within a limit leads through the cells, the limit is a bound, and
 * the tree is a proof that can be checked: docs/certificates.md. */
#ifndef PSPLIT_PARTITION_CELLS_H
#define PSPLIT_PARTITION_CELLS_H

#include "automaton.h"
#include "bits.h"
#include "budget.h"
#include "instance.h"

/* Tensors of which at least one crosses every downset of a cell: the producer of the first is in,
 * the producer of each further one is the consumer of the one before or a predecessor of it, and
 * the last consumer is out. */
typedef struct psplit_i_path {
  /* part of the time of crossing; all paths of a cell together get what a tensor takes */
  int64_t amount;
  uint32_t *steps; /* [2 * n_steps] net, consumer */
  uint32_t n_steps;
  uint64_t *pins; /* bitset of the pins of all its nets */
  bool message;   /* each of its nets makes a message */
} psplit_i_path;

typedef struct psplit_i_cell {
  uint64_t *in, *out;  /* bitsets of clusters: in every downset of the cell; in none of them */
  int64_t low, high;   /* interval of the weights (min_time) of its downsets */
  uint32_t n_free;     /* clusters that are neither in nor out; 0: the cell is one downset */
  int64_t *most;       /* [2 * n_types] time of all clusters that are in; of all that are not out */
  uint64_t most_bytes; /* memory of all clusters that are not out */
  /* Nets that certainly cross: [n_ahead] with the producer in and a consumer out, [n_behind] with
   * the producer out and a consumer in. */
  uint32_t *ahead, *behind, n_ahead, n_behind;
  /* of tensors that are received behind a downset; that are sent before it */
  psplit_i_path *paths[2];
  uint32_t n_paths[2];
  uint32_t question; /* index in the tree */
} psplit_i_cell;

enum { PSPLIT_I_ASK_NOTHING, PSPLIT_I_ASK_NODE, PSPLIT_I_ASK_WEIGHT };

/* A node of the tree: a cell, or a question with two answers. */
typedef struct psplit_i_question {
  uint32_t kind;
  uint32_t cluster;        /* ASK_NODE: is the cluster out (no) or in (yes)? */
  int64_t weight;          /* ASK_WEIGHT: does the downset weigh at most this (no) or more (yes)? */
  uint32_t no, yes;        /* indices of questions; NONE: no downset gives this answer */
  psplit_i_path *paths[2]; /* ASK_NOTHING: of the cell */
  uint32_t n_paths[2];
} psplit_i_question;

typedef struct psplit_i_cells {
  const psplit_i_instance *instance;
  const psplit_i_automaton *automaton;
  psplit_i_arena arena; /* owns everything, including the cells */
  uint32_t n, words;
  uint64_t *before, *behind; /* [n * words] a cluster and its predecessors; and its successors */
  uint64_t *forbidden;       /* [n_types * words] */
  int64_t *scale_up, *scale_down; /* [n_types] least ratio of time to min_time, as a fraction */
  uint64_t *counted; /* clusters that make a stage non-empty; NULL: stages may be empty */
  /* Clusters that receive no message; that send none (message_floor.h). NULL: messages are not
   * counted. */
  uint64_t *roots, *leaves;
  int64_t *least_send, *least_recv; /* [n_nets] minimum over types that pay for transfers */
  uint64_t *all;                    /* every cluster */
  uint64_t *left, *fresh_in, *fresh_out, *free_bits; /* scratch */
  PSPLIT_VEC(psplit_i_question) tree;
} psplit_i_cells;

/* Initialises scale_up and scale_down only, for bounds by totals. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_cells_scale(psplit_i_cells *cells,
                                                 const psplit_i_instance *instance,
                                                 const psplit_i_automaton *automaton);
/* Errors: NOMEM. O(clusters^2 / 64) bytes. */
PSPLIT_MUST_USE psplit_code psplit_i_cells_init(psplit_i_cells *cells,
                                                const psplit_i_instance *instance,
                                                const psplit_i_automaton *automaton,
                                                bool no_empty_stages);
void psplit_i_cells_fini(psplit_i_cells *cells);

/* Makes the cell of all downsets (0), of the empty one (-1) or of all clusters (1). */
PSPLIT_MUST_USE psplit_code psplit_i_cells_whole(psplit_i_cells *cells, int which,
                                                 psplit_i_cell *out);
/* Divides a cell by the question that leaves the fewest clusters free, and adds the question to the
 * tree. *out_n of the two parts, 0 to 2, are not empty. Errors: NOMEM. O(free clusters * clusters /
 * 64 + pins). */
PSPLIT_MUST_USE psplit_code psplit_i_cells_divide(psplit_i_cells *cells, const psplit_i_cell *cell,
                                                  psplit_i_cell out[2], uint32_t *out_n);

/* Finds paths of a cell, up to a total amount of `enough`. Without paths, only nets that certainly
 * cross are counted. Errors: NOMEM. One maximum flow in each direction. */
PSPLIT_MUST_USE psplit_code psplit_i_cell_paths_find(psplit_i_cells *cells, psplit_i_cell *cell,
                                                     int64_t enough, psplit_i_budget *budget);

/* Messages of a stage from a downset of `from` to one of `to`, and tensors that certainly pass it:
 * from earlier stages to later ones. */
typedef struct psplit_i_cell_messages {
  bool sends, receives; /* certainly one of its own tensors */
  bool passes;
  /* of tensors that pass; without the tensors that the stage reads itself */
  int64_t send_ns, recv_ns;
} psplit_i_cell_messages;

/* `type`: of the stage's device. O(crossing nets). */
psplit_i_cell_messages psplit_i_cells_messages(const psplit_i_cells *cells,
                                               const psplit_i_cell *from, const psplit_i_cell *to,
                                               uint32_t type);

/* The least load of a stage from a downset of `from` to one of `to` on a device of `type`, where
 * each tensor is sent once and `more` is added for sending; INF: there is no such stage. *out_comm
 * is the part of the load that adds to the time of any stage between the two; 0 with overlap. */
int64_t psplit_i_cells_load(const psplit_i_cells *cells, const psplit_i_cell *from,
                            const psplit_i_cell *to, uint32_t type, int64_t more,
                            int64_t *out_comm);

#endif
