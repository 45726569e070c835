#include "policy.h"

#include <stdlib.h>

#include "diag.h"

psplit_code psplit_policy_create(uint64_t seed, psplit_diag *diag, psplit_policy **out_policy) {
  psplit_policy *policy = calloc(1, sizeof *policy);
  if (!policy) return psplit_i_nomem(diag);
  psplit_i_policy_randomize(&policy->network, seed);
  *out_policy = policy;
  return PSPLIT_OK;
}

void psplit_policy_destroy(psplit_policy *policy) { free(policy); }

uint32_t psplit_policy_n_parameters(const psplit_policy *policy) {
  (void)policy;
  return PSPLIT_I_N_PARAMETERS;
}

float psplit_policy_parameter(const psplit_policy *policy, uint32_t index) {
  return (float)((const psplit_i_real *)&policy->network)[index];
}
