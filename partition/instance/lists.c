/* Counting sorts: the space of a list is counted, then filled from its start, which moves along in
 * `off` and is put back in the end. */
#include "lists.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

enum { SHORT = 24 }; /* items that insertion sorts as fast */

static void sort(uint32_t *item, uint32_t n) {
  if (n > SHORT) {
    qsort(item, n, sizeof *item, psplit_i_compare_u32);
    return;
  }
  for (uint32_t i = 1; i < n; i++) {
    const uint32_t moving = item[i];
    uint32_t at = i;
    for (; at > 0 && item[at - 1] > moving; at--) item[at] = item[at - 1];
    item[at] = moving;
  }
}

uint32_t psplit_i_sort_distinct(uint32_t *item, uint32_t n) {
  bool ascends = true;
  for (uint32_t i = 1; i < n && ascends; i++) ascends = item[i] >= item[i - 1];
  if (!ascends) sort(item, n);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++)
    if (i == 0 || item[i] != item[i - 1]) item[kept++] = item[i];
  return kept;
}

/* From the number of items in list x, at off[x + 1], to where each list starts. */
static void sum_counts(uint32_t *off, uint32_t n) {
  for (uint32_t x = 0; x < n; x++) off[x + 1] += off[x];
}

/* From where each list ends, at off[x], back to where it starts. */
static void put_back(uint32_t *off, uint32_t n) {
  memmove(off + 1, off, n * sizeof *off);
  off[0] = 0;
}

void psplit_i_lists_of_edges(const uint64_t *edges, size_t n_edges, uint32_t n_lists,
                             uint32_t *out_off, uint32_t *out_item) {
  for (size_t k = 0; k < n_edges; k++) out_off[(edges[k] >> 32) + 1]++;
  sum_counts(out_off, n_lists);
  for (size_t k = 0; k < n_edges; k++) out_item[out_off[edges[k] >> 32]++] = (uint32_t)edges[k];
  put_back(out_off, n_lists);
  uint32_t end = 0; /* of what is kept */
  for (uint32_t x = 0, from = 0; x < n_lists; x++) {
    const uint32_t to = out_off[x + 1], n = psplit_i_sort_distinct(out_item + from, to - from);
    memmove(out_item + end, out_item + from, n * sizeof *out_item);
    end += n;
    out_off[x + 1] = end;
    from = to;
  }
}

static void turn(uint32_t n_lists, const uint32_t *off, const uint32_t *item, uint32_t n,
                 bool marked, uint32_t *out_off, uint32_t *out_item) {
  for (uint32_t k = 0; k < off[n_lists]; k++) out_off[item[k] + 1]++;
  sum_counts(out_off, n);
  for (uint32_t x = 0; x < n_lists; x++)
    for (uint32_t k = off[x]; k < off[x + 1]; k++)
      out_item[out_off[item[k]]++] = marked ? 2 * x + (k == off[x]) : x;
  put_back(out_off, n);
}

void psplit_i_lists_transpose(uint32_t n_lists, const uint32_t *off, const uint32_t *item,
                              uint32_t n, uint32_t *out_off, uint32_t *out_item) {
  turn(n_lists, off, item, n, false, out_off, out_item);
}

void psplit_i_lists_transpose_marked(uint32_t n_lists, const uint32_t *off, const uint32_t *item,
                                     uint32_t n, uint32_t *out_off, uint32_t *out_item) {
  turn(n_lists, off, item, n, true, out_off, out_item);
}
