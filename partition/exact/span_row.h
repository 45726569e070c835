/* Spans in a row: contiguous throughput of graphs with separators. */
#ifndef PSPLIT_PARTITION_SPAN_ROW_H
#define PSPLIT_PARTITION_SPAN_ROW_H

#include "solver_state.h"

/* Once, where much is open: limits between bound and value, each decided span by span. */
PSPLIT_MUST_USE psplit_code psplit_i_spans_turn(psplit_i_solver_state *a, psplit_i_turn *turn);

#endif
