#include "resume.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool resume_parse(const cli *program, const char *text, uint32_t *out_first) {
  uint64_t first;
  *out_first = PSPLIT_NONE;
  if (strcmp(text, "last") == 0) return true;
  if (!cli_count(program, "resume-from", text, 0, UINT32_MAX - 2, &first)) return false;
  *out_first = (uint32_t)first;
  return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Passes over a number as it is printed, without zeros before it. */
static bool take_number(const char **at, uint32_t *out) {
  uint64_t number = 0;
  if (!is_digit(**at) || (**at == '0' && is_digit((*at)[1]))) return false;
  for (; is_digit(**at) && number <= UINT32_MAX; (*at)++)
    number = number * 10 + (uint64_t)(**at - '0');
  *out = (uint32_t)number;
  return number <= UINT32_MAX;
}

/* MICROBATCH-OUTPUT.npy or .pb as one number; UINT64_MAX: it is another file. */
static uint64_t key_of(const char *name) {
  uint32_t micro_batch, output;
  const char *at = name;
  if (!take_number(&at, &micro_batch) || *at++ != '-' || !take_number(&at, &output))
    return UINT64_MAX;
  if (strcmp(at, ".npy") != 0 && strcmp(at, ".pb") != 0) return UINT64_MAX;
  return (uint64_t)micro_batch << 32 | output;
}

static int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static psplit_code list_keys(const char *directory, psplit_diag *diag, uint64_t **out_keys,
                             size_t *out_n) {
  DIR *d = opendir(directory);
  psplit_code code = PSPLIT_OK;
  uint64_t *keys = NULL;
  size_t n = 0;
  if (!d && errno != ENOENT)
    return psplit_diag_fail(diag, PSPLIT_IO, "%s: cannot be read: %s", directory, strerror(errno));
  for (struct dirent *entry; d && code == PSPLIT_OK && (entry = readdir(d));) {
    const uint64_t key = key_of(entry->d_name);
    if (key == UINT64_MAX) continue;
    uint64_t *grown = cli_grow(keys, n, sizeof *keys);
    if (grown) {
      keys = grown;
      keys[n++] = key;
    } else {
      code = cli_nomem(diag);
    }
  }
  if (d) closedir(d);
  if (n) qsort(keys, n, sizeof *keys, by_size);
  *out_keys = keys;
  *out_n = n;
  return code;
}

/* The micro-batches of sorted keys that have all their outputs. */
static uint32_t find_ranges(const uint64_t *keys, size_t n, uint32_t n_outputs,
                            psplit_range *ranges, uint32_t most) {
  uint32_t n_ranges = 0, n_here = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t micro_batch = keys[i] >> 32;
    if (i && keys[i - 1] >> 32 != micro_batch) n_here = 0;
    if (i && keys[i - 1] == keys[i]) continue; /* in two formats */
    if ((uint32_t)keys[i] != n_here || ++n_here != n_outputs) continue;
    if (n_ranges && ranges[n_ranges - 1].last + 1 == micro_batch)
      ranges[n_ranges - 1].last = micro_batch;
    else if (n_ranges < most)
      ranges[n_ranges++] = (psplit_range){micro_batch, micro_batch};
  }
  return n_ranges;
}

psplit_code resume_find(const char *directory, uint32_t n_outputs, FILE *out, psplit_diag *diag,
                        uint32_t *out_first) {
  psplit_range ranges[PSPLIT_MOST_RANGES];
  uint64_t *keys = NULL;
  size_t n = 0;
  const psplit_code code = list_keys(directory, diag, &keys, &n);
  const uint32_t n_ranges =
    code == PSPLIT_OK ? find_ranges(keys, n, n_outputs, ranges, PSPLIT_MOST_RANGES) : 0;
  free(keys);
  if (code != PSPLIT_OK) return code;
  *out_first = n_ranges && ranges[0].first == 0 ? (uint32_t)ranges[0].last + 1 : 0;
  if (!out) return code;
  fprintf(out, "%s holds micro-batches ", directory);
  resume_print_ranges(ranges, n_ranges, out);
  fprintf(out, "; going on with %" PRIu32 "\n", *out_first);
  return code;
}

void resume_print_ranges(const psplit_range *ranges, uint32_t n, FILE *out) {
  if (!n) fputs("none", out);
  for (uint32_t i = 0; i < n; i++) {
    fprintf(out, "%s%" PRIu64, i ? ", " : "", ranges[i].first);
    if (ranges[i].last != ranges[i].first) fprintf(out, "-%" PRIu64, ranges[i].last);
  }
  if (n == PSPLIT_MOST_RANGES) fputs(", ...", out);
}

/* Where the first gap is, from `first` on. */
static uint64_t next_of(const psplit_range *ranges, uint32_t n, uint32_t first) {
  return n && ranges[0].first == first ? ranges[0].last + 1 : first;
}

void resume_tell(psplit_delivered *delivered, uint32_t first, FILE *out) {
  psplit_range ranges[PSPLIT_MOST_RANGES];
  uint64_t n_all;
  const uint32_t n = psplit_delivered_get(delivered, ranges, PSPLIT_MOST_RANGES, &n_all);
  if (!n_all) return;
  fprintf(out, "delivered: %" PRIu64 " micro-batch%s: ", n_all, n_all == 1 ? "" : "es");
  resume_print_ranges(ranges, n, out);
  fprintf(out, "; --resume-from %" PRIu64 " goes on\n", next_of(ranges, n, first));
}

void resume_tell_json(psplit_delivered *delivered, uint32_t first, const psplit_diag *why,
                      FILE *out) {
  psplit_range ranges[PSPLIT_MOST_RANGES];
  const uint32_t n = psplit_delivered_get(delivered, ranges, PSPLIT_MOST_RANGES, NULL);
  fputs("{\"error\": ", out);
  psplit_json_print(out, why->message, strlen(why->message));
  fprintf(out, ", \"code\": \"%s\", \"first_micro_batch\": %" PRIu32 ", \"delivered\": [",
          psplit_code_name(why->code), first);
  for (uint32_t i = 0; i < n; i++)
    fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "", ranges[i].first, ranges[i].last);
  fprintf(out, "], \"resume_from\": %" PRIu64 "}\n", next_of(ranges, n, first));
}
