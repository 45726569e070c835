/* Report of a run: measurements and predictions. */
#ifndef PSPLIT_RUNTIME_REPORT_H
#define PSPLIT_RUNTIME_REPORT_H

#include "runtime.h"

/* Fills the report of a run with `options`, whose lists are malloc'd. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_report_make(const psplit_i_timeline *timeline,
                                                 const psplit_i_run_options *options,
                                                 psplit_diag *diag, psplit_run_report *out);
/* Fills in what the plan in `pipe` says of it. */
void psplit_i_report_add_drift(const psplit_i_pipe *pipe, psplit_run_report *report);
void psplit_i_report_fini(psplit_run_report *report);

/* The report as JSON (docs/running.md). */
void psplit_i_report_json(const psplit_run_report *report, const psplit_i_pipe *pipe,
                          const char *transport, const char *onnxruntime, psplit_i_text *out);

/* The timeline in the trace event format of Chrome and Perfetto: a process for each stage, in it a
 * row for computing and one for waiting. */
void psplit_i_trace_json(const psplit_i_timeline *timeline, const psplit_i_pipe *pipe,
                         uint32_t first_micro_batch, psplit_i_text *out);

#endif
