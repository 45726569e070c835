#include "partition.h"
psplit_code psplit_i_place(const psplit_job *job, psplit_answer *out_answer) {
  (void)out_answer;
  return psplit_i_fail(job->diag, PSPLIT_UNSUPPORTED, "not yet");
}
