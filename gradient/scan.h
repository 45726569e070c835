/* Bodies of Scan nodes: what recurrent operators need step by step. */
#ifndef PSPLIT_GRADIENT_SCAN_H
#define PSPLIT_GRADIENT_SCAN_H

#include "rule.h"

/* A Scan under construction; its values are names inside the body. Zero-initialise but for `at`. */
typedef struct psplit_i_scan {
  psplit_i_at *at;
  psplit_i_text nodes, inputs, outputs;
  PSPLIT_VEC(psplit_i_ref) states;
  PSPLIT_VEC(psplit_i_ref) rows;
  uint32_t n_outputs;
} psplit_i_scan;

/* A state variable, and an input of which each step sees one row of axis 0. All states come before
 * all rows, and both before any operator. */
const char *psplit_i_scan_state(psplit_i_scan *scan, psplit_i_ref initial);
const char *psplit_i_scan_row(psplit_i_scan *scan, psplit_i_ref rows);
/* A value outside. */
const char *psplit_i_scan_outer(psplit_i_scan *scan, psplit_i_ref value);
/* Operators inside. */
const char *psplit_i_scan_op(psplit_i_scan *scan, const char *op_type, const char *a,
                             const char *b);
const char *psplit_i_scan_concat(psplit_i_scan *scan, const char *const *parts, size_t n);
/* What a state is after the step (all states, in their order), then what each step gives. */
void psplit_i_scan_output(psplit_i_scan *scan, const char *value);

/* Ends the body and makes the node, whose outputs are returned as psplit_i_backward_node returns
 * them. backwards: from the last row to the first, results in the order of the rows. */
psplit_i_ref psplit_i_scan_end(psplit_i_scan *scan, bool backwards);

#endif
