/* Patterns of operators, as text: what `fuse` looks for. The language is described in
 * docs/passes.md.
 *
 * A pattern is a list of steps, each an operator with the values it reads and makes. Matching
 * starts at a node that fits the first step (the anchor) and takes the other steps in order, each
 * reached from a value that is known by then: backwards to its producer or forwards to its readers.
 * A text with alternatives stands for a pattern of that name per choice. */
#ifndef PSPLIT_PASSES_PATTERN_H
#define PSPLIT_PASSES_PATTERN_H

#include "asset.h"
#include "base.h"
#include "graph.h"

enum {
  PSPLIT_I_PATTERN_STEPS = 48, /* per pattern */
  PSPLIT_I_PATTERN_NAMES = 64,
  PSPLIT_I_PATTERN_OPERANDS = 8, /* per step */
  PSPLIT_I_PATTERN_RESULTS = 4
};

typedef enum psplit_i_operand_kind {
  PSPLIT_I_OPERAND_VALUE,    /* a name: any value, the same one wherever the name stands */
  PSPLIT_I_OPERAND_CONST,    /* any constant */
  PSPLIT_I_OPERAND_NUMBER,   /* a constant whose elements are all this number */
  PSPLIT_I_OPERAND_ANY,      /* anything, or nothing */
  PSPLIT_I_OPERAND_ANYWHERE, /* a name that stands among the inputs, at any position */
  PSPLIT_I_OPERAND_REST      /* any number of further inputs */
} psplit_i_operand_kind;

typedef struct psplit_i_operand {
  psplit_i_operand_kind kind;
  uint32_t name;
  double number;
} psplit_i_operand;

typedef struct psplit_i_pattern_op {
  const char *domain;  /* NULL: the standard operators and Microsoft's */
  const char *op_type; /* "*": any */
} psplit_i_pattern_op;

typedef struct psplit_i_step_pattern {
  bool optional;
  uint32_t first_op, n_ops; /* in the table's ops; one must fit */
  uint32_t n_results, n_operands;
  uint32_t results[PSPLIT_I_PATTERN_RESULTS]; /* names; PSPLIT_NONE for "_" */
  psplit_i_operand operands[PSPLIT_I_PATTERN_OPERANDS];
} psplit_i_step_pattern;

typedef struct psplit_i_pattern {
  const char *name;
  uint32_t first_step, n_steps, n_names;
  uint64_t outs; /* bit per name: values that may be read outside the match */
} psplit_i_pattern;

typedef struct psplit_i_pattern_set {
  const char *name;
  psplit_i_pattern_op op;
} psplit_i_pattern_set;

/* Patterns in the order of their text. Zero-initialise; strings live in the arena of the parser. */
typedef struct psplit_i_patterns {
  PSPLIT_VEC(psplit_i_pattern) patterns;
  PSPLIT_VEC(psplit_i_step_pattern) steps;
  PSPLIT_VEC(psplit_i_pattern_op) ops;
  PSPLIT_VEC(psplit_i_pattern_set) sets; /* one entry per member */
} psplit_i_patterns;

void psplit_i_patterns_fini(psplit_i_patterns *patterns);

/* How often a pattern matched; those of one name together. */
typedef struct psplit_i_pattern_count {
  const char *name;
  uint32_t n_matches, n_nodes; /* nodes of all matches; those of several count in each */
} psplit_i_pattern_count;

/* Adds the patterns of a text; sets of earlier texts stay known. `origin` (a file's name) stands
 * before line numbers in messages. Errors: USAGE, naming the line; NOMEM. O(text). */
PSPLIT_MUST_USE psplit_code psplit_i_patterns_parse(psplit_i_patterns *patterns, const char *origin,
                                                    const char *text, size_t n,
                                                    psplit_i_arena *arena, psplit_diag *diag);

/* The built-in patterns: patterns.txt. */
extern const psplit_i_asset psplit_i_asset_patterns;

/* Whether the first step of the pattern takes operators of this type, whatever their domain. */
bool psplit_i_pattern_names(const psplit_i_patterns *patterns, const psplit_i_pattern *pattern,
                            const char *op_type);

/* What a match needs to know of the model. */
typedef struct psplit_i_match_input {
  const psplit_i_graph *graph;
  const uint8_t *node_flags; /* free and dead nodes are never part of a match */
  psplit_i_arena *scratch;   /* for reading constants */
} psplit_i_match_input;

/* Matches one pattern at one anchor: *out_n nodes in the order of the steps, those of optional
 * steps that were found included; 0 where it does not fit. Bounded work per call, so linear over
 * all anchors. Errors: IO and NOMEM of reading a constant. */
PSPLIT_MUST_USE psplit_code psplit_i_pattern_match(const psplit_i_match_input *input,
                                                   const psplit_i_patterns *patterns,
                                                   const psplit_i_pattern *pattern, uint32_t anchor,
                                                   psplit_diag *diag,
                                                   uint32_t out_nodes[PSPLIT_I_PATTERN_STEPS],
                                                   uint32_t *out_n);

#endif
