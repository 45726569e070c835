#include "exact_runs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

psplit_i_verdict run_exact_on(bed *b, const psplit_i_weight_axis *axis,
                              psplit_i_exact_options options) {
  psplit_i_verdict verdict;
  options.memory_bytes = 1 << 28;
  options.n_threads = 1;
  assert_int_equal(
    psplit_i_exact(&b->instance, &b->automaton, axis, &options, &b->assignment, &verdict),
    PSPLIT_OK);
  return verdict;
}

psplit_i_verdict run_exact(bed *b, psplit_i_exact_options options) {
  return run_exact_on(b, &(psplit_i_weight_axis){0}, options);
}

psplit_i_verdict decide(bed *b, int64_t limit, bool send_once, bool keep_dominated,
                        uint64_t *out_steps) {
  const psplit_i_exact_options options = {.limit = limit,
                                          .send_once = send_once,
                                          .keep_dominated = keep_dominated,
                                          .max_steps = 400000,
                                          .out_steps = out_steps};
  return run_exact(b, options);
}
