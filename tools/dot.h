/* Pictures by Graphviz: its program `dot` lays the graph out. */
#ifndef PSPLIT_TOOLS_DOT_H
#define PSPLIT_TOOLS_DOT_H

#include <psplit/base.h>

/* DOT text to SVG text, both malloc'd; *io_text is replaced. Runs `dot -Tsvg` from PATH.
 * Errors: UNSUPPORTED (there is no dot), IO, NOMEM. */
PSPLIT_MUST_USE psplit_code dot_to_svg(char **io_text, size_t *io_n, psplit_diag *diag);

#endif
