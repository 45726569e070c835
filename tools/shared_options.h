/* Options that mean the same in several commands: rows of option tables, each with the id that its
 * command calls it by. Those of sessions and inputs: ort_options.h, feed_options.h. */
#ifndef PSPLIT_TOOLS_SHARED_OPTIONS_H
#define PSPLIT_TOOLS_SHARED_OPTIONS_H

#include "cli.h"

/* clang-format off */
/* `what`: the time that is limited. */
#define SHARED_TIMEOUT(id, what) \
  {(id), "timeout", "SECONDS", \
   what "; default: none. With MPI also the longest silence of a rank; default: 60"}
#define SHARED_TRANSPORT(id, unit) \
  {(id), "transport", "threads|mpi", \
   "how tensors are moved; mpi: one " unit " per rank; default: mpi under mpirun, else threads"}
#define SHARED_CHUNK(id) \
  {(id), "chunk", "BYTES", "maximum message size between ranks; default: 1 GiB"}
#define SHARED_TRACE(id) \
  {(id), "trace", "FILE", "write a trace for Perfetto or chrome://tracing"}
#define SHARED_MAX_GRAPH_MEMORY(id, whose) \
  {(id), "max-graph-memory", "MIB", \
   "memory limit of " whose " structure; default: 32 times the file, 256 to 2048"}
#define SHARED_FOLLOW_SYMLINKS(id) \
  {(id), "follow-symlinks", NULL, "allow external data files to be symbolic links"}
/* clang-format on */

/* What SHARED_TIMEOUT takes. */
static inline bool shared_timeout(const cli *program, const char *text, double *out_timeout_s,
                                  double *out_stall_timeout_s) {
  if (!cli_real(program, "timeout", text, 0.1, 1e9, out_timeout_s)) return false;
  *out_stall_timeout_s = *out_timeout_s;
  return true;
}

/* What SHARED_TRANSPORT takes. */
static inline bool shared_transport(const cli *program, const char *text, bool *out_mpi) {
  int which;
  if (!cli_choice(program, "transport", text, &which)) return false;
  *out_mpi = which == 1;
  return true;
}

#endif
