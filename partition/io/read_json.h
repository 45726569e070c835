/* Shared by the readers of JSON problems. */
#ifndef PSPLIT_PARTITION_READ_JSON_H
#define PSPLIT_PARTITION_READ_JSON_H

#include <psplit/partition.h>
#include "base.h"

typedef struct psplit_i_problem_reader {
  psplit_problem *problem;
  psplit_i_json_reader *json; /* its arena owns the problem's arrays */
  psplit_link *class_link;    /* of each link class */
  bool per_pair;              /* latency is that of messages, not of tensors */
  double scale;               /* ticks per unit of the file's times */
  double lost;                /* ticks by which times were rounded */
  int64_t *id_index;          /* (id, node) pairs, sorted */
  int64_t *ids;
  uint32_t n_nodes;
} psplit_i_problem_reader;

/* Arrays hold fewer elements than this. */
enum { PSPLIT_I_MOST_ELEMENTS = PSPLIT_NONE / 4 };

/* Values in the type wanted; what is missing is false or 0, and leaves *out alone. A truth may be a
 * number; of a number of bytes, null is none and a fraction one more. */
bool psplit_i_read_truth(psplit_i_json_item item);
void psplit_i_read_ticks(psplit_i_problem_reader *r, psplit_i_json_item item, int64_t *out);
uint64_t psplit_i_read_bytes(psplit_i_json_item item);
/* Index of the node with that id; NONE where there is none, which is a failure. */
uint32_t psplit_i_read_node(const psplit_i_problem_reader *r, psplit_i_json_item item);
/* Reads ids and names of the array of nodes. */
void psplit_i_read_ids(psplit_i_problem_reader *r, const psplit_i_json_item *nodes);

/* A power of ten of ticks per unit that keeps sums, of `total` units at most, far from overflow:
 * 10^9, or more where that would round the total itself; otherwise the most that is allowed. */
double psplit_i_read_scale(double total);
/* Fails where the times of nodes, which have just been read, were rounded by more than a millionth:
 * other times are so large that no unit serves both, and another problem would be solved. */
void psplit_i_read_exact(const psplit_i_problem_reader *r, const psplit_i_json_item *nodes);

/* Order of pairs of int64, for qsort. */
int psplit_i_read_compare_pairs(const void *a, const void *b);

/* The formats. */
void psplit_i_read_own(psplit_i_problem_reader *r, const psplit_i_json_item *root);
void psplit_i_read_published(psplit_i_problem_reader *r, const psplit_i_json_item *root);
void psplit_i_read_piper(psplit_i_problem_reader *r, const psplit_i_json_item *root);

#endif
