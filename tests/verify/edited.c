#include "edited.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <psplit/verify.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "text_model.h"

psplit_model *model;
static const char *const *paths;
static size_t n_files;
static char *texts[MOST_FILES];

static char *text_of_file(const char *path) {
  FILE *file = fopen(path, "rb");
  psplit_i_text text = {0};
  char buffer[4096];
  assert_non_null(file);
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;)
    psplit_i_text_add(&text, buffer, n);
  fclose(file);
  assert_false(text.failed);
  return text.bytes;
}

static char *text_of_model(const char *path) {
  psplit_diag diag = {0};
  psplit_model *stage;
  char *text;
  size_t n;
  psplit_print_text_options all = {.struct_size = sizeof all, .max_data_bytes = UINT64_MAX};
  if (psplit_model_open(path, NULL, &diag, &stage) != PSPLIT_OK) fail_msg("%s", diag.message);
  if (psplit_model_print_text(stage, &all, &diag, &text, &n) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_model_close(stage);
  return text;
}

static bool is_manifest(size_t file) { return strstr(paths[file], ".json") != NULL; }

void read_split(const char *const *files, size_t n) {
  paths = files;
  n_files = n;
  assert_true(n <= MOST_FILES);
  for (size_t f = 0; f < n; f++)
    texts[f] = is_manifest(f) ? text_of_file(paths[f]) : text_of_model(paths[f]);
}

void forget(void) {
  for (size_t f = 0; f < n_files; f++) free(texts[f]);
  psplit_model_close(model);
}

static void put(size_t f, const char *text) {
  if (!is_manifest(f)) {
    write_model_text(paths[f], text);
    return;
  }
  FILE *file = fopen(paths[f], "wb");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static void apply(const edited_split *spoilt) {
  char *now[MOST_FILES] = {0};
  for (int e = 0; e < MOST_EDITS && spoilt->edits[e].from; e++) {
    const edit *each = &spoilt->edits[e];
    const char *old = now[each->file] ? now[each->file] : texts[each->file];
    const char *at = each->behind ? strstr(old, each->behind) : old;
    at = at ? strstr(at, each->from) : NULL;
    if (!at) fail_msg("%s: no \"%s\" in %s", spoilt->says, each->from, old);
    psplit_i_text text = {0};
    psplit_i_text_add(&text, old, (size_t)(at - old));
    psplit_i_text_puts(&text, each->to);
    psplit_i_text_puts(&text, at + strlen(each->from));
    free(now[each->file]);
    now[each->file] = text.bytes;
  }
  for (size_t f = 0; f < n_files; f++) {
    put(f, now[f] ? now[f] : texts[f]);
    free(now[f]);
  }
}

static void count(void *user, uint32_t stage, const char *difference) {
  assert_true(stage < 2 && *difference);
  ++*(unsigned *)user;
}

/* Stage by stage: some are told, or the whole is not a model's. */
static void is_told_by_stage(const edited_split *spoilt) {
  psplit_diag diag = {0};
  unsigned n = 0;
  const psplit_changed_stage changed = {.tell = count, .user = &n};
  const psplit_code code = psplit_verify_stages("out", model, NULL, &changed, &diag);
  if (spoilt->code == PSPLIT_OK ? code != PSPLIT_OK || n
                                : !(code == spoilt->code || (code == PSPLIT_OK && n)))
    fail_msg("%s: stage by stage: %s: %s, %u told", spoilt->says, psplit_code_name(code),
             diag.message, n);
}

void each_is_told(const edited_split *cases, size_t n, bool by_stage) {
  for (size_t i = 0; i < n; i++) {
    psplit_diag diag = {0};
    apply(&cases[i]);
    const psplit_code code = psplit_verify("out", model, NULL, &diag, NULL);
    if (code != cases[i].code || !strstr(diag.message, cases[i].says))
      fail_msg("case %zu: %s: %s, not: %s", i, psplit_code_name(code), diag.message, cases[i].says);
    if (by_stage) is_told_by_stage(&cases[i]);
  }
}
