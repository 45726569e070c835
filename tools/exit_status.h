/* The exit status of a command for a code: docs/manual.md. */
#ifndef PSPLIT_TOOLS_EXIT_STATUS_H
#define PSPLIT_TOOLS_EXIT_STATUS_H

#include <psplit/base.h>

static inline int cli_exit_status(psplit_code code) {
  switch (code) {
    case PSPLIT_OK: return 0;
    case PSPLIT_MISMATCH: return 1;
    case PSPLIT_USAGE: return 2;
    case PSPLIT_IO: return 3;
    case PSPLIT_MALFORMED:
    case PSPLIT_INVALID: return 4;
    case PSPLIT_UNSUPPORTED: return 5;
    case PSPLIT_NOMEM:
    case PSPLIT_LIMIT: return 6;
    case PSPLIT_INFEASIBLE: return 7;
    case PSPLIT_PLUGIN: return 8;
    case PSPLIT_INTERNAL: break;
    case PSPLIT_CANCELLED: return 130; /* as by SIGINT, where no signal says otherwise */
  }
  return 70;
}

#endif
