/* Names of stages' files, from a template. Others read them in scripts and configurations, so they
 * are of characters that need no quoting anywhere. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base_name.h"
#include "emit.h"

#define FIELDS "{model}, {stage}, {stage:02}, {stages} and {stages:02}"
#define ENDING ".onnx"

/* Behind a name there may come what it is of training, and ".data". */
enum { MOST_BYTES = PSPLIT_I_FILE_NAME - sizeof ".backward_weights.data", MOST_DIGITS = 9 };

typedef enum field { FIELD_MODEL, FIELD_STAGE, FIELD_STAGES, FIELD_NONE } field;

static bool is_plain(char c) {
  const unsigned char byte = (unsigned char)c;
  return byte < 0x80 && (isalnum(byte) || c == '.' || c == '_' || c == '-');
}

/* The field between braces at `at`, how wide its number is written, and the bytes of it all. */
static field read_field(const char *at, int *out_width, size_t *out_bytes) {
  static const char *const NAMES[] = {"{model", "{stage", "{stages"};
  *out_width = 1;
  for (int f = 0; f < FIELD_NONE; f++) {
    const size_t n = strlen(NAMES[f]);
    if (strncmp(at, NAMES[f], n) != 0) continue;
    const char *rest = at + n;
    if (f != FIELD_MODEL && rest[0] == ':' && rest[1] == '0' && rest[2] > '0' && rest[2] <= '9') {
      *out_width = rest[2] - '0';
      rest += 3;
    }
    if (*rest != '}') continue;
    *out_bytes = (size_t)(rest - at) + 1;
    return (field)f;
  }
  return FIELD_NONE;
}

/* The model file's name without its folder and ending; other characters become '_'. */
static void add_model(const psplit_model *model, psplit_i_text *out) {
  const char *name = psplit_i_base_name(psplit_i_model_path(model));
  const char *dot = strchr(name, '.');
  const size_t n = dot ? (size_t)(dot - name) : strlen(name);
  if (!n || (n == 1 && *name == '-')) {
    psplit_i_text_puts(out, "model");
    return;
  }
  for (size_t i = 0; i < n; i++)
    psplit_i_text_addf(out, "%c", is_plain(name[i]) && (i || name[i] != '-') ? name[i] : '_');
}

static psplit_code wrong(const char *template, const char *why, psplit_diag *diag) {
  return psplit_i_fail_about(diag, PSPLIT_USAGE,
                             (psplit_i_advice){.subject = PSPLIT_SUBJECT_NAME_TEMPLATE}, "%s: %s",
                             template, why);
}

psplit_code psplit_i_stage_template_check(const char *template, psplit_diag *diag) {
  bool numbered = false;
  const size_t n = template ? strlen(template) : 0;
  if (!template) return PSPLIT_OK;
  if (n < sizeof ENDING || strcmp(template + n - strlen(ENDING), ENDING) != 0)
    return wrong(template, "names of stages end in " ENDING, diag);
  if (*template == '.' || *template == '-')
    return wrong(template, "a name begins neither with '.' nor with '-'", diag);
  for (const char *c = template; *c;) {
    int width;
    size_t bytes = 1;
    if (*c == '/') return wrong(template, "stages are in the directory itself: no '/'", diag);
    if (*c == '{') {
      const field which = read_field(c, &width, &bytes);
      if (which == FIELD_NONE) return wrong(template, "the fields are " FIELDS, diag);
      numbered |= which == FIELD_STAGE;
    } else if (!is_plain(*c)) {
      return wrong(template, "besides the fields " FIELDS " only letters, digits and ._-", diag);
    }
    c += bytes;
  }
  return numbered ? PSPLIT_OK
                  : wrong(template, "without {stage} all stages would have the same name", diag);
}

psplit_code psplit_i_stage_name(const psplit_model *model, const char *template, uint32_t stage,
                                uint32_t n_stages, psplit_diag *diag,
                                char out[PSPLIT_I_FILE_NAME]) {
  psplit_code code;
  psplit_i_text name = {0};
  if (!template) template = "stage{stage}" ENDING;
  PSPLIT_TRY(psplit_i_stage_template_check(template, diag));
  const char *c = template; /* it ends in something */
  do {
    int width = 1;
    size_t bytes = 1;
    switch (*c == '{' ? read_field(c, &width, &bytes) : FIELD_NONE) {
      case FIELD_MODEL: add_model(model, &name); break;
      case FIELD_STAGE: psplit_i_text_addf(&name, "%0*" PRIu32, width, stage); break;
      case FIELD_STAGES: psplit_i_text_addf(&name, "%0*" PRIu32, width, n_stages); break;
      case FIELD_NONE: psplit_i_text_addf(&name, "%c", *c); break;
    }
    c += bytes;
  } while (*c);
  if (name.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (name.n > MOST_BYTES)
    PSPLIT_FAIL(wrong(template, "a stage's name would take more bytes than files' names do", diag));
  memcpy(out, name.bytes, name.n + 1);
out:
  psplit_i_text_fini(&name);
  return code;
}

psplit_code psplit_i_stage_names(psplit_i_split *split, const char *template, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  const uint32_t n = split->plan->n_stages;
  const char **names = PSPLIT_NEW(&split->arena, const char *, n);
  if (!names) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < n; s++) {
    char name[PSPLIT_I_FILE_NAME];
    PSPLIT_TRY(psplit_i_stage_name(split->model, template, s, n, diag, name));
    names[s] = psplit_i_arena_strndup(&split->arena, name, strlen(name));
    if (!names[s]) PSPLIT_FAIL(psplit_i_nomem(diag));
  }
  split->stage_names = names;
out:
  return code;
}

void psplit_i_stage_name_of(const psplit_i_split *split, uint32_t stage, const char *what,
                            char out[PSPLIT_I_FILE_NAME]) {
  const char *name = split->stage_names[stage];
  snprintf(out, PSPLIT_I_FILE_NAME, "%.*s.%s" ENDING, (int)(strlen(name) - strlen(ENDING)), name,
           what);
}
