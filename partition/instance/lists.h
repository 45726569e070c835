/* Lists of numbers in one array: list x is item[off[x] .. off[x + 1]). So an instance stores its
 * edges, the nets of a cluster and the groups of a cluster. */
#ifndef PSPLIT_PARTITION_LISTS_H
#define PSPLIT_PARTITION_LISTS_H

#include <stddef.h>
#include <stdint.h>

/* Sorts item[n] and drops what repeats; how many are left. O(n) where they ascend already. */
uint32_t psplit_i_sort_distinct(uint32_t *item, uint32_t n);

/* The successors of n_lists nodes: edges are from << 32 | to, in any order, and may repeat; each
 * list ascends and is distinct. out_off[n_lists + 1] is zero on entry, out_item[n_edges].
 * O(n_lists + n_edges) and the sorting of lists that do not ascend as given. */
void psplit_i_lists_of_edges(const uint64_t *edges, size_t n_edges, uint32_t n_lists,
                             uint32_t *out_off, uint32_t *out_item);

/* Turned round: the list of y holds every x in whose list y is, ascending. Items are below n;
 * out_off[n + 1] is zero on entry, out_item[off[n_lists]]. O(n_lists + n + items). */
void psplit_i_lists_transpose(uint32_t n_lists, const uint32_t *off, const uint32_t *item,
                              uint32_t n, uint32_t *out_off, uint32_t *out_item);

/* The same, with 2x + 1 where y is the first of the list of x, and 2x where it is not: clusters and
 * the nets that they send, or receive. */
void psplit_i_lists_transpose_marked(uint32_t n_lists, const uint32_t *off, const uint32_t *item,
                                     uint32_t n, uint32_t *out_off, uint32_t *out_item);

#endif
