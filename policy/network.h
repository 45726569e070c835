/* The network: its weights, what it computes, and the gradients of that, written by hand.
 *
 *   encoder  e = relu(x F + f), then ROUNDS times
 *            e += relu(e S + mean(e of predecessors) P + mean(e of successors) Q + s)
 *   memory   m = tanh(mean(e) G + g); after each decision m = GRU([e of the item, c chosen], m)
 *   score    of a candidate c for item i: relu(e_i A + m B + c C + a) . v
 *   schedule of a way q to run a batch through the stages (schedules.h): relu(q D + d) . u
 *
 * x are features of items, c those of candidates: an item on a stage that there is, or on a new
 * one of some device type. A decision is the candidate of the largest score, or drawn from the
 * softmax of all. */
#ifndef PSPLIT_POLICY_NETWORK_H
#define PSPLIT_POLICY_NETWORK_H

#include <stdint.h>

#include "arena.h"
#include "real.h"

enum {
  PSPLIT_I_ITEM_FEATURES = 16,
  PSPLIT_I_CANDIDATE_FEATURES = 24,
  PSPLIT_I_WIDTH = 32,  /* of an item's embedding */
  PSPLIT_I_MEMORY = 32, /* of the recurrent state */
  PSPLIT_I_SCORE = 32,  /* of the layer that scores */
  PSPLIT_I_ROUNDS = 3,
  PSPLIT_I_SCHEDULE_FEATURES = 16,
  PSPLIT_I_SCHEDULE_HIDDEN = 32,
};

/* Every tensor: name, rows, columns. A vector has one row. The GRU's columns are reset, update,
 * new, of MEMORY each. */
#define PSPLIT_I_TENSORS(T)                                            \
  T(item_weight, PSPLIT_I_ITEM_FEATURES, PSPLIT_I_WIDTH)               \
  T(item_bias, 1, PSPLIT_I_WIDTH)                                      \
  T(round_self, PSPLIT_I_ROUNDS *PSPLIT_I_WIDTH, PSPLIT_I_WIDTH)       \
  T(round_pred, PSPLIT_I_ROUNDS *PSPLIT_I_WIDTH, PSPLIT_I_WIDTH)       \
  T(round_succ, PSPLIT_I_ROUNDS *PSPLIT_I_WIDTH, PSPLIT_I_WIDTH)       \
  T(round_bias, PSPLIT_I_ROUNDS, PSPLIT_I_WIDTH)                       \
  T(start_weight, PSPLIT_I_WIDTH, PSPLIT_I_MEMORY)                     \
  T(start_bias, 1, PSPLIT_I_MEMORY)                                    \
  T(score_item, PSPLIT_I_WIDTH, PSPLIT_I_SCORE)                        \
  T(score_memory, PSPLIT_I_MEMORY, PSPLIT_I_SCORE)                     \
  T(score_candidate, PSPLIT_I_CANDIDATE_FEATURES, PSPLIT_I_SCORE)      \
  T(score_bias, 1, PSPLIT_I_SCORE)                                     \
  T(score_out, 1, PSPLIT_I_SCORE)                                      \
  T(gru_item, PSPLIT_I_WIDTH, 3 * PSPLIT_I_MEMORY)                     \
  T(gru_candidate, PSPLIT_I_CANDIDATE_FEATURES, 3 * PSPLIT_I_MEMORY)   \
  T(gru_memory, PSPLIT_I_MEMORY, 3 * PSPLIT_I_MEMORY)                  \
  T(gru_bias, 1, 3 * PSPLIT_I_MEMORY)                                  \
  T(gru_memory_bias, 1, 3 * PSPLIT_I_MEMORY)                           \
  T(schedule_in, PSPLIT_I_SCHEDULE_FEATURES, PSPLIT_I_SCHEDULE_HIDDEN) \
  T(schedule_bias, 1, PSPLIT_I_SCHEDULE_HIDDEN)                        \
  T(schedule_out, 1, PSPLIT_I_SCHEDULE_HIDDEN)

/* The weights, or their gradients. */
typedef struct psplit_i_policy_network {
#define T(name, rows, columns) psplit_i_real name[(rows) * (columns)];
  PSPLIT_I_TENSORS(T)
#undef T
} psplit_i_policy_network;

/* What files may hold is smaller: larger weights would make chances that are no numbers. */
#define PSPLIT_I_MOST_WEIGHT 1e6
enum { PSPLIT_I_N_PARAMETERS = sizeof(psplit_i_policy_network) / sizeof(psplit_i_real) };

typedef struct psplit_i_tensor_row {
  const char *name;
  uint32_t rows, columns;
  size_t offset; /* of its first number among all */
} psplit_i_tensor_row;
extern const psplit_i_tensor_row psplit_i_policy_tensors[];
extern const uint32_t psplit_i_policy_n_tensors;

/* Uniform, of variance 2 / rows (He et al. 2015); biases 0, scores 0.1 of that. */
void psplit_i_policy_randomize(psplit_i_policy_network *network, uint64_t seed);

/* A graph as the encoder reads it. */
typedef struct psplit_i_policy_graph {
  uint32_t n;
  const uint32_t *pred_off, *pred, *succ_off, *succ;
  const psplit_i_real *x; /* [n * ITEM_FEATURES] */
} psplit_i_policy_graph;

/* What the encoder computed; kept for its gradient. */
typedef struct psplit_i_encoding {
  psplit_i_real *e;          /* [(ROUNDS + 1) * n * WIDTH] after each round */
  psplit_i_real *mean;       /* [ROUNDS * 2 * n * WIDTH] of predecessors, then of successors */
  psplit_i_real *score_part; /* [n * SCORE] e A + a */
  psplit_i_real *gru_part;   /* [n * 3 MEMORY] e W + w, of the item */
  psplit_i_real *start;      /* [MEMORY] */
  psplit_i_real *pooled;     /* [WIDTH] */
} psplit_i_encoding;

/* Errors: false, out of memory. */
bool psplit_i_encoding_init(psplit_i_encoding *encoding, uint32_t n, psplit_i_arena *arena);
/* O((n + edges) WIDTH^2). */
void psplit_i_encode(const psplit_i_policy_network *network, const psplit_i_policy_graph *graph,
                     psplit_i_encoding *encoding);
/* Gradients of what decisions read of an encoding, with the shapes of score_part, gru_part and
 * start. Memory is the caller's. */
typedef struct psplit_i_encoding_gradient {
  psplit_i_real *score, *gru, *start;
} psplit_i_encoding_gradient;

/* Back through the encoder. Added to *gradient. Scratch: 2 * n * WIDTH numbers. */
void psplit_i_encode_back(const psplit_i_policy_network *network,
                          const psplit_i_policy_graph *graph, const psplit_i_encoding *encoding,
                          const psplit_i_encoding_gradient *d_encoding, psplit_i_real *scratch,
                          psplit_i_policy_network *gradient);

/* What a decision chooses from, and in which state. */
typedef struct psplit_i_decision {
  const psplit_i_real *memory;     /* [MEMORY] before it */
  const psplit_i_real *candidates; /* [n * CANDIDATE_FEATURES] */
  uint32_t n;
  psplit_i_real *hidden; /* [n * SCORE] set by psplit_i_score, for the gradient */
} psplit_i_decision;

/* Scores of the candidates for item i: out_logit[n]. */
void psplit_i_score(const psplit_i_policy_network *network, const psplit_i_encoding *encoding,
                    uint32_t i, const psplit_i_decision *decision, psplit_i_real *out_logit);
/* d_memory and d_score_part[SCORE] are added to. */
void psplit_i_score_back(const psplit_i_policy_network *network, const psplit_i_decision *decision,
                         const psplit_i_real *d_logit, psplit_i_real *d_memory,
                         psplit_i_real *d_score_part, psplit_i_policy_network *gradient);

/* A step of the recurrent network, behind a decision. */
typedef struct psplit_i_gru_step {
  const psplit_i_real *candidate; /* [CANDIDATE_FEATURES] the chosen one */
  const psplit_i_real *memory;    /* [MEMORY] before the step */
  psplit_i_real *gates; /* [4 * MEMORY] set by psplit_i_remember: reset, update, new, and what reset
                           scales */
} psplit_i_gru_step;

/* The memory behind a decision for item i. */
void psplit_i_remember(const psplit_i_policy_network *network, const psplit_i_encoding *encoding,
                       uint32_t i, const psplit_i_gru_step *step, psplit_i_real *out_memory);
/* From d_out, of the memory behind, to *d_memory, which is set, and d_gru_part[3 MEMORY], which is
 * added to. */
void psplit_i_remember_back(const psplit_i_policy_network *network, const psplit_i_gru_step *step,
                            const psplit_i_real *d_out, psplit_i_real *d_memory,
                            psplit_i_real *d_gru_part, psplit_i_policy_network *gradient);

/* Logits become probabilities; returns the entropy. */
psplit_i_real psplit_i_softmax(psplit_i_real *io_logit, uint32_t n);

#endif
