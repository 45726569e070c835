/* Lists of numbers in one array: list x is item[off[x] .. off[x + 1]). Instances store edges, the
 * nets of clusters and the groups of clusters in this form. */
#ifndef PSPLIT_PARTITION_LISTS_H
#define PSPLIT_PARTITION_LISTS_H

#include <stddef.h>
#include <stdint.h>

/* Sorts item[n] and removes duplicates. Returns how many are left. O(n) if they are sorted. */
uint32_t psplit_i_sort_distinct(uint32_t *item, uint32_t n);

/* The successors of n_lists nodes. Edges are from << 32 | to, in any order, and may repeat; each
 * list is ascending and distinct. out_off[n_lists + 1] is zero on entry; out_item[n_edges].
 * O(n_lists + n_edges), and the time to sort lists whose edges are not ascending. */
void psplit_i_lists_of_edges(const uint64_t *edges, size_t n_edges, uint32_t n_lists,
                             uint32_t *out_off, uint32_t *out_item);

/* Transposes lists: the list of y contains every x whose list contains y, in ascending order. Items
 * are below n. out_off[n + 1] is zero on entry; out_item[off[n_lists]]. O(n_lists + n + items). */
void psplit_i_lists_transpose(uint32_t n_lists, const uint32_t *off, const uint32_t *item,
                              uint32_t n, uint32_t *out_off, uint32_t *out_item);

/* Likewise, with 2x + 1 if y is the first item of list x and 2x otherwise: the nets that a cluster
 * sends, and those that it receives. */
void psplit_i_lists_transpose_marked(uint32_t n_lists, const uint32_t *off, const uint32_t *item,
                                     uint32_t n, uint32_t *out_off, uint32_t *out_item);

#endif
