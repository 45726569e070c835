/* Proving that a directory of stages is equivalent to the original model. */
#ifndef PSPLIT_VERIFY_H
#define PSPLIT_VERIFY_H

#include <psplit/activity.h>
#include <psplit/base.h>
#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_verify_options {
  size_t struct_size;              /* set by psplit_verify_options_init() */
  const psplit_read_options *read; /* for the stage files; NULL: the defaults */
  uint32_t n_threads;              /* for comparing weights; 0: OpenMP's default */
  uint64_t max_text_bytes;         /* of pipeline.json; 0: 64 MiB */
  const volatile int *cancel;      /* see base.h; also for the stage files */
  psplit_activity *activity; /* see activity.h: bytes of weights compared, of an upper bound */
} psplit_verify_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_verify_options_init(psplit_verify_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* What a proof covered. */
typedef struct psplit_verify_report {
  uint32_t n_stages, n_nodes, n_duplicates, n_transfers;
  uint32_t n_assumed;    /* Ifs inlined under an assumption on the inputs */
  uint64_t weight_bytes; /* compared byte for byte, in each stage that holds them */
  bool trains;           /* the stages train the model: proved as well */
  uint32_t n_trained;    /* trained weights */
} psplit_verify_report;

/* Merges the stages of `directory` according to its pipeline.json, removes boundary nodes and
 * declared duplicates, and compares with `model`: every node with all its bytes, every edge,
 * weights byte for byte, inputs, outputs, functions, metadata, unknown fields, the order of stages.
 * With inlined Ifs, the comparison is with `model` with these replaced, which is proved as well.
 * Training stages are proved to train the model, by the rules of psplit/gradient.h
 * (docs/training.md). Needs no runtime. Shares only the reader and those rules with the splitter.
 * `options` and out_report may be NULL. Errors: MISMATCH with the first difference by name; IO,
 * MALFORMED, ... if a file cannot be read; CANCELLED. O(nodes + bytes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_verify(const char *directory,
                                                     const psplit_model *model,
                                                     const psplit_verify_options *options,
                                                     psplit_diag *diag,
                                                     psplit_verify_report *out_report);

/* Receives each stage that differs from the original split, with the first difference. */
typedef struct psplit_changed_stage {
  void (*tell)(void *user, uint32_t stage, const char *difference);
  void *user;
} psplit_changed_stage;

/* The same stage by stage, for a directory in which other tools have changed some stages:
 * unreported stages contain the model's own nodes, weights and descriptions. The whole is proved
 * only if no stage is reported. Not for training stages (UNSUPPORTED). Errors: as psplit_verify,
 * MISMATCH if it does not concern a single stage. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_verify_stages(const char *directory,
                                                            const psplit_model *model,
                                                            const psplit_verify_options *options,
                                                            const psplit_changed_stage *changed,
                                                            psplit_diag *diag);

/* Proves that the file `path` is equivalent to `model`: the same nodes, edges, weights, inputs,
 * outputs and descriptions, in any order and with any storage of weights. If the split in
 * `directory` has inlined Ifs, the file must be the model with these replaced; NULL: no split.
 * Errors: as psplit_verify. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_verify_file(const char *path, const char *directory,
                                                          const psplit_model *model,
                                                          const psplit_verify_options *options,
                                                          psplit_diag *diag,
                                                          psplit_verify_report *out_report);

/* What a comparison of two models covered. */
typedef struct psplit_new_values_report {
  uint32_t n_initializers, n_changed;
  uint64_t compared_bytes; /* of tensors' data, until a difference */
} psplit_new_values_report;

/* Receives the name of each initializer whose data differs, or is stored elsewhere. */
typedef struct psplit_changed_value {
  void (*tell)(void *user, const char *name);
  void *user;
} psplit_changed_value;

/* Proves that `after` equals `before` except for the data of initializers of the main graph: the
 * same nodes, types, names, attributes with their data, functions, metadata and unknown fields in
 * the same order, and initializers of the same names, types and shapes. A Constant node of `before`
 * corresponds to an initializer of the same name in `after`. Initializers with other data are
 * reported individually, in the order of the file, also before a failure. `changed`, `cancel` and
 * out_report may be NULL. Errors: MISMATCH with the first other difference; IO; CANCELLED.
 * O(bytes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_verify_new_values(
  const psplit_model *before, const psplit_model *after, const psplit_changed_value *changed,
  const volatile int *cancel, psplit_diag *diag, psplit_new_values_report *out_report);

#ifdef __cplusplus
}
#endif
#endif
