/* Values of JSON problems: whole numbers exactly, numbers with a fraction as fixed-point ticks. */
#include "read_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

psplit_code psplit_i_read_bad(psplit_i_problem_reader *r, const char *what, size_t i,
                              const char *why) {
  return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: %s %zu: %s", r->file, what, i, why);
}

bool psplit_i_read_truth(const json_t *value) {
  return json_is_true(value) || (json_is_number(value) && json_number_value(value) != 0);
}

/* A time in the file's unit -> ticks. */
bool psplit_i_read_ticks(const psplit_i_problem_reader *r, const json_t *value, int64_t *out) {
  if (json_is_integer(value) && r->scale == 1) {
    *out = (int64_t)json_integer_value(value);
    return *out >= 0;
  }
  if (!json_is_number(value)) return false;
  const double scaled = json_number_value(value) * r->scale;
  if (!(scaled >= 0 && scaled < 0x1p61)) return false;
  *out = (int64_t)llround(scaled);
  return true;
}

bool psplit_i_read_bytes(const json_t *value, uint64_t *out) {
  *out = 0;
  if (!value || json_is_null(value)) return true;
  const double number = json_number_value(value);
  if (!json_is_number(value) || !(number >= 0 && number < 0x1p53)) return false;
  *out = json_is_integer(value) ? (uint64_t)json_integer_value(value) : (uint64_t)ceil(number);
  return true;
}

bool psplit_i_read_uint(const json_t *value, uint32_t *out) {
  if (!json_is_integer(value)) return false;
  const json_int_t number = json_integer_value(value);
  if (number < 0 || number >= PSPLIT_NONE) return false;
  *out = (uint32_t)number;
  return true;
}

int psplit_i_read_compare_pairs(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Index of ids: pairs (id, node), sorted. */
static psplit_code index_ids(psplit_i_problem_reader *r) {
  int64_t *pairs = psplit_i_arena_array(r->arena, r->n_nodes, 2 * sizeof *pairs);
  if (!pairs) return psplit_i_nomem(r->diag);
  for (uint32_t v = 0; v < r->n_nodes; v++) {
    pairs[2 * v] = r->ids[v];
    pairs[2 * v + 1] = v;
  }
  qsort(pairs, r->n_nodes, 2 * sizeof *pairs, psplit_i_read_compare_pairs);
  for (uint32_t v = 1; v < r->n_nodes; v++)
    if (pairs[2 * v] == pairs[2 * v - 2])
      return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: two nodes have the id %" PRId64, r->file,
                           pairs[2 * v]);
  r->id_index = pairs;
  return PSPLIT_OK;
}

uint32_t psplit_i_read_node(const psplit_i_problem_reader *r, const json_t *value) {
  if (!json_is_integer(value)) return PSPLIT_NONE;
  const int64_t id = (int64_t)json_integer_value(value);
  const int64_t *pairs = r->id_index;
  uint32_t low = 0, high = r->n_nodes;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (pairs[2 * (size_t)middle] < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < r->n_nodes && pairs[2 * (size_t)low] == id ? (uint32_t)pairs[2 * (size_t)low + 1]
                                                          : PSPLIT_NONE;
}

double psplit_i_read_scale(double total) {
  double scale = 1e9;
  while (scale > 1e-12 && total * scale > 0x1p58) scale /= 10;
  return scale;
}

double psplit_i_read_number(const json_t *value) {
  const double number = json_number_value(value);
  return number > 0 ? number : 0;
}

psplit_code psplit_i_read_ids(psplit_i_problem_reader *r, const json_t *nodes) {
  psplit_problem *p = r->problem;
  const size_t n = json_array_size(nodes);
  if (!json_is_array(nodes) || n == 0)
    return psplit_i_fail(r->diag, PSPLIT_INVALID, "%s: \"nodes\" must be a non-empty array",
                         r->file);
  if (n >= PSPLIT_NONE / 4)
    return psplit_i_fail(r->diag, PSPLIT_LIMIT, "%s: %zu nodes are too many", r->file, n);
  p->n_nodes = r->n_nodes = (uint32_t)n;
  r->ids = psplit_i_arena_array(r->arena, n, sizeof *r->ids);
  const char **names = PSPLIT_NEW(r->arena, const char *, n);
  if (!r->ids || !names) return psplit_i_nomem(r->diag);
  for (size_t v = 0; v < n; v++) {
    const json_t *node = json_array_get(nodes, v), *id = json_object_get(node, "id");
    if (!json_is_object(node)) return psplit_i_read_bad(r, "node", v, "not an object");
    if (id && !json_is_integer(id))
      return psplit_i_read_bad(r, "node", v, "\"id\" must be an integer");
    r->ids[v] = id ? (int64_t)json_integer_value(id) : (int64_t)v;
    const json_t *name = json_object_get(node, "name");
    if (!json_is_string(name)) continue;
    names[v] = psplit_i_arena_strndup(r->arena, json_string_value(name), json_string_length(name));
    if (!names[v]) return psplit_i_nomem(r->diag);
  }
  p->node_name = names;
  p->file_id = r->ids;
  return index_ids(r);
}
