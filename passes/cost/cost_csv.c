/* Tables with commas: ONNX Runtime's node memory statistics (the session option
 * session.collect_node_memory_stats_to_file) and the cost model of Olive (olive
 * generate-cost-model). Neither quotes; a name may hold commas, numbers stand behind it. */
#include <string.h>

#include "cost_table.h"

static const struct {
  const char *head;
  psplit_i_cost_format format;
  uint32_t n_numbers;
} KINDS[] = {
  {"#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations",
   PSPLIT_I_COSTS_MEMORY, 4},
  {"module,num_params,num_bytes,num_flops", PSPLIT_I_COSTS_OLIVE, 3},
  {"module,num_params,num_bytes", PSPLIT_I_COSTS_OLIVE, 2},
};

/* Length of the first line, without what ends it; *out_next is where the next begins. */
static size_t line_length(const char *text, size_t n, size_t *out_next) {
  const char *end = memchr(text, '\n', n);
  size_t length = end ? (size_t)(end - text) : n;
  *out_next = end ? length + 1 : n;
  while (length && (text[length - 1] == '\r' || text[length - 1] == ' ')) length--;
  return length;
}

static size_t kind_of(const char *text, size_t n) {
  size_t next, kind = 0;
  const size_t length = line_length(text, n, &next);
  while (kind < sizeof KINDS / sizeof *KINDS &&
         (strlen(KINDS[kind].head) != length || memcmp(text, KINDS[kind].head, length) != 0))
    kind++;
  return kind;
}

bool psplit_i_cost_csv_known(const char *text, size_t n, psplit_i_cost_format *out_format) {
  const size_t kind = kind_of(text, n);
  if (kind == sizeof KINDS / sizeof *KINDS) return false;
  *out_format = KINDS[kind].format;
  return true;
}

/* Olive's bytes of weights in 4 bits may have a half: "12.5". The fraction is dropped. */
static bool read_number(const char *text, size_t n, uint64_t *out) {
  char digits[24];
  const char *dot = memchr(text, '.', n);
  if (dot) {
    for (const char *p = dot + 1; p < text + n; p++)
      if (*p < '0' || *p > '9') return false;
    n = (size_t)(dot - text);
  }
  if (n == 0 || n >= sizeof digits) return false;
  memcpy(digits, text, n);
  digits[n] = '\0';
  return psplit_i_parse_u64(digits, out);
}

static psplit_code read_line(const char *line, size_t n, size_t number, uint32_t n_numbers,
                             psplit_cost_table *table, psplit_diag *diag) {
  uint64_t numbers[4] = {0};
  size_t end = n;
  for (uint32_t i = n_numbers; i-- > 0;) {
    size_t comma = end;
    while (comma > 0 && line[comma - 1] != ',') comma--;
    if (comma == 0)
      return psplit_i_fail(diag, PSPLIT_INVALID, "line %zu: it has fewer than %u numbers", number,
                           n_numbers);
    if (!read_number(line + comma, end - comma, &numbers[i]))
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "line %zu: \"%.*s\" is not a number of bytes or operations", number,
                           (int)(end - comma < 40 ? end - comma : 40), line + comma);
    end = comma - 1;
  }
  psplit_i_cost_row *row = psplit_i_cost_table_add(table);
  if (!row) return psplit_i_nomem(diag);
  row->label = psplit_i_arena_strndup(&table->arena, line, end);
  if (!row->label) return psplit_i_nomem(diag);
  if (table->format == PSPLIT_I_COSTS_MEMORY) {
    row->workspace_bytes = numbers[3];
  } else {
    row->has_work = true;
    row->bytes = numbers[1];
    row->flops = n_numbers > 2 ? numbers[2] : 0;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_cost_csv_read(const char *text, size_t n, psplit_cost_table *table,
                                   psplit_diag *diag) {
  const uint32_t n_numbers = KINDS[kind_of(text, n)].n_numbers;
  psplit_code code = PSPLIT_OK;
  size_t at = 0, next, number = 1;
  for (; at < n; at += next, number++) {
    const size_t length = line_length(text + at, n - at, &next);
    if (number > 1 && length)
      PSPLIT_TRY(read_line(text + at, length, number, n_numbers, table, diag));
  }
out:
  return code;
}
