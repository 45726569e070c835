#include "loss_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const METHODS[] = {
  [PSPLIT_I_CROSS_ENTROPY] = "softmax-cross-entropy",
  [PSPLIT_I_SQUARED_ERROR] = "mse",
  [PSPLIT_I_BINARY_CROSS_ENTROPY] = "bce-with-logits",
};
enum { N_METHODS = sizeof METHODS / sizeof *METHODS };

static psplit_code read_number(const psplit_i_loss_text *l, const char *value, int64_t *out) {
  char *end;
  errno = 0;
  const int64_t n = strtoll(value, &end, 10);
  if (!*value || *end) return psplit_i_choice_fail(&l->choice, "not a whole number");
  if (errno == ERANGE) return psplit_i_choice_fail(&l->choice, "a number beyond 64 bits");
  *out = n;
  return PSPLIT_OK;
}

static psplit_code read_entry(psplit_i_loss_text *l, const char *key, const char *value) {
  static const char *const KEYS[] = {"logits", "prediction", "labels", "target", "ignore", "axis"};
  if (strcmp(key, "logits") == 0 || strcmp(key, "prediction") == 0) {
    l->prediction = value;
  } else if (strcmp(key, "labels") == 0 || strcmp(key, "target") == 0) {
    l->target = value;
  } else if (strcmp(key, "ignore") == 0) {
    l->has_ignore = true;
    return read_number(l, value, &l->ignore);
  } else if (strcmp(key, "axis") == 0) {
    l->has_axis = true;
    return read_number(l, value, &l->axis);
  } else {
    return psplit_i_choice_fail_unlike(&l->choice, "unknown entry", key, KEYS,
                                       sizeof KEYS / sizeof *KEYS);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_loss_text_read(const char *text, psplit_i_arena *arena, psplit_diag *diag,
                                    psplit_i_loss_text *out) {
  psplit_code code;
  const char *key, *value;
  uint32_t method = 0;
  psplit_i_loss_text l = {
    .choice = {.what = "loss",
               .form = "softmax-cross-entropy:logits=L,labels=Y[,ignore=N][,axis=N], "
                       "mse:prediction=P,target=T or bce-with-logits:logits=L,labels=Y",
               .text = text,
               .diag = diag},
    .prediction = "",
    .axis = 1};
  PSPLIT_TRY(psplit_i_choice_begin(&l.choice, arena));
  PSPLIT_TRY(psplit_i_choice_next(&l.choice, &key, &value));
  while (key) {
    PSPLIT_TRY(read_entry(&l, key, value));
    PSPLIT_TRY(psplit_i_choice_next(&l.choice, &key, &value));
  }
  while (method < N_METHODS && strcmp(l.choice.kind, METHODS[method]) != 0) method++;
  if (method == N_METHODS)
    PSPLIT_FAIL(
      psplit_i_choice_fail_unlike(&l.choice, "unknown loss", l.choice.kind, METHODS, N_METHODS));
  l.method = (psplit_i_loss_method)method;
  if (l.method != PSPLIT_I_CROSS_ENTROPY && (l.has_ignore || l.has_axis))
    PSPLIT_FAIL(psplit_i_choice_fail(&l.choice, "unknown entry"));
  if (!l.target) l.target = l.method == PSPLIT_I_SQUARED_ERROR ? "target" : "labels";
  *out = l;
out:
  return code;
}
