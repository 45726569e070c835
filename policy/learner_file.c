/* A learner on disk: a magic word, counts, weights and moments as 32-bit floats, and a hash. In the
 * byte order of the machine, which the magic word tells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "hash.h"
#include "in_file.h"
#include "learner.h"
#include "out_file.h"

static const uint64_t MAGIC = UINT64_C(0x315f6e7261656c70); /* "plearn_1" */

typedef struct saved {
  uint64_t magic, n_parameters, step, adam_steps;
  psplit_i_policy_network network, mean, square;
  uint64_t hash; /* of all in front of it */
} saved;

static uint64_t hash_of(const saved *s) {
  return psplit_i_hash_bytes(s, offsetof(saved, hash), MAGIC);
}

psplit_code psplit_policy_learner_save(const psplit_policy_learner *l, const char *path,
                                       psplit_diag *diag) {
  saved *s = calloc(1, sizeof *s);
  psplit_i_out_file file;
  if (!s) return psplit_i_nomem(diag);
  s->magic = MAGIC;
  s->n_parameters = PSPLIT_I_N_PARAMETERS;
  s->step = l->step;
  s->adam_steps = l->adam.n_steps;
  s->network = l->policy->network;
  s->mean = l->adam.mean;
  s->square = l->adam.square;
  s->hash = hash_of(s);
  psplit_code code = psplit_i_out_begin(path, NULL, diag, &file);
  if (code == PSPLIT_OK) {
    code = psplit_i_out_write(&file, s, sizeof *s, diag);
    if (code == PSPLIT_OK)
      code = psplit_i_out_commit(&file, diag);
    else
      psplit_i_out_abandon(&file);
  }
  free(s);
  return code;
}

/* What a run can have left: gradients have a norm of at most 1 (adam.h), so that moments are no
 * larger, and the mean has its square. Others would move weights to where they are no numbers. */
static bool plausible(const saved *s) {
  const psplit_i_real *w = (const psplit_i_real *)&s->network;
  const psplit_i_real *mean = (const psplit_i_real *)&s->mean,
                      *square = (const psplit_i_real *)&s->square;
  static const double MOST = 1.001, MOST_RATIO = 3,
                      LOST = 1e-15; /* in a square that is too small */
  bool all = true;
  for (size_t k = 0; k < PSPLIT_I_N_PARAMETERS; k++)
    all &= fabs((double)w[k]) < PSPLIT_I_MOST_WEIGHT && (double)square[k] >= 0 &&
           (double)square[k] <= MOST && fabs((double)mean[k]) <= MOST &&
           fabs((double)mean[k]) <= MOST_RATIO * sqrt((double)square[k]) + LOST;
  return all;
}

psplit_code psplit_policy_learner_load(psplit_policy_learner *l, const char *path,
                                       psplit_diag *diag) {
  const psplit_i_text_options limit = {.max_bytes = sizeof(saved)};
  char *bytes;
  size_t n;
  psplit_code code = psplit_i_text_read(path, &limit, diag, &bytes, &n);
  if (code != PSPLIT_OK) return code;
  saved *s = malloc(sizeof *s);
  if (!s) {
    code = psplit_i_nomem(diag);
  } else if (n != sizeof *s) {
    code = psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: no state of learning: %zu bytes, not %zu",
                         path, n, sizeof *s);
  } else {
    memcpy(s, bytes, sizeof *s);
    if (s->magic != MAGIC || s->n_parameters != PSPLIT_I_N_PARAMETERS || s->hash != hash_of(s) ||
        s->step > UINT32_MAX || !plausible(s))
      code =
        psplit_i_fail(diag, PSPLIT_MALFORMED,
                      "%s: no state of learning, of another release or machine, or damaged", path);
  }
  if (code == PSPLIT_OK) {
    l->policy->network = s->network;
    l->adam = (psplit_i_adam){s->adam_steps, s->mean, s->square};
    l->step = (uint32_t)s->step;
  }
  free(s);
  free(bytes);
  return code;
}
