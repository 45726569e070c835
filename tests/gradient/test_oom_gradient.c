/* Differentiating, and lowering Gradient nodes, when memory runs out:  test_oom_gradient MODEL...
 * The i-th allocation fails, for every i until none is reached: the call says NOMEM, or what it
 * says otherwise, or UNSUPPORTED, as contents that could not be read are merely unknown to shape
 * inference; and it leaves no memory behind. */
#include <psplit/gradient.h>
#include <stdio.h>

#include "failing.h"

static psplit_code differentiate(const psplit_model *model, psplit_diag *diag) {
  static const char *const all[] = {"*"};
  const psplit_training_options options = {.loss = "mse:", .train = all, .n_train = 1};
  psplit_gradient *gradient = NULL;
  psplit_code code = psplit_gradient_create(model, &options, NULL, diag, &gradient);
  if (code == PSPLIT_OK)
    code = psplit_gradient_write_update(gradient, "adamw", "/dev/null/x", diag);
  if (code == PSPLIT_IO) { /* as it should */
    *diag = (psplit_diag){0};
    code = psplit_gradient_write_training_info(gradient, "adamw", "/dev/null/x", diag);
  }
  psplit_gradient_destroy(gradient);
  return code;
}

static psplit_code lower(const psplit_model *model, psplit_diag *diag) {
  uint32_t n;
  return psplit_lower_gradients(model, "/dev/null/x", diag, &n);
}

typedef psplit_code (*attempt)(const psplit_model *model, psplit_diag *diag);

/* Number of allocations that it takes; -1 where something went wrong. */
static long try_all(const psplit_model *model, attempt what, psplit_code usual) {
  for (long i = 0; i < 100000; i++) {
    psplit_diag diag = {0};
    const long live_before = live_blocks();
    fail_allocation_after(i);
    const psplit_code code = what(model, &diag);
    const bool reached = stop_failing();
    const bool known = code == usual || code == PSPLIT_NOMEM || code == PSPLIT_UNSUPPORTED;
    if (!known || (code != usual && !reached) || live_blocks() != live_before) {
      fprintf(stderr, "allocation %ld: %s (%s), %ld blocks stay\n", i, psplit_code_name(code),
              diag.message, live_blocks() - live_before);
      return -1;
    }
    if (!reached) return i;
  }
  return -1;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    psplit_diag diag = {0};
    psplit_model *model;
    if (psplit_model_open(argv[i], NULL, &diag, &model) != PSPLIT_OK) {
      fprintf(stderr, "%s\n", diag.message);
      return 1;
    }
    static const attempt attempts[] = {differentiate, lower};
    for (int k = 0; k < 2; k++) {
      psplit_diag usual = {0};
      const psplit_code code = attempts[k](model, &usual);
      const long n = try_all(model, attempts[k], code);
      if (n < 2) return 1; /* the wrapping does not work, or try_all said why */
      printf("%s: %ld allocations, %s\n", argv[i], n, usual.message);
    }
    psplit_model_close(model);
  }
  return argc < 2;
}
