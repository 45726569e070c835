/* Merging the stages of a split into one model. */
#ifndef PSPLIT_MERGE_H
#define PSPLIT_MERGE_H

#include <psplit/activity.h>
#include <psplit/base.h>
#include <psplit/emit.h>
#include <psplit/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psplit_merge_options {
  size_t struct_size; /* set by psplit_merge_options_init() */
  /* AUTO: inline up to 1 GiB, external above; INLINE; EXTERNAL: in `path`.data, beside it. */
  psplit_weights weights;
  bool replace;                    /* replace existing files at `path` and `path`.data */
  const psplit_read_options *read; /* for the stage files; NULL: the defaults */
  /* The original model, if available: declared types of transferred tensors are taken from it where
   * stages cannot express them (boundary io). It has no other influence. */
  const psplit_model *model;
  uint64_t max_text_bytes;    /* of pipeline.json; 0: 64 MiB */
  const volatile int *cancel; /* see base.h; also for the stage files */
  /* Called with the path of the finished file before it is renamed into place (its data file is in
   * place already); any result but OK removes it and is returned. May be NULL. */
  psplit_code (*accept)(void *user, const char *path, psplit_diag *diag);
  void *accept_user;
  psplit_activity *activity; /* see activity.h: bytes written */
} psplit_merge_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_merge_options_init(psplit_merge_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

typedef struct psplit_merge_report {
  uint32_t n_stages, n_transfers;
  uint32_t n_nodes;
  uint32_t n_copies;   /* nodes that were in several stages */
  uint32_t n_renamed;  /* values that were renamed, since two stages used the name */
  uint64_t bytes;      /* of the file */
  uint64_t data_bytes; /* of its data file; 0: none */
} psplit_merge_report;

/* Merges the stages of `directory` into one model at `path`, also if other tools have quantised,
 * optimised or rewritten them, as long as each stage still has the inputs and outputs of
 * pipeline.json, by name and type. Boundary nodes are removed, copies of nodes and shared weights
 * are merged, and names that two stages use for different values are made unique. Nodes, weights
 * and everything that is not renamed keep their bytes. The file appears complete or not at all; a
 * data file is put in place first, and the previous one is restored if the rest fails. `options`
 * and out_report may be NULL. Errors: INVALID (a stage lacks an input or output, or has another
 * type there; names both), UNSUPPORTED (stages that train; stages with different versions of
 * operators or functions), LIMIT (over 2 GiB in one file), IO, MALFORMED, NOMEM, CANCELLED. O(nodes
 * + bytes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_merge(const char *directory, const char *path,
                                                    const psplit_merge_options *options,
                                                    psplit_diag *diag,
                                                    psplit_merge_report *out_report);

#ifdef __cplusplus
}
#endif
#endif
