#include "trace_json.h"

#include "json_put.h"

/* An event up to its arguments, on one line. */
static void open_event(psplit_i_json *json, const char *name, const char *phase, uint32_t process,
                       psplit_i_trace_row row) {
  psplit_i_json_open(json, '{');
  json->compact = true;
  psplit_i_json_put_string(json, "name", name);
  psplit_i_json_put_string(json, "ph", phase);
  psplit_i_json_put_uint(json, "pid", process);
  psplit_i_json_put_uint(json, "tid", row);
}

static void close_event(psplit_i_json *json) {
  psplit_i_json_close(json, '}');
  psplit_i_json_close(json, '}');
  json->compact = false;
}

static void put_name(psplit_i_json *json, uint32_t process, const char *what,
                     psplit_i_trace_row row, const char *name) {
  open_event(json, what, "M", process, row);
  psplit_i_json_put_open(json, "args", '{');
  psplit_i_json_put_string(json, "name", name);
  close_event(json);
}

/* The format has microseconds. */
static void put_time(psplit_i_json *json, const char *key, int64_t ns) {
  psplit_i_json_put_double(json, key, 1e-3 * (double)ns);
}

void psplit_i_trace_begin(const psplit_i_trace *trace) {
  psplit_i_json_open(trace->json, '{');
  psplit_i_json_put_string(trace->json, "displayTimeUnit", "ms");
  psplit_i_json_put_open(trace->json, "traceEvents", '[');
}

void psplit_i_trace_process(const psplit_i_trace *trace, uint32_t process, const char *name) {
  put_name(trace->json, process, "process_name", PSPLIT_I_TRACE_COMPUTE, name);
  put_name(trace->json, process, "thread_name", PSPLIT_I_TRACE_COMPUTE, "compute");
  put_name(trace->json, process, "thread_name", PSPLIT_I_TRACE_WAIT, "wait");
}

void psplit_i_trace_span(const psplit_i_trace *trace, const char *name, uint32_t process,
                         psplit_i_trace_row row, uint64_t number, int64_t begin_ns,
                         int64_t end_ns) {
  if (end_ns <= begin_ns) return;
  open_event(trace->json, name, "X", process, row);
  put_time(trace->json, "ts", begin_ns - trace->zero_ns);
  put_time(trace->json, "dur", end_ns - begin_ns);
  psplit_i_json_put_open(trace->json, "args", '{');
  psplit_i_json_put_uint(trace->json, trace->counted, number);
  close_event(trace->json);
}

void psplit_i_trace_end(const psplit_i_trace *trace) {
  psplit_i_json_close(trace->json, ']');
  psplit_i_json_close(trace->json, '}');
  psplit_i_text_puts(trace->json->out, "\n");
}
