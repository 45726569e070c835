/* Runs of stages that take what a test says, in place of ONNX Runtime's: programs that link
 * fake_runs_dep have the calls of tune/ that run something sent here. */
#ifndef PSPLIT_TESTS_FAKE_RUNS_H
#define PSPLIT_TESTS_FAKE_RUNS_H

#include "profile.h"
#include "run.h"

enum { MOST_RUNS = 4, MOST_STAGES = 4, MOST_PLACED = 16 };

typedef struct fake_runs {
  /* What tests set. */
  int64_t stage_ns[MOST_RUNS][MOST_STAGES]; /* the lower quartile of a stage, by the run */
  int kernel_us;      /* what a profile says of each node: its number in its file, and this */
  bool no_optimized;  /* ONNX Runtime writes a model that cannot be read */
  bool gives_up;      /* a run never ends */
  atomic_int *cancel; /* set to 1 by the first run */
  const psplit_i_placed *placed; /* [n_placed] where sessions say that nodes are */
  size_t n_placed;
  int fails_at; /* the call of those below that fails, with IO, from 1; 0: none */
  /* What they find. */
  int n_calls, n_runs;
  uint32_t n_micro_batches[MOST_RUNS];
  char opened[256]; /* the file that was profiled or opened last */
  psplit_i_session_options session;
} fake_runs;
extern fake_runs fake;

/* An ONNX Runtime of which only the version is used. */
extern const psplit_onnxruntime FAKE_ORT;

#endif
