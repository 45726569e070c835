#include "unknown.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "diag.h"
#include "text.h"

enum { MAX_LETTERS = 64, MAX_LISTED = 12 };

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Optimal string alignment: insertions, deletions, replacements, exchanges of neighbours. */
static unsigned distance(const char *a, size_t n_a, const char *b, size_t n_b) {
  unsigned rows[3][MAX_LETTERS + 1];
  unsigned *before = rows[0], *last = rows[1], *row = rows[2];
  for (size_t j = 0; j <= n_b; j++) last[j] = (unsigned)j;
  for (size_t i = 1; i <= n_a; i++) {
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= n_b; j++) {
      row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], before[j - 2] + 1);
    }
    unsigned *spare = before;
    before = last;
    last = row;
    row = spare;
  }
  return last[n_b];
}

/* Where `part` stands in `whole` with nothing or a sign beside it, or at its beginning. */
static bool is_part(const char *part, const char *whole) {
  const size_t n = strlen(part);
  if (n < 3) return false;
  for (const char *at = strcasestr(whole, part); at; at = strcasestr(at + 1, part))
    if (at == whole || (!isalnum((unsigned char)at[-1]) && !isalnum((unsigned char)at[n])))
      return true;
  return false;
}

/* A name that is a part of this one or has it as one, "stages" of "num-stages": the one of the
 * fewest other letters. */
static uint32_t nearest_part(const char *name, const char *const *names, uint32_t n) {
  const size_t length = strlen(name);
  size_t best = SIZE_MAX;
  uint32_t found = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    const size_t other = strlen(names[i]), more = other > length ? other - length : length - other;
    if (other > MAX_LETTERS || more >= best) continue;
    if (!is_part(name, names[i]) && !is_part(names[i], name)) continue;
    best = more;
    found = i;
  }
  return found;
}

/* Whether every word of `some`, two at least, is one of `all`: "max-tokens" of "max-new-tokens". */
static bool are_words_of(const char *some, const char *all) {
  static const char SIGNS[] = "-_./ ";
  uint32_t n_words = 0;
  for (const char *word = some; *word; n_words++) {
    const size_t n = strcspn(word, SIGNS);
    const char *other = all;
    while (*other && (strcspn(other, SIGNS) != n || strncasecmp(other, word, n) != 0)) {
      other += strcspn(other, SIGNS);
      other += strspn(other, SIGNS);
    }
    if (!*other) return false;
    word += n;
    word += strspn(word, SIGNS);
  }
  return n_words > 1;
}

/* The name of the fewest letters that has all words of this one. */
static uint32_t nearest_words(const char *name, const char *const *names, uint32_t n) {
  size_t best = MAX_LETTERS + 1;
  uint32_t found = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    const size_t length = strlen(names[i]);
    if (length >= best || !are_words_of(name, names[i])) continue;
    best = length;
    found = i;
  }
  return found;
}

/* The shortest name that goes on behind all of this one with a sign, "nvidia-a100-40gb" of
 * "nvidia-a100". */
static uint32_t nearest_longer(const char *name, const char *const *names, uint32_t n) {
  const size_t length = strlen(name);
  size_t best = MAX_LETTERS + 1;
  uint32_t found = PSPLIT_NONE;
  for (uint32_t i = 0; i < n && length > 2; i++) {
    const size_t other = strlen(names[i]);
    if (other >= best || other <= length || strncasecmp(name, names[i], length) != 0 ||
        isalnum((unsigned char)names[i][length]))
      continue;
    best = other;
    found = i;
  }
  return found;
}

uint32_t psplit_i_nearest(const char *name, const char *const *names, uint32_t n) {
  const size_t length = strlen(name);
  /* A third of the letters may be wrong: of names with one or two, none. */
  unsigned best = (unsigned)(length / 3) + 1;
  uint32_t found = PSPLIT_NONE;
  if (length > MAX_LETTERS) return PSPLIT_NONE;
  for (uint32_t i = 0; i < n && best > 0; i++) {
    const size_t other = strlen(names[i]);
    unsigned far = best;
    if (other > MAX_LETTERS) continue;
    if (strcasecmp(name, names[i]) == 0)
      far = 0;
    else if (other + best > length && length + best > other)
      far = distance(name, length, names[i], other);
    if (far >= best) continue;
    best = far;
    found = i;
  }
  /* Another letter in the middle of a name is less likely than an end that was left out. */
  if (found != PSPLIT_NONE && best > 0 &&
      strncasecmp(name, names[found],
                  strlen(names[found]) < length ? strlen(names[found]) : length) != 0) {
    const uint32_t longer = nearest_longer(name, names, n);
    if (longer != PSPLIT_NONE) found = longer;
  }
  if (found == PSPLIT_NONE) found = nearest_part(name, names, n);
  return found == PSPLIT_NONE ? nearest_words(name, names, n) : found;
}

uint32_t psplit_nearest_name(const char *name, const char *const *names, uint32_t n) {
  return psplit_i_nearest(name, names, n);
}

void psplit_i_add_names(psplit_i_text *out, const char *it_has, const char *name,
                        const char *const *names, uint32_t n) {
  const uint32_t near = psplit_i_nearest(name, names, n);
  if (near != PSPLIT_NONE)
    psplit_i_text_addf(out, "; did you mean %.200s? %s ", names[near], it_has);
  else
    psplit_i_text_addf(out, n ? "; %s " : "; there are none", it_has);
  for (uint32_t i = 0; i < n && i < MAX_LISTED; i++)
    psplit_i_text_addf(out, "%s%.200s", i ? ", " : "", names[i]);
  if (n > MAX_LISTED) psplit_i_text_addf(out, " and %u more", (unsigned)(n - MAX_LISTED));
}

psplit_code psplit_i_fail_unknown(psplit_diag *diag, psplit_subject subject, const char *what,
                                  const char *name, const char *const *names, uint32_t n) {
  psplit_i_text hint = {0};
  psplit_i_add_names(&hint, "it has", name, names, n);
  const psplit_code code =
    psplit_i_fail_about(diag, PSPLIT_USAGE, (psplit_i_advice){.subject = subject}, "%s %.200s%s",
                        what, name, hint.failed || !hint.bytes ? "" : hint.bytes);
  psplit_i_text_fini(&hint);
  return code;
}
