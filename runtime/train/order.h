/* Which rows a step takes: epochs, batches, micro-batches. Bare numbers, functions of the seed and
 * the place alone: all ranks, and a run that is resumed, take the same without asking each other.
 *
 * In epoch e the rows stand in the order of psplit_i_random_permuted (use SHUFFLE, major e). Batch
 * b is the rows at b * batch_rows and behind of that order. What is left at an epoch's end, fewer
 * than batch_rows, is dropped: every step has as many rows, and over epochs other rows are dropped.
 * With keep_last it is one more batch, which is for validation: each row counts there once. */
#ifndef PSPLIT_RUNTIME_TRAIN_ORDER_H
#define PSPLIT_RUNTIME_TRAIN_ORDER_H

#include "base.h"

typedef struct psplit_i_order {
  uint64_t n_rows;     /* of the data */
  uint64_t batch_rows; /* of a step, over all micro-batches */
  uint32_t n_micro_batches;
  bool keep_last; /* else dropped */
  bool in_order;  /* as in the file, in each epoch; else shuffled */
  uint64_t seed;
} psplit_i_order;

/* Errors: USAGE, with a line that says so: no micro-batch; more micro-batches than rows in a batch;
 * batch_rows not a multiple of n_micro_batches (the mean of the micro-batches' means would not be
 * the batch's); fewer rows than a batch and not keep_last. */
PSPLIT_MUST_USE psplit_code psplit_i_order_check(const psplit_i_order *order, psplit_diag *diag);

/* The rest takes an order that was checked. O(1). */

/* Batches of an epoch, >= 1. */
uint64_t psplit_i_order_n_batches(const psplit_i_order *order);

/* A place in the data: batch `batch` of epoch `epoch`. The place of step s (from 0) of a run from
 * the beginning; epochs stop at UINT32_MAX. */
typedef struct psplit_i_place {
  uint32_t epoch;
  uint64_t batch;
} psplit_i_place;
psplit_i_place psplit_i_order_place(const psplit_i_order *order, uint64_t step);

/* Rows begin .. end - 1 of the order of `epoch`. */
typedef struct psplit_i_slice {
  uint32_t epoch;
  uint64_t begin, end;
} psplit_i_slice;
/* Micro-batch m of a batch, contiguous in the order: of a whole batch each has batch_rows /
 * n_micro_batches rows; the last batch that keep_last keeps is cut as evenly as can be, and some
 * of its micro-batches may have no row. */
psplit_i_slice psplit_i_order_slice(const psplit_i_order *order, psplit_i_place place, uint32_t m);

/* Row of the data at `position` (below n_rows) of the order of `epoch`. */
uint64_t psplit_i_order_row(const psplit_i_order *order, uint32_t epoch, uint64_t position);

#endif
