/* Writes a run as a trace for Perfetto and chrome://tracing ("Trace Event Format"): a process for
 * each stage or device, with rows for computing and waiting. */
#ifndef PSPLIT_RUNTIME_TRACE_JSON_H
#define PSPLIT_RUNTIME_TRACE_JSON_H

#include "base.h"

typedef struct psplit_i_trace {
  psplit_i_json *json;
  const char *counted; /* what the numbers of spans are, for viewers */
  int64_t zero_ns;     /* when it begins */
} psplit_i_trace;

typedef enum psplit_i_trace_row { PSPLIT_I_TRACE_COMPUTE, PSPLIT_I_TRACE_WAIT } psplit_i_trace_row;

void psplit_i_trace_begin(const psplit_i_trace *trace);
/* Names a process and its rows. */
void psplit_i_trace_process(const psplit_i_trace *trace, uint32_t process, const char *name);
/* Left out where it takes no time. */
void psplit_i_trace_span(const psplit_i_trace *trace, const char *name, uint32_t process,
                         psplit_i_trace_row row, uint64_t number, int64_t begin_ns, int64_t end_ns);
void psplit_i_trace_end(const psplit_i_trace *trace);

#endif
