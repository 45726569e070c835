/* What a run showed, beside what was predicted. */
#ifndef PSPLIT_RUNTIME_REPORT_H
#define PSPLIT_RUNTIME_REPORT_H

#include "runtime.h"

/* Means over the micro-batches, ns. */
typedef struct psplit_i_stage_report {
  int64_t busy_ns;     /* in ONNX Runtime */
  int64_t wait_in_ns;  /* for inputs */
  int64_t wait_out_ns; /* for room to hand over outputs */
  int64_t transfer_ns; /* its inputs were on the way, while it waited or computed */
  uint64_t bytes;      /* of inputs from other stages */
} psplit_i_stage_report;

typedef struct psplit_i_report {
  uint32_t n_stages;
  uint64_t n_micro_batches;
  double seconds;    /* from the first input taken to the last output given */
  double throughput; /* micro-batches a second */
  /* Micro-batches a second between the first output given and the last: without filling and
   * draining. 0 where there is but one. */
  double steady_throughput;
  int64_t latency_median_ns,
    latency_max_ns;              /* of a micro-batch, from its first to its last stage */
  double bubble_frac;            /* part of the stages' time in which they did not compute */
  double bubble_fill_frac;       /* what filling and draining alone would cost: (K-1)/(M+K-1) */
  psplit_i_stage_report *stages; /* malloc'd */
} psplit_i_report;

PSPLIT_MUST_USE psplit_code psplit_i_report_make(const psplit_i_timeline *timeline,
                                                 psplit_diag *diag, psplit_i_report *out);
void psplit_i_report_fini(psplit_i_report *report);

/* The report as JSON (docs/running.md). */
void psplit_i_report_json(const psplit_i_report *report, const psplit_i_pipe *pipe,
                          const char *transport, const char *onnxruntime, psplit_i_text *out);

/* The timeline in the trace event format of Chrome and Perfetto: a process for each stage, in it a
 * row for computing and one for waiting. */
void psplit_i_trace_json(const psplit_i_timeline *timeline, const psplit_i_pipe *pipe,
                         psplit_i_text *out);

#endif
