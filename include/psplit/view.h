/* Rendering snapshots for people and programs: docs/inspect.md. */
#ifndef PSPLIT_VIEW_H
#define PSPLIT_VIEW_H

#include <psplit/base.h>
#include <psplit/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum psplit_view_format {
  PSPLIT_VIEW_TEXT, /* a line for each operator, supernode or stage; suitable for grep */
  PSPLIT_VIEW_JSON,
  PSPLIT_VIEW_DOT,  /* for Graphviz */
  PSPLIT_VIEW_HTML, /* one self-contained page with all levels */
  PSPLIT_VIEW_SVG   /* stages as columns of supernodes, with height as time; needs COSTS */
} psplit_view_format;

typedef enum psplit_view_level {
  PSPLIT_VIEW_OPERATORS,
  PSPLIT_VIEW_SUPERNODES,
  PSPLIT_VIEW_STAGES, /* needs a snapshot with stages */
  /* Number of matches of each fusion pattern, as TEXT or JSON; needs a snapshot after fuse. */
  PSPLIT_VIEW_PATTERNS
} psplit_view_level;

typedef struct psplit_view_options {
  size_t struct_size; /* set by psplit_view_options_init() */
  psplit_view_format format;
  psplit_view_level level;  /* HTML has all, SVG is for SUPERNODES and STAGES */
  uint32_t n_micro_batches; /* of the schedule that HTML shows; 0: 8 */
  const char *title;        /* of HTML and SVG; may be NULL */
  bool fold;                /* TEXT: of repeated blocks, show only the first one's supernodes */
  const char *trace;        /* HTML: a trace of onnx-pipeline-run, for the schedule; may be NULL */
  size_t n_trace;           /* its bytes */
  const char *trace_name;   /* its name in messages; NULL */
} psplit_view_options;

/* The defaults: everything 0 or NULL. */
static inline void psplit_view_options_init(psplit_view_options *options) {
  memset(options, 0, sizeof *options);
  options->struct_size = sizeof *options;
}

/* Whether this release supports a format; it supports all of the above. */
PSPLIT_API bool psplit_view_has(psplit_view_format format);

/* Renders snapshots of one model as text, malloc'd and NUL-terminated; *out_n (may be NULL) is its
 * length. HTML takes several, with different numbers of stages, for the reader to choose from; the
 * other formats take one. The same snapshots give the same bytes: no pointers, times or paths.
 * Names from the model are escaped as the format requires. In HTML, cuts can be moved if
 * psplit_snapshot_count() was called. Errors: USAGE (several snapshots, a level that the snapshot
 * has not reached), UNSUPPORTED (no such format), MALFORMED or INVALID (an invalid trace), NOMEM.
 * O(operators + tensors). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_view(const psplit_snapshot *const *snapshots,
                                                   size_t n_snapshots,
                                                   const psplit_view_options *options,
                                                   psplit_diag *diag, char **out_text,
                                                   size_t *out_n);

/* Number of layers of a model per stage: out_layers[snapshot->n_stages]. A layer is identified by
 * the number in the names of its states ("past_key_values.3.key") or, without state, is a block of
 * the longest repeat; it counts in the stage where it takes the most time. *out_torn (may be NULL):
 * blocks that are divided among stages. Needs a snapshot with stages. Errors: USAGE (no stages),
 * UNSUPPORTED (no layers found), NOMEM. O(operators). */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_view_layers(const psplit_snapshot *snapshot,
                                                          psplit_diag *diag, uint32_t *out_layers,
                                                          uint32_t *out_torn);

#ifdef __cplusplus
}
#endif
#endif
