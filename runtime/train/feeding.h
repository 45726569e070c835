/* Inputs of a device: rows of data for each micro-batch, and constant inputs. */
#ifndef PSPLIT_RUNTIME_TRAIN_FEEDING_H
#define PSPLIT_RUNTIME_TRAIN_FEEDING_H

#include <psplit/train.h>

#include "drawing.h"
#include "ort.h"
#include "pipeline.h"
#include "rows.h"

/* Data that is trained on, and data that is only looked at. */
typedef enum psplit_i_feed_set {
  PSPLIT_I_SET_TRAIN,
  PSPLIT_I_SET_EVAL,
  PSPLIT_I_N_SETS
} psplit_i_feed_set;

typedef struct psplit_i_fed_input {
  psplit_i_rows rows[PSPLIT_I_N_SETS];
  psplit_i_tensor *fixed; /* in place of rows */
} psplit_i_fed_input;

typedef struct psplit_i_feeding {
  const psplit_i_ort *ort;
  const psplit_i_manifest *manifest;
  const psplit_train_options *options;
  psplit_i_fed_input *inputs; /* [manifest->n_inputs] */
  psplit_i_order order[PSPLIT_I_N_SETS];
  uint32_t first_fed[PSPLIT_I_N_SETS]; /* an input that has rows here, where order has them */
  psplit_i_symbols symbols;
  double *sizes[PSPLIT_I_N_SETS]; /* [symbols.n] of a micro-batch, -1: not known */
  uint32_t labels;                /* the input that has classes, PSPLIT_NONE: none is known */
  int64_t n_classes;              /* below which they are */
  int64_t ignored;                /* that counts for none */
  bool ignores;
} psplit_i_feeding;

/* Whether options name inputs that the model has. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code psplit_i_feeding_check(const psplit_i_manifest *manifest,
                                                   const psplit_train_options *options,
                                                   psplit_diag *diag);

/* Opens the data of the inputs that are `needed`, [manifest->n_inputs]. order[].n_rows is 0 where
 * none has rows here; psplit_i_feeding_settle makes the orders ready. Errors: USAGE (nothing gives
 * an input), those of psplit_i_rows_open and psplit_i_array_read. */
PSPLIT_MUST_USE psplit_code psplit_i_feeding_open(const psplit_i_ort *ort,
                                                  const psplit_i_manifest *manifest,
                                                  const psplit_train_options *options,
                                                  const bool *needed, psplit_diag *diag,
                                                  psplit_i_feeding *out);
/* The file that gives an input by the options, for messages; its name where that cannot be told. */
const char *psplit_i_feeding_file(const psplit_train_options *options, psplit_i_feed_set set,
                                  const char *input);
void psplit_i_feeding_close(psplit_i_feeding *feeding); /* a zeroed one is fine */

/* With the numbers of rows that all devices together know; so are the sizes, which the caller has
 * put together. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code psplit_i_feeding_settle(psplit_i_feeding *feeding,
                                                    const psplit_train_options *options,
                                                    const uint64_t n_rows[PSPLIT_I_N_SETS],
                                                    psplit_diag *diag);

/* Input `input` of micro-batch m of step `step`; of PSPLIT_I_SET_EVAL steps are micro-batches, and
 * m is 0. A mask is drawn. The caller releases it. From one thread at a time. Errors: IO, INVALID
 * (a label that is no class), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_feeding_get(const psplit_i_feeding *feeding,
                                                 psplit_i_feed_set set, uint64_t step, uint32_t m,
                                                 uint32_t input, psplit_diag *diag,
                                                 psplit_i_tensor **out);

/* Micro-batches of an evaluation, and the samples in one of them. */
uint64_t psplit_i_feeding_n_eval(const psplit_i_feeding *feeding);
uint64_t psplit_i_feeding_eval_rows(const psplit_i_feeding *feeding, uint64_t micro_batch);

#endif
