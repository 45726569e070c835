/* What loss a text describes. */
#ifndef PSPLIT_GRADIENT_LOSS_TEXT_H
#define PSPLIT_GRADIENT_LOSS_TEXT_H

#include "choice_text.h"

typedef enum psplit_i_loss_method {
  PSPLIT_I_CROSS_ENTROPY,
  PSPLIT_I_SQUARED_ERROR,
  PSPLIT_I_BINARY_CROSS_ENTROPY
} psplit_i_loss_method;

typedef struct psplit_i_loss_text {
  psplit_i_choice choice; /* for what else is wrong with it */
  psplit_i_loss_method method;
  const char *prediction, *target; /* prediction: "" where left out */
  int64_t ignore, axis;            /* of cross entropy: a class, and that of the classes */
  bool has_ignore, has_axis;       /* axis: 1 where it is not given */
} psplit_i_loss_text;

/* Reads psplit_training_options.loss, with names in `arena`; out->choice.text is `text` itself.
 * Errors: USAGE, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_loss_text_read(const char *text, psplit_i_arena *arena,
                                                    psplit_diag *diag, psplit_i_loss_text *out);

#endif
