/* A profile of ONNX Runtime: what EnableProfiling writes, an array of events in Chrome's trace
 * format. Of these, "<node>_kernel_time" of category Node count: one for each kernel of each run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost_table.h"
#include "json_quote.h"
#include "operator.h"

static const char SUFFIX[] = "_kernel_time";
static const double MOST_US = 1e15;

/* An event of a kernel that counts. */
typedef struct event {
  uint32_t kernel; /* row */
  double us, begin_us;
  double thread;
} event;

typedef PSPLIT_VEC(event) events_list;

typedef struct reader {
  psplit_cost_table *table;
  psplit_i_json_reader *json; /* what failed */
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

void psplit_i_cost_profile_mend(const char *text, size_t n, psplit_i_text *out_text) {
  static const char BEFORE[] = "\"name\" :\"", BEHIND[] = "\",\"args\" :";
  const size_t n_before = sizeof BEFORE - 1, n_behind = sizeof BEHIND - 1;
  for (size_t at = 0; at < n;) {
    const size_t before = find(text, at, n, BEFORE, n_before);
    const size_t name = before < n ? before + n_before : n;
    const size_t end = find(text, name, n, BEHIND, n_behind);
    psplit_i_text_add(out_text, text + at, (end < n ? name : n) - at);
    if (end < n) psplit_i_json_escape(out_text, text + name, end - name);
    at = end;
  }
}

static psplit_code add_kernel(reader *r, const char *name, size_t n, const char *number,
                              const char *op, uint32_t *out) {
  psplit_i_arena *arena = &r->table->arena;
  const size_t bytes = n + strlen(number) + 2;
  char *key = psplit_i_arena_alloc(arena, bytes);
  if (!key) return PSPLIT_NOMEM;
  snprintf(key, bytes, "%.*s\n%s", (int)n, name, number);
  const uint32_t known = r->kernels.n;
  *out = psplit_i_intern_add(&r->kernels, key);
  if (*out == PSPLIT_NONE) return PSPLIT_NOMEM;
  if (r->kernels.n == known) return PSPLIT_OK;
  psplit_i_cost_row *row = psplit_i_cost_table_add(r->table);
  if (!row) return PSPLIT_NOMEM;
  row->label = psplit_i_arena_strndup(arena, name, n);
  row->op = psplit_i_arena_strndup(arena, op, strlen(op));
  return row->label && row->op ? PSPLIT_OK : PSPLIT_NOMEM;
}

static const char *text_of(const psplit_i_json_item *object, const char *key) {
  return psplit_i_json_borrow(psplit_i_json_find(object, key));
}

/* "output_type_shape": [{"float": [1, 64]}, ...], one for each result that is a tensor. Runs may
 * differ: the last one counts. */
static void read_shapes(reader *r, uint32_t kernel, const psplit_i_json_item *args) {
  const psplit_i_json_item list = psplit_i_json_find(args, "output_type_shape");
  const size_t n = psplit_i_json_length(&list, 0, SIZE_MAX);
  size_t n_words = 0;
  psplit_i_json_item shape;
  for (size_t i = 0; i < n; i++) {
    const psplit_i_json_item result = psplit_i_json_element(&list, i);
    for (void *at = NULL; psplit_i_json_next(&result, &at, &shape);)
      n_words += 1 + psplit_i_json_length(&shape, 0, SIZE_MAX);
  }
  /* No operator has so many results. */
  if (r->json->code != PSPLIT_OK || n_words > UINT16_MAX) return;
  psplit_i_cost_row *row = &r->table->rows.items[kernel];
  if (n_words > row->shape_words) {
    row->shapes = PSPLIT_I_JSON_NEW(r->json, int64_t, n_words);
    row->shape_words = (uint32_t)n_words;
    row->n_shapes = 0;
    if (!row->shapes) return;
  }
  int64_t *out = row->shapes;
  row->n_shapes = (uint32_t)n;
  for (size_t i = 0; i < n; i++) {
    const psplit_i_json_item result = psplit_i_json_element(&list, i);
    uint32_t n_types = 0;
    for (void *at = NULL; psplit_i_json_next(&result, &at, &shape); n_types++) {
      const size_t rank = psplit_i_json_length(&shape, 0, SIZE_MAX);
      *out++ = (int64_t)rank;
      for (size_t axis = 0; axis < rank; axis++) {
        *out = 0;
        psplit_i_json_i64(psplit_i_json_element(&shape, axis), INT64_MIN, INT64_MAX, out++);
      }
    }
    if (n_types != 1) row->n_shapes = 0;
  }
}

static void read_event(reader *r, psplit_i_json_item item) {
  const char *name = text_of(&item, "name");
  if (strcmp(name, "model_run") == 0) r->n_runs++;
  if (strcmp(text_of(&item, "cat"), "Node") != 0) return;
  const size_t n = strlen(name), n_suffix = sizeof SUFFIX - 1;
  if (n <= n_suffix || n > INT32_MAX || strcmp(name + n - n_suffix, SUFFIX) != 0) return;
  const psplit_i_json_item args = psplit_i_json_find(&item, "args");
  const char *op = text_of(&args, "op_name");
  event e = {.thread = psplit_i_json_number_or(psplit_i_json_find(&item, "tid"), 0)};
  psplit_i_json_real(psplit_i_json_need(&item, "dur"), 0, MOST_US, &e.us);
  psplit_i_json_real(psplit_i_json_need(&item, "ts"), 0, MOST_US, &e.begin_us);
  if (r->json->code != PSPLIT_OK) return;
  /* A kernel is logged when it ends, so what it ran stands before it. */
  while (psplit_i_kernel_has(op, PSPLIT_I_OP_RUNS_OTHERS) && r->events.n) {
    const event *last = &r->events.items[r->events.n - 1];
    if (last->thread < e.thread || last->thread > e.thread || last->begin_us < e.begin_us) break;
    r->events.n--;
  }
  if (add_kernel(r, name, n - n_suffix, text_of(&args, "node_index"), op, &e.kernel) != PSPLIT_OK) {
    r->json->code = psplit_i_nomem(r->json->diag);
    return;
  }
  read_shapes(r, e.kernel, &args);
  if (!psplit_i_vec_push(&r->events, e)) r->json->code = psplit_i_nomem(r->json->diag);
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

void psplit_i_cost_profile_read(const psplit_i_json_item *events, psplit_cost_table *table) {
  reader r = {.table = table, .json = events->reader};
  const size_t n = psplit_i_json_length(events, 0, SIZE_MAX);
  psplit_i_intern_init(&r.kernels);
  for (size_t i = 0; i < n && r.json->code == PSPLIT_OK; i++)
    read_event(&r, psplit_i_json_element(events, i));
  if (r.json->code == PSPLIT_OK && !r.events.n)
    r.json->code = psplit_i_fail(r.json->diag, PSPLIT_INVALID,
                                 "the profile has no events of kernels: run the model before the "
                                 "session ends the profile");
  if (r.json->code == PSPLIT_OK) set_times(&r);
  psplit_i_vec_fini(&r.events);
  psplit_i_intern_fini(&r.kernels);
}
