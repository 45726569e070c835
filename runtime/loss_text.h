/* Parsing the description of a loss in a manifest: "METHOD" or "METHOD:KEY=VALUE,...". */
#ifndef PSPLIT_RUNTIME_LOSS_TEXT_H
#define PSPLIT_RUNTIME_LOSS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A value in such a text; at NULL: it is not there. */
typedef struct psplit_i_loss_word {
  const char *at;
  size_t n;
} psplit_i_loss_word;

bool psplit_i_loss_is(const char *text, const char *method);
/* The last value of `key`, or of `other` (NULL: it has no other name). */
psplit_i_loss_word psplit_i_loss_value(const char *text, const char *key, const char *other);
/* The prediction, by either name: "logits" or "prediction". */
psplit_i_loss_word psplit_i_loss_prediction(const char *text);
/* Labels or targets, by either name, and what they are called where nothing names them. */
psplit_i_loss_word psplit_i_loss_target(const char *text);
bool psplit_i_loss_word_is(psplit_i_loss_word word, const char *name);

#endif
