#include "smoothing.h"

#include "counter_random.h"

psplit_code psplit_i_perturb(const psplit_i_ort *ort, const psplit_i_tensor *weight,
                             const psplit_i_perturbation *at, psplit_diag *diag,
                             psplit_i_tensor **io_out) {
  enum { FLOAT = 1, DOUBLE = 11 };
  const uint64_t most = UINT64_C(1) << 33; /* numbers of a stream */
  const psplit_i_random_stream stream = {
    .seed = psplit_i_hash_bytes(&at->weight, sizeof at->weight, at->seed),
    .use = PSPLIT_I_RANDOM_SMOOTHING,
    .major = at->step,
    .minor = at->sample};
  psplit_i_tensor_view from, to;
  psplit_code code;
  PSPLIT_TRY(psplit_i_tensor_look(weight, diag, &from));
  if (from.data_type != FLOAT && from.data_type != DOUBLE)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "weights of type %s are not smoothed",
                         psplit_i_element_name(from.data_type));
  if (from.n_elements > most)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "a weight of more than 2^33 elements is not smoothed");
  if (!*io_out)
    PSPLIT_TRY(psplit_i_tensor_create(ort, from.data_type, from.dims, from.n_dims, diag, io_out));
  PSPLIT_TRY(psplit_i_tensor_look(*io_out, diag, &to));
  for (uint64_t i = 0; i < from.n_elements; i++) {
    const double moved = at->gamma * psplit_i_random_normal(&stream, i);
    if (from.data_type == FLOAT)
      ((float *)to.data)[i] = (float)((double)((const float *)from.data)[i] + moved);
    else
      ((double *)to.data)[i] = ((const double *)from.data)[i] + moved;
  }
out:
  return code;
}
