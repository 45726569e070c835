#include "next_steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORD = 1024 };

/* Whether a terminal shows it as it is. */
static bool is_plain(const char *name) {
  char shown[WORD];
  return strlen(name) < sizeof shown && strcmp(cli_printable(name, shown, sizeof shown), name) == 0;
}

static bool are_plain(const split_request *r) {
  const psplit_planner_options *planner = &r->plan.planner;
  bool plain = is_plain(r->directory) && is_plain(r->model);
  for (size_t i = 0; i < planner->n_dims; i++) plain = plain && is_plain(planner->dims[i].name);
  for (size_t i = 0; i < planner->n_shapes; i++)
    plain = plain && is_plain(planner->shapes[i].input);
  return plain;
}

/* As a POSIX shell takes it for one word. */
static void put_word(const char *word) {
  static const char PLAIN[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%=";
  if (word[strspn(word, PLAIN)] == '\0') {
    fputs(word, stdout);
    return;
  }
  putchar('\'');
  for (const char *c = word; *c; c++)
    if (*c == '\'')
      fputs("'\\''", stdout);
    else
      putchar(*c);
  putchar('\'');
}

/* A name that begins with a dash would be an option. */
static void put_file(const char *name) {
  if (*name == '-') fputs("./", stdout);
  put_word(name);
}

static void put_dims(const psplit_planner_options *planner) {
  char word[WORD + 32];
  for (size_t i = 0; i < planner->n_dims; i++) {
    snprintf(word, sizeof word, "%s=%" PRId64, planner->dims[i].name, planner->dims[i].value);
    fputs(" --dim ", stdout);
    put_word(word);
  }
}

static void put_shapes(const psplit_planner_options *planner) {
  char word[WORD + 32 * PLAN_MAX_RANK];
  for (size_t i = 0; i < planner->n_shapes; i++) {
    const psplit_input_size *shape = &planner->shapes[i];
    int n = snprintf(word, sizeof word, "%s", shape->input);
    for (uint32_t k = 0; k < shape->n_dims; k++)
      n += snprintf(word + n, sizeof word - (size_t)n, "%c%" PRId64, k ? ',' : '=', shape->dims[k]);
    fputs(" --shape ", stdout);
    put_word(word);
  }
}

static void put_verify(const split_request *r) {
  fputs("  onnx-pipeline-verify ", stdout);
  put_file(r->directory);
  fputs(" --model ", stdout);
  put_file(r->model);
  puts(r->plan.read.follow_symlinks ? " --follow-symlinks" : "");
}

static void put_run(const split_request *r, const psplit_plan *plan) {
  const bool decodes = plan->n_states > 0;
  fputs(decodes ? "  onnx-pipeline-generate " : "  onnx-pipeline-run ", stdout);
  put_file(r->directory);
  fputs(decodes ? " --prompt-ids 1,2,3" : " --random --micro-batches 100", stdout);
  if (!decodes) put_dims(&r->plan.planner);
  if (!decodes) put_shapes(&r->plan.planner);
  putchar('\n');
}

void print_next_steps(const split_request *r, const psplit_plan *plan) {
  const bool runs = PSPLIT_HAS_RUNTIME && !r->trained; /* to train takes more than a line */
  if (!r->directory || r->plan_only || r->quiet || r->json || (r->verify && !runs)) return;
  if (isatty(STDOUT_FILENO) != 1 || !are_plain(r)) return;
  puts("\nnext:");
  if (!r->verify) put_verify(r);
  if (runs) put_run(r, plan);
}
