/* Numbers, sizes and words that options take; each says what it would have taken. */
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool cli_count(const cli *program, const char *name, const char *text, uint64_t low, uint64_t high,
               uint64_t *out) {
  char *end;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && !*end && !errno && value >= low && value <= high) {
    *out = value;
    return true;
  }
  cli_usage(program, "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not \"%s\"", name,
            low, high, text);
  return false;
}

bool cli_count32(const cli *program, const char *name, const char *text, uint32_t low,
                 uint32_t high, uint32_t *out) {
  uint64_t count;
  if (!cli_count(program, name, text, low, high, &count)) return false;
  *out = (uint32_t)count;
  return true;
}

bool cli_real(const cli *program, const char *name, const char *text, double low, double high,
              double *out) {
  char *end;
  const double value = strtod(text, &end);
  if (*text && !*end && value >= low && value <= high) {
    *out = value;
    return true;
  }
  cli_usage(program, "--%s takes a number from %g to %g, not \"%s\"", name, low, high, text);
  return false;
}

bool cli_level(const cli *program, const char *text, int *out) {
  uint64_t count;
  if (!cli_count(program, "optimization", text, 0, 99, &count)) return false;
  *out = (int)count;
  if (count <= 2 || count == 99) return true;
  cli_usage(program, "--optimization takes 0, 1, 2 or 99, not \"%s\"", text);
  return false;
}

bool cli_range(const cli *program, const char *name, const char *text, uint32_t *out_low,
               uint32_t *out_high) {
  static const uint64_t MOST = 1u << 20;
  const char *dots = strstr(text, "..");
  char first[24];
  uint64_t low, high;
  const size_t n_digits = strspn(text, "0123456789");
  if (n_digits && strchr("-,:", text[n_digits]) && text[n_digits]) {
    cli_usage(program, "--%s takes a number or a range such as 2..4, not \"%s\"", name, text);
    return false;
  }
  const size_t n = dots ? (size_t)(dots - text) : strlen(text);
  if (n >= sizeof first) return cli_count(program, name, text, 1, MOST, &low);
  memcpy(first, text, n);
  first[n] = '\0';
  if (!cli_count(program, name, first, 1, MOST, &low) ||
      !cli_count(program, name, dots ? dots + 2 : first, low, MOST, &high))
    return false;
  *out_low = (uint32_t)low;
  *out_high = (uint32_t)high;
  return true;
}

bool cli_choice(const cli *program, const char *name, const char *text, int *out) {
  enum { MOST = 16 };
  const char *words[MOST + 1] = {NULL};
  char row[160] = "";
  for (size_t i = 0; i < program->n_options; i++)
    if (program->options[i].name && strcmp(program->options[i].name, name) == 0)
      snprintf(row, sizeof row, "%s", program->options[i].argument);
  size_t n = 0;
  for (char *word = row; *word && n < MOST; n++) {
    char *behind = word + strcspn(word, "|");
    words[n] = word;
    const bool last = !*behind;
    *behind = '\0';
    word[strcspn(word, "[")] = '\0';
    word = last ? behind : behind + 1;
  }
  return cli_word(program, name, text, words, out);
}

bool cli_word(const cli *program, const char *name, const char *text, const char *const *words,
              int *out) {
  for (int i = 0; words[i]; i++)
    if (strcmp(words[i], text) == 0) {
      *out = i;
      return true;
    }
  char known[160] = "";
  for (size_t i = 0, n = 0; words[i] && n < sizeof known; i++)
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", words[i]);
  uint32_t n_words = 0;
  while (words[n_words]) n_words++;
  const uint32_t near = psplit_nearest_name(text, words, n_words);
  cli_usage(program, "--%s takes one of %s, not \"%s\"%s%s%s", name, known, text,
            near == PSPLIT_NONE ? "" : "; did you mean ", near == PSPLIT_NONE ? "" : words[near],
            near == PSPLIT_NONE ? "" : "?");
  return false;
}

bool cli_dim(const cli *program, char *text, psplit_dim_value *dims, size_t most, size_t *io_n) {
  char *equals = strrchr(text, '=');
  uint64_t value;
  if (!equals || equals == text || *io_n == most) {
    cli_usage(program, "--dim takes NAME=VALUE, not \"%s\"", text);
    return false;
  }
  if (!cli_count(program, "dim", equals + 1, 0, INT64_MAX, &value)) return false;
  *equals = '\0';
  size_t at = 0; /* what is said later counts */
  while (at < *io_n && strcmp(dims[at].name, text) != 0) at++;
  if (at == *io_n) ++*io_n;
  dims[at] = (psplit_dim_value){text, (int64_t)value};
  return true;
}

bool cli_sizes(const char *text, int64_t *sizes, uint32_t most, uint32_t *out_n) {
  uint32_t n = 0;
  while (*text) {
    char *end;
    errno = 0;
    const long long size = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || errno || n == most) return false;
    if (*end && (*end != ',' || !end[1])) return false;
    sizes[n++] = size;
    text = end + (*end == ',');
  }
  *out_n = n;
  return true;
}

/* The bytes of "N[.F]" units of unit_bytes, rounded down; false if it does not start with such a
 * number or exceeds `high`. *out_end is behind the number. */
static bool bytes_of(const char *text, uint64_t unit_bytes, uint64_t high, const char **out_end,
                     uint64_t *out) {
  char *end;
  errno = 0;
  const unsigned long long count = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || errno || count > high / unit_bytes) return false;
  uint64_t bytes = count * unit_bytes, scale = 1, part = 0;
  if (*end == '.' && unit_bytes > 1)
    for (end++; *end >= '0' && *end <= '9'; end++) {
      if (scale > UINT64_MAX / 10 / unit_bytes) continue; /* less than a byte */
      part = 10 * part + (uint64_t)(*end - '0');
      scale *= 10;
    }
  if (end[-1] == '.') return false;
  bytes += part * unit_bytes / scale;
  *out_end = end;
  *out = bytes;
  return bytes <= high;
}

bool cli_size(const cli *program, const char *name, const char *text, uint64_t high,
              uint64_t *out) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } UNITS[] = {{"", 1},
               {"B", 1},
               {"kB", 1000},
               {"MB", 1000000},
               {"GB", 1000000000},
               {"TB", 1000000000000},
               {"KiB", 1u << 10},
               {"MiB", 1u << 20},
               {"GiB", 1u << 30},
               {"TiB", UINT64_C(1) << 40}};
  for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
    const char *end;
    uint64_t bytes;
    if (!bytes_of(text, UNITS[i].bytes, high, &end, &bytes) || !bytes) continue;
    if (strcmp(end, UNITS[i].name) != 0) continue;
    *out = bytes;
    return true;
  }
  cli_usage(program,
            "--%s takes bytes, such as 1000000, 500MB or 1.5GiB, from 1 to %" PRIu64 ", not \"%s\"",
            name, high, text);
  return false;
}

bool cli_mebibytes(const cli *program, const char *name, const char *text, uint64_t *out_bytes) {
  uint64_t count;
  if (!cli_count(program, name, text, 1, UINT64_MAX >> 20, &count)) return false;
  *out_bytes = count << 20;
  return true;
}

bool cli_max_text(const cli *program, const char *argument, uint64_t *out_bytes) {
  return cli_mebibytes(program, "max-text", argument, out_bytes);
}

bool cli_names_input(const cli *program, const char *name, const char *text) {
  const size_t n = strlen(text);
  const char *equals = strchr(text, '=');
  const bool both = equals && equals > text && equals[1];
  if (both || (!equals && n >= 4 && strcmp(text + n - 4, ".npz") == 0)) return true;
  cli_usage(program, "--%s takes NAME=FILE, or an .npz; not \"%s\"", name, text);
  return false;
}

bool cli_repeated(const cli *program, const char *name, const char *text, const char **list,
                  size_t most, size_t *io_n) {
  if (*io_n == most) {
    cli_usage(program, "--%s may be given at most %zu times", name, most);
    return false;
  }
  list[(*io_n)++] = text;
  return true;
}
