#include "loss_text.h"

#include <string.h>

bool psplit_i_loss_is(const char *text, const char *method) {
  const size_t n = strlen(method);
  return strncmp(text, method, n) == 0 && (text[n] == ':' || !text[n]);
}

static bool is_of(const char *entry, size_t n, const char *key) {
  const size_t n_key = key ? strlen(key) : n;
  return n > n_key && strncmp(entry, key, n_key) == 0 && entry[n_key] == '=';
}

psplit_i_loss_word psplit_i_loss_value(const char *text, const char *key, const char *other) {
  psplit_i_loss_word word = {0};
  for (const char *at = strchr(text, ':'); at; at = strchr(at, ',')) {
    const size_t n = strcspn(++at, ",");
    if (!is_of(at, n, key) && !is_of(at, n, other)) continue;
    word.at = strchr(at, '=') + 1;
    word.n = n - (size_t)(word.at - at);
  }
  return word;
}

psplit_i_loss_word psplit_i_loss_prediction(const char *text) {
  return psplit_i_loss_value(text, "logits", "prediction");
}

psplit_i_loss_word psplit_i_loss_target(const char *text) {
  const psplit_i_loss_word word = psplit_i_loss_value(text, "labels", "target");
  if (word.at) return word;
  const char *name = psplit_i_loss_is(text, "mse") ? "target" : "labels";
  return (psplit_i_loss_word){name, strlen(name)};
}

bool psplit_i_loss_word_is(psplit_i_loss_word word, const char *name) {
  return strlen(name) == word.n && memcmp(name, word.at, word.n) == 0;
}
