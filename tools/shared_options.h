/* Options that mean the same in several commands: rows of option tables, each with the id that its
 * command calls it by. Those of sessions and inputs: ort_options.h, feed_options.h. */
#ifndef PSPLIT_TOOLS_SHARED_OPTIONS_H
#define PSPLIT_TOOLS_SHARED_OPTIONS_H

#include "cli.h"

/* clang-format off */
/* `what`: the time that is limited. */
#define SHARED_TIMEOUT(id, what) \
  {(id), "timeout", "SECONDS", \
   what "; default: any. Longest silence of a rank; default: 60"}
#define SHARED_TRANSPORT(id, unit) \
  {(id), "transport", "threads|mpi", \
   "what carries tensors; mpi: a " unit " per rank; default: mpi under mpirun"}
#define SHARED_CHUNK(id) \
  {(id), "chunk", "BYTES", "largest message between ranks; default: 1 GiB"}
#define SHARED_TRACE(id) \
  {(id), "trace", "FILE", "write a trace for Perfetto or chrome://tracing"}
#define SHARED_MAX_GRAPH_MEMORY(id, whose) \
  {(id), "max-graph-memory", "MIB", \
   "limit on " whose " structure; default: 32 times the file, 256 to 2048"}
#define SHARED_FOLLOW_SYMLINKS(id) \
  {(id), "follow-symlinks", NULL, "external data may be symbolic links"}
/* clang-format on */

/* What SHARED_TRANSPORT takes. */
static inline bool shared_transport(const cli *program, const char *text, bool *out_mpi) {
  int which;
  if (!cli_choice(program, "transport", text, &which)) return false;
  *out_mpi = which == 1;
  return true;
}

#endif
