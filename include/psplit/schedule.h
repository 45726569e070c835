/* Schedules: in which order devices run the pieces of micro-batches, and how long that takes. Bare
 * numbers; knows neither graphs nor ONNX. */
#ifndef PSPLIT_SCHEDULE_H
#define PSPLIT_SCHEDULE_H

#include <psplit/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum psplit_schedule_kind {
  PSPLIT_SCHEDULE_FILL_DRAIN,  /* all forward micro-batches, then all backward (GPipe) */
  PSPLIT_SCHEDULE_1F1B,        /* one forward one backward after a warm-up (PipeDream-Flush) */
  PSPLIT_SCHEDULE_INTERLEAVED, /* 1F1B over chunks (Megatron-LM) */
  PSPLIT_SCHEDULE_STREAM,      /* inference: forward only, one after the other */
  /* 1F1B whose backward pieces make gradients of inputs alone, those of weights in pieces of their
   * own that fill waits (ZB-H1) */
  PSPLIT_SCHEDULE_ZERO_BUBBLE
} psplit_schedule_kind;

typedef struct psplit_schedule_input {
  psplit_schedule_kind kind;
  uint32_t n_stages; /* devices */
  uint32_t n_chunks; /* >= 1; > 1 only for INTERLEAVED */
  uint32_t n_micro_batches;
  /* [n_chunks * n_stages], by virtual stage; >= 0. backward_ns is NULL for STREAM. */
  const int64_t *forward_ns, *backward_ns;
  /* [n_chunks * n_stages - 1] time from a virtual stage to the next one and, for backward, back;
   * it delays the receiver and keeps neither busy. NULL: 0. */
  const int64_t *link_ns;
  /* [n_chunks * n_stages] bytes a micro-batch in flight holds; NULL: 0. */
  const uint64_t *activation_bytes;
  /* [n_stages] of gradients of weights, which backward_ns does not hold then; NULL but for
   * ZERO_BUBBLE, which needs it. Nothing of another stage waits for these pieces. */
  const int64_t *weights_ns;
  /* [psplit_schedule.n_slots] time of each piece, by its place in psplit_schedule.slots, which
   * hangs on no time; each >= 0. NULL: as the stages' times say, which are to be given all the
   * same. Only psplit_schedule_simulate looks at it. */
  const int64_t *slot_ns;
} psplit_schedule_input;

typedef struct psplit_schedule_slot {
  uint32_t stage, chunk, micro_batch;
  bool backward;
  bool weights; /* with `backward`: the gradients of weights alone */
  int64_t start_ns, end_ns;
} psplit_schedule_slot;

typedef struct psplit_schedule {
  int64_t makespan_ns;
  double bubble_frac;       /* idle share of all devices between time 0 and makespan */
  int64_t *busy_ns;         /* [n_stages] */
  uint32_t *peak_in_flight; /* [n_stages] micro-batches (chunks counted apart) held at once */
  uint64_t *peak_bytes;     /* [n_stages] */
  uint32_t n_stages;
  size_t n_slots;
  psplit_schedule_slot *slots; /* the Gantt chart, by stage, then by start */
} psplit_schedule;

/* O(chunks * stages * micro-batches). Errors: USAGE, LIMIT (overflow, above 2^26 slots), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_schedule_simulate(const psplit_schedule_input *input,
                                                                psplit_diag *diag,
                                                                psplit_schedule **out_schedule);
PSPLIT_API void psplit_schedule_destroy(psplit_schedule *schedule);

/* The least time of a step with forward and backward passes, over all orders in which devices may
 * work, by branch and bound. Holds for devices with one stage each, which run one piece at a time
 * without interruption, as in the simulation, and both kinds of gradients in one piece.
 * max_in_flight[n_stages], each >= 1: micro-batches that a stage may hold between their forward and
 * their backward piece; NULL: any number. `max_steps` bounds the search: *out_bound_ns is what no
 * order can be below, *out_makespan_ns what some order takes; they are equal when the search ended.
 * Meant for 4 stages and 8 micro-batches. Takes half a MiB of memory for each stage and each
 * micro-batch, of states that were seen. Errors: USAGE (chunks, no backward pass or one in two
 * pieces, a limit of 0), LIMIT (more than 16 stages or 255 micro-batches), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_schedule_optimum(
  const psplit_schedule_input *input, const uint32_t *max_in_flight, uint64_t max_steps,
  psplit_diag *diag, int64_t *out_makespan_ns, int64_t *out_bound_ns);

#ifdef __cplusplus
}
#endif
#endif
