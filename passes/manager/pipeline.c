#include "pipeline.h"

#include "number.h"
#include "passes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugin.h"
#include "unknown.h"

static const char DEFAULT_PIPELINE[] =
  "infer-shapes,cost,mark,attach,fuse,coarsen,partition,replicate";

const char *psplit_default_pipeline(void) { return DEFAULT_PIPELINE; }

static psplit_code unknown_pass(const psplit_plugins *plugins, const char *name,
                                psplit_i_arena *arena, psplit_diag *diag) {
  psplit_i_text known = {0};
  size_t n = psplit_i_n_passes, n_all = n;
  while (psplit_i_plugins_pass(plugins, n_all - n)) n_all++;
  const char **names = PSPLIT_NEW(arena, const char *, n_all);
  if (!names) return psplit_i_nomem(diag);
  for (size_t p = 0; p < n_all; p++)
    names[p] = p < n ? psplit_i_passes[p]->name : psplit_i_plugins_pass(plugins, p - n)->name;
  psplit_i_add_names(&known, "there are", name, names, (uint32_t)n_all);
  const psplit_code code = known.failed
                             ? psplit_i_nomem(diag)
                             : psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_ABOUT(PASSES),
                                                   "unknown pass \"%s\"%s", name, known.bytes);
  psplit_i_text_fini(&known);
  return code;
}

static psplit_code unknown_option(const psplit_i_pass *pass, const char *word, psplit_diag *diag) {
  const char *names[PSPLIT_I_MAX_OPTIONS];
  psplit_i_text known = {0};
  for (size_t o = 0; o < pass->n_options; o++) names[o] = pass->options[o].name;
  psplit_i_add_names(&known, "it has", word, names, (uint32_t)pass->n_options);
  const psplit_code code =
    known.failed
      ? psplit_i_nomem(diag)
      : psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(PASSES),
                            "pass %s has no option \"%s\"%s", pass->name, word, known.bytes);
  psplit_i_text_fini(&known);
  return code;
}

/* One `option=value` of a pass. */
static psplit_code parse_option(const psplit_i_pass *pass, char *word, psplit_diag *diag,
                                psplit_i_step *step) {
  char *equals = strchr(word, '=');
  if (equals) *equals = '\0';
  for (size_t o = 0; o < pass->n_options; o++) {
    const psplit_i_option *option = &pass->options[o];
    if (strcmp(option->name, word) != 0) continue;
    /* A lone word switches a bool on. */
    const char *value = equals ? equals + 1 : option->type == PSPLIT_I_OPTION_BOOL ? "true" : "";
    if (psplit_i_option_parse(option, value, &step->values[o])) return PSPLIT_OK;
    if (option->type == PSPLIT_I_OPTION_INT || option->type == PSPLIT_I_OPTION_REAL)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "pass %s: %s takes a number from %.12g to %.12g, not \"%s\"", pass->name,
                           option->name, option->low, option->high, value);
    if (option->type == PSPLIT_I_OPTION_TEXT)
      return psplit_i_fail(diag, PSPLIT_USAGE, "pass %s: %s has no value", pass->name,
                           option->name);
    return psplit_i_fail(diag, PSPLIT_USAGE, "pass %s: %s takes true or false, not \"%s\"",
                         pass->name, option->name, value);
  }
  return unknown_option(pass, word, diag);
}

psplit_code psplit_i_pipeline_parse(const psplit_plugins *plugins, const char *text,
                                    psplit_i_arena *arena, psplit_diag *diag,
                                    psplit_i_pass_pipeline *out_pipeline) {
  psplit_code code;
  char *rest = psplit_i_arena_strndup(arena, text, strlen(text));
  psplit_i_step *steps = PSPLIT_NEW(arena, psplit_i_step, PSPLIT_I_MAX_STEPS);
  if (!rest || !steps) return psplit_i_nomem(diag);
  size_t n_steps = 0;
  while (rest && *text) {
    char *words = strsep(&rest, ",");
    char *name = strsep(&words, ":");
    if (n_steps == PSPLIT_I_MAX_STEPS)
      return psplit_i_fail(diag, PSPLIT_USAGE, "a pipeline has at most %d passes",
                           PSPLIT_I_MAX_STEPS);
    psplit_i_step *step = &steps[n_steps++];
    step->pass = psplit_i_pass_find(plugins, name, strlen(name));
    if (!step->pass) return unknown_pass(plugins, name, arena, diag);
    psplit_i_pass_defaults(step->pass, step->values);
    while (words) PSPLIT_TRY(parse_option(step->pass, strsep(&words, ":"), diag, step));
  }
  *out_pipeline = (psplit_i_pass_pipeline){.n_steps = n_steps, .steps = steps};
  return PSPLIT_OK;
out:
  return code;
}

static void print_real(psplit_i_text *out, double real) {
  char text[PSPLIT_I_NUMBER_BYTES];
  psplit_i_number_print(real, 12, PSPLIT_I_MOST_DIGITS, text);
  psplit_i_text_puts(out, text);
}

static void print_value(psplit_i_text *out, const psplit_i_option *option,
                        const psplit_i_option_value *value) {
  switch (option->type) {
    case PSPLIT_I_OPTION_INT: psplit_i_text_addf(out, "%" PRId64, value->integer); break;
    case PSPLIT_I_OPTION_REAL: print_real(out, value->real); break;
    case PSPLIT_I_OPTION_TEXT: psplit_i_text_puts(out, value->text); break;
    case PSPLIT_I_OPTION_BOOL: psplit_i_text_puts(out, value->boolean ? "true" : "false"); break;
  }
}

psplit_code psplit_pipeline_canonical(const char *text, psplit_diag *diag, char **out_text) {
  return psplit_plugins_canonical(NULL, text, diag, out_text);
}

psplit_code psplit_plugins_canonical(const psplit_plugins *plugins, const char *text,
                                     psplit_diag *diag, char **out_text) {
  psplit_code code;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_text out = {0};
  psplit_i_pass_pipeline pipeline = {0};
  PSPLIT_TRY(
    psplit_i_pipeline_parse(plugins, text ? text : DEFAULT_PIPELINE, &arena, diag, &pipeline));
  psplit_i_text_puts(&out, "");
  for (size_t s = 0; s < pipeline.n_steps; s++) {
    const psplit_i_pass *pass = pipeline.steps[s].pass;
    psplit_i_text_addf(&out, "%s%s", s ? "," : "", pass->name);
    for (size_t o = 0; o < pass->n_options; o++) {
      const bool unset =
        pass->options[o].type == PSPLIT_I_OPTION_TEXT && !*pipeline.steps[s].values[o].text;
      if (unset) continue;
      psplit_i_text_addf(&out, ":%s=", pass->options[o].name);
      print_value(&out, &pass->options[o], &pipeline.steps[s].values[o]);
    }
  }
  if (out.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_text = out.bytes;
  out.bytes = NULL;
out:
  psplit_i_text_fini(&out);
  psplit_i_arena_fini(&arena);
  return code;
}

static void add_help(psplit_i_text *out, const psplit_i_pass *pass) {
  psplit_i_text_addf(out, "%-14s %s\n", pass->name, pass->help);
  for (size_t o = 0; o < pass->n_options; o++) {
    const psplit_i_option *option = &pass->options[o];
    psplit_i_text_addf(out, "    %s=%s  %s", option->name, option->fallback, option->help);
    if (option->type == PSPLIT_I_OPTION_INT || option->type == PSPLIT_I_OPTION_REAL)
      psplit_i_text_addf(out, " (%.12g to %.12g)", option->low, option->high);
    psplit_i_text_puts(out, "\n");
  }
}

char *psplit_passes_help(void) { return psplit_plugins_help(NULL); }

char *psplit_plugins_help(const psplit_plugins *plugins) {
  psplit_i_text out = {0};
  for (size_t p = 0; p < psplit_i_n_passes; p++) add_help(&out, psplit_i_passes[p]);
  const psplit_i_pass *pass;
  for (size_t p = 0; (pass = psplit_i_plugins_pass(plugins, p)); p++) add_help(&out, pass);
  if (!out.failed) return out.bytes;
  psplit_i_text_fini(&out);
  return NULL;
}
