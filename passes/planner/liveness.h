/* Memory of a stage by liveness analysis: what a set of nodes holds when it runs in topological
 * order. */
#ifndef PSPLIT_PASSES_LIVENESS_H
#define PSPLIT_PASSES_LIVENESS_H

#include "planner.h"

/* Scratch, reused for all stages. */
typedef struct psplit_i_liveness {
  const psplit_planner *planner;
  uint32_t stamp;
  uint32_t *made;     /* [n_values] stamp: produced by the nodes so far */
  uint32_t *seen;     /* [n_values] stamp: counted */
  uint32_t *last_use; /* [n_values] position of the last reader; UINT32_MAX: live to the end */
} psplit_i_liveness;

/* Bytes saturate at UINT64_MAX. */
typedef struct psplit_i_stage_memory {
  uint64_t weight_bytes;     /* constants, each once, and those in bodies */
  uint64_t activation_bytes; /* the largest sum of live values */
  uint64_t stashed_bytes;    /* for training: what each micro-batch in flight holds */
  uint64_t state_bytes;      /* caches of one sequence (state.h) */
  uint32_t n_sequences;      /* sequences in flight: as many as stages, so that all have work */
  uint64_t received_bytes;   /* values that other stages produce, each once */
  uint64_t sent_bytes;       /* values that other stages read, each once */
  uint32_t n_received, n_sent;
  uint32_t n_nodes;              /* bodies' and free ones included */
  uint64_t largest_kernel_bytes; /* weight of a convolution */
  uint64_t mapped_bytes;         /* what weights in a file of their own, mapped, would save there */
  uint64_t copies_bytes;         /* of weights, that a runtime makes on devices that keep copies */
  uint64_t outside_copies_bytes; /* the same where initializers stand outside of the model */
  uint32_t peak_node;            /* where activations peak; PSPLIT_NONE without nodes */
  uint32_t largest_value; /* of the constants and of what peak_node reads and makes, the largest;
                             PSPLIT_NONE where there is none */
} psplit_i_stage_memory;

/* What a stage is counted by where its runtime keeps copies; measured: docs/costs/memory.md. */
enum {
  PSPLIT_I_SESSION_BYTES = 900000,
  PSPLIT_I_NODE_BYTES = 3000,
  PSPLIT_I_ARENA_PERCENT = 240, /* of activations */
  PSPLIT_I_TABLE_PERCENT = 650, /* of tables in attributes: lists, and what kernels make of them */
  PSPLIT_I_BODY_PERCENT = 350,  /* of what bodies hold: each has copies of its own */
  PSPLIT_I_OUTSIDE_BYTES = 64 << 20 /* of weights, as emit/ has it: more go into a file */
};

/* Constants by what a runtime makes of them. */
typedef enum psplit_i_copies {
  PSPLIT_I_COPIES_COMPUTED, /* made while a session loads */
  PSPLIT_I_COPIES_HALF,
  PSPLIT_I_COPIES_OTHER, /* neither floats nor half floats */
  PSPLIT_I_COPIES_FLOAT, /* an initializer */
  PSPLIT_I_COPIES_FLOAT_NODE,
  PSPLIT_I_N_COPIES
} psplit_i_copies;

psplit_i_copies psplit_i_copies_of(const psplit_planner *planner, uint32_t value);
/* Of the constant's bytes, what the runtime holds besides them: for a convolution, or another
 * reader; with weights outside of the model's file, or in it. */
unsigned psplit_i_copies_percent(psplit_i_copies copies, bool conv, bool outside);

/* What such a runtime holds of the constants that a node carries, besides them. */
uint64_t psplit_i_inner_copies(const psplit_i_graph *graph, uint32_t node);

/* The node and all in its bodies. */
uint32_t psplit_i_count_nodes(const psplit_i_node *node);

/* Arrays live in `arena`; `planner` outlives *l. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_liveness_init(psplit_i_liveness *l,
                                                   const psplit_planner *planner,
                                                   psplit_i_arena *arena, psplit_diag *diag);

/* Of the n nodes of `nodes`, in topological order (free nodes may stand anywhere), when they send
 * `sent` (values; each may stand several times in a row). Received and given values are live from
 * the start to their last use, made ones from their node on, sent values and outputs of the model
 * to the end. O(n + reads). */
void psplit_i_liveness_measure(psplit_i_liveness *l, const uint32_t *nodes, uint32_t n,
                               const uint32_t *sent, uint32_t n_sent, psplit_i_stage_memory *out);

/* What any stage with these n nodes holds at least, whatever else it has: their weights, and what
 * is live while one of them runs, the peak. All else is 0. O(n + reads). */
void psplit_i_liveness_least(psplit_i_liveness *l, const uint32_t *nodes, uint32_t n,
                             psplit_i_stage_memory *out);

/* Its received and sent tensors, for every micro-batch that waits at its boundary. */
uint64_t psplit_i_stage_buffers(const psplit_planner *planner, const psplit_i_stage_memory *memory);

/* To train: what the micro-batches hold that are in flight at a stage. */
uint64_t psplit_i_stage_stash(const psplit_planner *planner, uint32_t stage,
                              const psplit_i_stage_memory *memory);

/* What the device's runtime keeps: what the device says, and where it keeps copies, these, what its
 * arena has more than what is live, and the session. */
uint64_t psplit_i_stage_workspace(const psplit_planner *planner, uint32_t device,
                                  const psplit_i_stage_memory *memory);

/* Caches of the sequences in flight. */
uint64_t psplit_i_stage_state(const psplit_i_stage_memory *memory);

/* What weights in a file of their own would save, where the device keeps copies. */
uint64_t psplit_i_stage_mapped(const psplit_planner *planner, uint32_t device,
                               const psplit_i_stage_memory *memory);

/* What a stage needs on its device: weights, activations, caches, stash, the buffers of its
 * boundary for every micro-batch that waits there, and the device's workspace. */
uint64_t psplit_i_stage_need(const psplit_planner *planner, uint32_t device,
                             const psplit_i_stage_memory *memory);

#endif
