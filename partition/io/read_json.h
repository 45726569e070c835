/* What both readers of JSON problems share. */
#ifndef PSPLIT_PARTITION_READ_JSON_H
#define PSPLIT_PARTITION_READ_JSON_H

#include <jansson.h>

#include <psplit/partition.h>
#include "base.h"

typedef struct psplit_i_problem_reader {
  psplit_problem *problem;
  psplit_i_arena *arena; /* owns the problem's arrays */
  psplit_diag *diag;
  const char *file;
  double scale;      /* ticks per unit of the file's times */
  int64_t *id_index; /* (id, node) pairs, sorted */
  int64_t *ids;
  uint32_t n_nodes;
} psplit_i_problem_reader;

/* INVALID: "file: what i: why". */
PSPLIT_MUST_USE psplit_code psplit_i_read_bad(psplit_i_problem_reader *r, const char *what,
                                              size_t i, const char *why);
/* The value in the type wanted; false where it is not one. Absent bytes are 0. */
bool psplit_i_read_truth(const json_t *value);
bool psplit_i_read_ticks(const psplit_i_problem_reader *r, const json_t *value, int64_t *out);
bool psplit_i_read_bytes(const json_t *value, uint64_t *out);
bool psplit_i_read_uint(const json_t *value, uint32_t *out);
double psplit_i_read_number(const json_t *value); /* 0 where it is none above */
/* Node with that id, NONE if there is none. */
uint32_t psplit_i_read_node(const psplit_i_problem_reader *r, const json_t *value);
/* Reads ids and names of the array of nodes. */
PSPLIT_MUST_USE psplit_code psplit_i_read_ids(psplit_i_problem_reader *r, const json_t *nodes);
/* The finest power of ten, at most 10^9 ticks per unit, that keeps sums far from overflow. */
double psplit_i_read_scale(double total);

/* Order of pairs of int64, for qsort. */
int psplit_i_read_compare_pairs(const void *a, const void *b);

/* The two formats. */
PSPLIT_MUST_USE psplit_code psplit_i_read_own(psplit_i_problem_reader *r, const json_t *root);
PSPLIT_MUST_USE psplit_code psplit_i_read_published(psplit_i_problem_reader *r, const json_t *root);

#endif
