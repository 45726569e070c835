/* Pipeline schedules: the order in which devices run the pieces of micro-batches, and its makespan.
 * Knows neither graphs nor ONNX. */
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
  PSPLIT_SCHEDULE_STREAM,      /* inference: forward only */
  /* 1F1B with separate pieces for gradients of weights, which fill idle time; backward pieces only
   * compute gradients of inputs (ZB-H1) */
  PSPLIT_SCHEDULE_ZERO_BUBBLE
} psplit_schedule_kind;

typedef struct psplit_schedule_input {
  psplit_schedule_kind kind;
  uint32_t n_stages; /* devices */
  uint32_t n_chunks; /* >= 1; > 1 only for INTERLEAVED */
  uint32_t n_micro_batches;
  /* [n_chunks * n_stages], by virtual stage; >= 0. backward_ns is NULL for STREAM. */
  const int64_t *forward_ns, *backward_ns;
  /* [n_chunks * n_stages - 1] latency from a virtual stage to the next one and, for backward, in
   * the opposite direction; it delays the receiver and occupies neither. NULL: 0. */
  const int64_t *link_ns;
  /* [n_chunks * n_stages] bytes per micro-batch in flight; NULL: 0. */
  const uint64_t *activation_bytes;
  /* [n_stages] time of weight gradients, excluded from backward_ns; required for ZERO_BUBBLE,
   * otherwise NULL. No piece of another stage depends on them. */
  const int64_t *weights_ns;
  /* [psplit_schedule.n_slots] time of each piece, >= 0, by its index in psplit_schedule.slots,
   * which does not depend on times. NULL: times of the stages, which are required in any case. Only
   * used by psplit_schedule_simulate. */
  const int64_t *slot_ns;
} psplit_schedule_input;

typedef struct psplit_schedule_slot {
  uint32_t stage, chunk, micro_batch;
  bool backward;
  bool weights; /* with `backward`: only the gradients of weights */
  int64_t start_ns, end_ns;
} psplit_schedule_slot;

typedef struct psplit_schedule {
  int64_t makespan_ns;
  double bubble_frac;       /* idle fraction of all devices from 0 to the makespan */
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

/* The minimum makespan of a step with forward and backward passes, over all orders of the pieces,
 * by branch and bound. For devices with one stage each, which run one piece at a time without
 * preemption, as in the simulation, and unsplit backward pieces. max_in_flight[n_stages], each >=
 * 1: micro-batches that a stage may hold between their forward and backward piece; NULL: unlimited.
 * `max_steps` bounds the search: *out_bound_ns is a lower bound, *out_makespan_ns the best makespan
 * found; they are equal if the search completed. Intended for up to 4 stages and 8 micro-batches.
 * Needs half a MiB of memory for each stage and each micro-batch, for visited states. Errors: USAGE
 * (chunks, no backward pass or a split one, a limit of 0), LIMIT (more than 16 stages or 255
 * micro-batches), NOMEM. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_schedule_optimum(
  const psplit_schedule_input *input, const uint32_t *max_in_flight, uint64_t max_steps,
  psplit_diag *diag, int64_t *out_makespan_ns, int64_t *out_bound_ns);

#ifdef __cplusplus
}
#endif
#endif
