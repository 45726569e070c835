/* The latency of calls (Tarnawski et al., NeurIPS 2020, section 2 and appendix A, one subgraph an
 * accelerator): an accelerator starts when all that it receives is there, receives, computes, sends
 * and has ended; each node on a CPU has a core of its own and starts when its inputs are there. */
#ifndef PSPLIT_PARTITION_CALLS_SCHEDULE_H
#define PSPLIT_PARTITION_CALLS_SCHEDULE_H

#include "budget.h"
#include "problem.h"

/* A problem as this model reads it. Devices are the accelerators, 0 .. n_accelerators - 1 in the
 * order of their entries, and behind them the CPUs, together one device. Units are what is run at
 * once: accelerators, and nodes on CPUs. */
typedef struct psplit_i_calls {
  const psplit_problem *problem;
  uint32_t n, n_accelerators;
  bool has_pool;   /* devices that pay no communication are such CPUs; else accelerators, too */
  bool has_cpus;   /* and there are some */
  uint32_t *entry; /* [n_accelerators + has_cpus] of problem->devices */
  uint32_t n_types, *type;   /* [n_accelerators + has_cpus] numbers of entries */
  int64_t *time;             /* [n_types * n] INF: cannot run there */
  int64_t *send, *recv;      /* [n_types * n_nets] 0 on CPUs */
  uint32_t *succ_off, *succ; /* of nodes, by nets and order; repeated where several lead there */
  uint32_t *pred_off, *pred; /* likewise */
  uint32_t *order;           /* [n] nodes, topological */
  uint32_t *group, n_groups; /* [n] nodes that stay together */
  uint32_t *member_off, *member; /* of groups */
  psplit_i_arena arena;          /* owns the arrays */
} psplit_i_calls;

/* Of valuing one placement at a time. */
typedef struct psplit_i_calls_scratch {
  int64_t *load, *ready;  /* [n_accelerators], [n_accelerators + n] */
  uint64_t *bytes;        /* [n_accelerators + 1] */
  uint32_t *left, *queue; /* [n_accelerators + n] */
  uint32_t *mark;         /* [n_accelerators + 1] */
  uint32_t *first, *next; /* [n_accelerators + n], [n] nodes of a unit */
} psplit_i_calls_scratch;

/* Reads a validated problem without a backward pass. Errors: UNSUPPORTED (CPUs of several kinds,
 * or several that have a limit of memory), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_init(psplit_i_calls *calls,
                                                const psplit_problem *problem, bool with_pool,
                                                psplit_diag *diag);
void psplit_i_calls_fini(psplit_i_calls *calls);
/* Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_calls_scratch_init(psplit_i_calls_scratch *scratch,
                                                        const psplit_i_calls *calls,
                                                        psplit_i_arena *arena);

/* When the last unit ends if node v is on device[v], and what all accelerators take together, each
 * from when it starts; INF where units wait for each other in a circle, a node cannot run on its
 * device, or memory does not suffice. O(nodes + pins + accelerators). */
int64_t psplit_i_calls_latency(const psplit_i_calls *calls, psplit_i_calls_scratch *scratch,
                               const uint32_t *device, int64_t *out_busy);
/* Operations that this, and a change of a placement, stands for. */
uint64_t psplit_i_calls_latency_ops(const psplit_i_calls *calls);

#endif
