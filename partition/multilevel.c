#include "partition.h"
psplit_code psplit_i_multilevel(const psplit_core *core, const psplit_machine *machine,
                                const psplit_job *job, psplit_cut *out_cut) {
  (void)core, (void)machine, (void)job, (void)out_cut;
  return PSPLIT_OK;
}
