/* Values of JSON problems: whole numbers exactly, numbers with a fraction as fixed-point ticks. */
#include "bisect.h"
#include "read_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

bool psplit_i_read_truth(psplit_i_json_item item) {
  bool truth = psplit_i_json_number_or(item, 0) != 0;
  if (!psplit_i_json_is_number(item)) psplit_i_json_flag(item, &truth);
  return truth;
}

/* A time in the file's unit -> ticks. */
void psplit_i_read_ticks(psplit_i_problem_reader *r, psplit_i_json_item item, int64_t *out) {
  double time = 0;
  if (psplit_i_json_is_integer(item) && r->scale == 1) {
    psplit_i_json_i64(item, 0, INT64_MAX, out);
    return;
  }
  psplit_i_json_real(item, 0, 0x1p61 / r->scale, &time);
  if (!psplit_i_json_given(item)) return;
  const double ticks = time * r->scale;
  *out = ticks < 0x1p61 ? llround(ticks) : INT64_C(1) << 61;
  if (ticks < 0x1p52) r->lost += fabs(ticks - (double)*out);
}

void psplit_i_read_exact(const psplit_i_problem_reader *r, const psplit_i_json_item *nodes) {
  const psplit_problem *p = r->problem;
  double total = 0;
  for (size_t v = 0; v < p->n_nodes && r->json->code == PSPLIT_OK; v++) {
    int64_t least = PSPLIT_TIME_FORBIDDEN;
    for (size_t c = v * p->n_classes; c < (v + 1) * p->n_classes; c++)
      if (least == PSPLIT_TIME_FORBIDDEN || (p->time_ns[c] >= 0 && p->time_ns[c] < least))
        least = p->time_ns[c];
    if (least > 0) total += (double)least;
  }
  if (r->lost <= total * 1e-6) return;
  psplit_i_json_wrong(nodes,
                      "times are lost beside others of the file, as one unit of a 64-bit "
                      "number counts all; what is never sent is \"uncuttable\", what never "
                      "runs there null");
}

uint64_t psplit_i_read_bytes(psplit_i_json_item item) {
  double bytes = 0;
  psplit_i_json_real(psplit_i_json_unless_null(item), 0, 0x1p53 - 1, &bytes);
  return (uint64_t)ceil(bytes);
}

int psplit_i_read_compare_pairs(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Index of ids: pairs (id, node), sorted. */
static void index_ids(psplit_i_problem_reader *r, const psplit_i_json_item *nodes) {
  int64_t *pairs = PSPLIT_I_JSON_NEW(r->json, int64_t, 2 * (size_t)r->n_nodes);
  if (!pairs) return;
  for (uint32_t v = 0; v < r->n_nodes; v++) {
    pairs[2 * v] = r->ids[v];
    pairs[2 * v + 1] = v;
  }
  qsort(pairs, r->n_nodes, 2 * sizeof *pairs, psplit_i_read_compare_pairs);
  for (uint32_t v = 1; v < r->n_nodes; v++)
    if (pairs[2 * v] == pairs[2 * v - 2])
      psplit_i_json_wrong(nodes, "two nodes have the id %" PRId64, pairs[2 * v]);
  r->id_index = pairs;
}

uint32_t psplit_i_read_node(const psplit_i_problem_reader *r, psplit_i_json_item item) {
  int64_t id = 0;
  psplit_i_json_i64(item, INT64_MIN, INT64_MAX, &id);
  if (r->json->code != PSPLIT_OK) return PSPLIT_NONE;
  const size_t k = psplit_i_first_at_least(r->id_index, 2, r->n_nodes, id);
  if (k < r->n_nodes && r->id_index[2 * k] == id) return (uint32_t)r->id_index[2 * k + 1];
  psplit_i_json_must_be(&item, "the id of a node");
  return PSPLIT_NONE;
}

double psplit_i_read_scale(double total) {
  enum { LEAST_TICKS = 1000000000 };
  double scale = 1e9;
  while (scale > 1e-12 && total * scale > 0x1p58) scale /= 10;
  while (total > 0 && total * scale < LEAST_TICKS) scale *= 10;
  return scale;
}

void psplit_i_read_ids(psplit_i_problem_reader *r, const psplit_i_json_item *nodes) {
  const size_t n = psplit_i_json_length(nodes, 1, PSPLIT_I_MOST_ELEMENTS);
  const char **names = PSPLIT_I_JSON_NEW(r->json, const char *, n);
  r->ids = PSPLIT_I_JSON_NEW(r->json, int64_t, n);
  r->problem->n_nodes = r->n_nodes = (uint32_t)n;
  for (size_t v = 0; v < n && r->json->code == PSPLIT_OK; v++) {
    const psplit_i_json_item node = psplit_i_json_element(nodes, v);
    r->ids[v] = (int64_t)v;
    psplit_i_json_i64(psplit_i_json_find(&node, "id"), INT64_MIN, INT64_MAX, &r->ids[v]);
    psplit_i_json_text(psplit_i_json_unless_null(psplit_i_json_find(&node, "name")), &names[v]);
  }
  r->problem->node_name = names;
  r->problem->file_id = r->ids;
  index_ids(r, nodes);
}
