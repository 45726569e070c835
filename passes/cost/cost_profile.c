/* A profile of ONNX Runtime: what EnableProfiling writes, an array of events in Chrome's trace
 * format. Of these, "<node>_kernel_time" of category Node count: one for each kernel of each run.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_table.h"
#include "operator.h"

static const char SUFFIX[] = "_kernel_time";
static const double MOST_US = 1e15;

/* An event of a kernel that counts. */
typedef struct event {
  uint32_t kernel; /* row */
  double us, begin_us;
  json_int_t thread;
} event;

typedef PSPLIT_VEC(event) events_list;

typedef struct reader {
  psplit_cost_table *table;
  psplit_diag *diag;
  events_list events;
  psplit_i_intern kernels; /* name and number of a node: the row */
  uint32_t n_runs;
} reader;

/* Where `what` begins in text[at..n), or n. */
static size_t find(const char *text, size_t at, size_t n, const char *what, size_t n_what) {
  while (at + n_what <= n) {
    const char *first = memchr(text + at, what[0], n - n_what + 1 - at);
    if (!first) return n;
    at = (size_t)(first - text);
    if (memcmp(first, what, n_what) == 0) return at;
    at++;
  }
  return n;
}

static void put_escaped(const char *text, size_t n, psplit_i_text *out) {
  for (size_t i = 0; i < n;) {
    const unsigned char c = (unsigned char)text[i];
    const size_t length = psplit_i_utf8_length((const unsigned char *)text + i, n - i);
    if (c < 0x20 || c == '"' || c == '\\' || !length)
      psplit_i_text_addf(out, "\\u%04x", length ? c : 0xfffdu);
    else
      psplit_i_text_add(out, text + i, length);
    i += length ? length : 1;
  }
}

void psplit_i_cost_profile_mend(const char *text, size_t n, psplit_i_text *out_text) {
  static const char BEFORE[] = "\"name\" :\"", BEHIND[] = "\",\"args\" :";
  const size_t n_before = sizeof BEFORE - 1, n_behind = sizeof BEHIND - 1;
  for (size_t at = 0; at < n;) {
    const size_t before = find(text, at, n, BEFORE, n_before);
    const size_t name = before < n ? before + n_before : n;
    const size_t end = find(text, name, n, BEHIND, n_behind);
    psplit_i_text_add(out_text, text + at, (end < n ? name : n) - at);
    if (end < n) put_escaped(text + name, end - name, out_text);
    at = end;
  }
}

static psplit_code bad(const reader *r, size_t i, const char *why) {
  return psplit_i_fail(r->diag, PSPLIT_INVALID, "event %zu: %s", i, why);
}

static psplit_code add_kernel(reader *r, const char *name, size_t n, const char *number,
                              const char *op, uint32_t *out) {
  psplit_i_arena *arena = &r->table->arena;
  const size_t bytes = n + strlen(number) + 2;
  char *key = psplit_i_arena_alloc(arena, bytes);
  if (!key) return psplit_i_nomem(r->diag);
  snprintf(key, bytes, "%.*s\n%s", (int)n, name, number);
  const uint32_t known = r->kernels.n;
  *out = psplit_i_intern_add(&r->kernels, key);
  if (*out == PSPLIT_NONE) return psplit_i_nomem(r->diag);
  if (r->kernels.n == known) return PSPLIT_OK;
  psplit_i_cost_row *row = psplit_i_cost_table_add(r->table);
  if (!row) return psplit_i_nomem(r->diag);
  row->label = psplit_i_arena_strndup(arena, name, n);
  row->op = psplit_i_arena_strndup(arena, op, strlen(op));
  return row->label && row->op ? PSPLIT_OK : psplit_i_nomem(r->diag);
}

static const char *text_or_empty(const json_t *value) {
  return json_is_string(value) ? json_string_value(value) : "";
}

static psplit_code read_event(reader *r, const json_t *item, size_t i) {
  if (!json_is_object(item)) return bad(r, i, "must be an object");
  const char *name = text_or_empty(json_object_get(item, "name"));
  if (strcmp(name, "model_run") == 0) r->n_runs++;
  if (strcmp(text_or_empty(json_object_get(item, "cat")), "Node") != 0) return PSPLIT_OK;
  const size_t n = strlen(name), n_suffix = sizeof SUFFIX - 1;
  if (n <= n_suffix || n > INT32_MAX || strcmp(name + n - n_suffix, SUFFIX) != 0) return PSPLIT_OK;
  const json_t *dur = json_object_get(item, "dur"), *ts = json_object_get(item, "ts");
  const json_t *args = json_object_get(item, "args");
  event e = {.us = json_is_number(dur) ? json_number_value(dur) : NAN,
             .begin_us = json_is_number(ts) ? json_number_value(ts) : NAN,
             .thread = json_integer_value(json_object_get(item, "tid"))};
  if (!(e.us >= 0 && e.us <= MOST_US))
    return bad(r, i, "\"dur\" must be a number of microseconds from 0 to 1e15");
  if (!(e.begin_us >= 0 && e.begin_us <= MOST_US))
    return bad(r, i, "\"ts\" must be a number of microseconds from 0 to 1e15");
  const char *op = text_or_empty(json_object_get(args, "op_name"));
  /* A kernel is logged when it ends, so what it ran stands before it. */
  while (psplit_i_kernel_has(op, PSPLIT_I_OP_RUNS_OTHERS) && r->events.n) {
    const event *last = &r->events.items[r->events.n - 1];
    if (last->thread != e.thread || last->begin_us < e.begin_us) break;
    r->events.n--;
  }
  const psplit_code code = add_kernel(
    r, name, n - n_suffix, text_or_empty(json_object_get(args, "node_index")), op, &e.kernel);
  if (code != PSPLIT_OK) return code;
  return psplit_i_vec_push(&r->events, e) ? PSPLIT_OK : psplit_i_nomem(r->diag);
}

static int by_kernel_and_time(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
  return (x->us > y->us) - (x->us < y->us);
}

/* The least of a kernel's times: what disturbs it only makes it slower, and the first run is cold.
 * ONNX Runtime cuts times to whole microseconds, so half of one is missing on average. A kernel
 * that ran several times in a run counts as often. Kernels of bodies have no events left and go. */
static void set_times(reader *r) {
  events_list *events = &r->events;
  psplit_i_cost_row *rows = r->table->rows.items;
  if (events->n) qsort(events->items, events->n, sizeof *events->items, by_kernel_and_time);
  for (size_t first = 0, end; first < events->n; first = end) {
    const uint32_t kernel = events->items[first].kernel;
    for (end = first; end < events->n && events->items[end].kernel == kernel;) end++;
    const double us = events->items[first].us + 0.5;
    const double times = r->n_runs ? round((double)(end - first) / r->n_runs) : 1;
    rows[kernel].ns = 1e3 * us * (times > 1 ? times : 1);
  }
  size_t kept = 0;
  for (size_t i = 0; i < r->table->rows.n; i++)
    if (rows[i].ns >= 0) rows[kept++] = rows[i];
  r->table->rows.n = kept;
}

psplit_code psplit_i_cost_profile_read(const json_t *events, psplit_cost_table *table,
                                       psplit_diag *diag) {
  reader r = {.table = table, .diag = diag};
  psplit_code code = PSPLIT_OK;
  psplit_i_intern_init(&r.kernels);
  for (size_t i = 0; i < json_array_size(events); i++)
    PSPLIT_TRY(read_event(&r, json_array_get(events, i), i));
  if (!r.events.n)
    PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INVALID,
                             "the profile has no events of kernels: run the model before the "
                             "session ends the profile"));
  set_times(&r);
out:
  psplit_i_vec_fini(&r.events);
  psplit_i_intern_fini(&r.kernels);
  return code;
}
