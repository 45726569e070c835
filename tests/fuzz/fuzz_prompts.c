/* Fuzz target: files of prompts, of lines of numbers or of JSON. Each is read to its end or to a
 * failure with a reason; tokens are never negative; a prompt that is written again is the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "prompt_line.h"
#include "prompts.h"

static void must(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

/* As a list of JSON. */
static void check_written(const prompt_ids *prompt) {
  enum { NUMBER_BYTES = 24 };
  prompt_ids again;
  size_t n = 0;
  char *text = malloc(prompt->n * NUMBER_BYTES + 64);
  if (!text) abort();
  n += (size_t)sprintf(text, "{\"prompt_ids\": [");
  for (size_t i = 0; i < prompt->n; i++)
    n += (size_t)sprintf(text + n, "%s%lld", i ? ", " : "", (long long)prompt->tokens[i]);
  sprintf(text + n, "]}");
  const char *wrong = prompt_line_parse(text, &again);
  must(!wrong, wrong ? wrong : "");
  must(again.n == prompt->n && !again.n_inputs && !again.max_new, "another prompt is read back");
  must(memcmp(again.tokens, prompt->tokens, again.n * sizeof *again.tokens) == 0, "other tokens");
  prompt_ids_fini(&again);
  free(text);
}

static void check(const prompt_ids *prompt) {
  must(prompt->n > 0, "an empty prompt");
  for (size_t i = 0; i < prompt->n; i++) must(prompt->tokens[i] >= 0, "a negative token");
  for (size_t i = 0; i < prompt->n_inputs; i++)
    must(prompt->inputs[i].input && prompt->inputs[i].path, "an input without a name or a file");
  check_written(prompt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static const volatile int go_on;
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  bool end = false;
  prompts_file file = {.fd = fuzz_file(data, n), .path = "prompts"};
  while (code == PSPLIT_OK && !end) {
    prompt_ids prompt = {0};
    code = prompts_next(&file, &go_on, &diag, &prompt, &end);
    if (code == PSPLIT_OK && !end) check(&prompt);
    prompt_ids_fini(&prompt);
  }
  must(code == PSPLIT_OK || code == PSPLIT_MALFORMED, "another failure");
  must((code == PSPLIT_OK) == !*diag.message, "a failure without a reason, or a reason for none");
  prompts_close(&file);
  return 0;
}
