/* One model out of the stages of a split. */
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
  bool replace;                    /* files in place of `path` and its data file */
  const psplit_read_options *read; /* for the stage files; NULL: the defaults */
  /* The model that was split, if it is at hand: what it declares of tensors that cross is taken
   * from it, where stages have no place for that (boundary io). Whatever it holds, the stages
   * decide. */
  const psplit_model *model;
  uint64_t max_text_bytes;    /* of pipeline.json; 0: 64 MiB */
  const volatile int *cancel; /* see base.h; also for the stage files */
  /* Called with the path of the finished file before it is put in place (its data file is there
   * already); anything but OK removes it and becomes the result. May be NULL. */
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
  uint32_t n_copies;   /* nodes that stood in several stages and stand once now */
  uint32_t n_renamed;  /* values that have another name, since two stages used it */
  uint64_t bytes;      /* of the file */
  uint64_t data_bytes; /* of its data file; 0: there is none */
} psplit_merge_report;

/* Puts the stages of `directory` together again and writes one model to `path`: also where other
 * tools have quantised, optimised or rewritten them since, as long as each stage still takes and
 * gives what pipeline.json says, by the same names and types. Boundary nodes go, copies of nodes
 * and weights that stages share stand once, and names that two stages gave to different values are
 * made different. Nodes, weights and all that needs no other name keep their bytes. The file
 * appears complete or not at all; with a data file that comes first, and where the rest fails the
 * data file that was there comes back. `options` and out_report may be NULL. Errors: INVALID (a
 * stage lacks an input or output, or has another type there; names both), UNSUPPORTED (stages that
 * train; stages with different versions of operators or functions), LIMIT (over 2 GiB in one file),
 * IO, MALFORMED, NOMEM, CANCELLED. O(nodes + bytes). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_merge(const char *directory, const char *path,
                                                    const psplit_merge_options *options,
                                                    psplit_diag *diag,
                                                    psplit_merge_report *out_report);

#ifdef __cplusplus
}
#endif
#endif
