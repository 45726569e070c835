#include "diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "text.h"

/* What analysers read in their place. */
#undef psplit_i_fail
#undef psplit_i_fail_about
#undef psplit_i_nomem

void psplit_make_printable(char *text) {
  unsigned char *c = (unsigned char *)text;
  for (size_t left = strlen(text); left;) {
    const size_t length = psplit_i_utf8_length(c, left);
    const size_t n = length ? length : 1;
    if (!psplit_i_printable_length(c, left)) memset(c, '?', n);
    c += n;
    left -= n;
  }
}

static void take_advice(psplit_diag *diag, const psplit_i_advice *advice) {
  size_t used = 0;
  diag->subject = advice->subject;
  diag->hint = advice->hint;
  diag->n_hint_arguments = 0;
  for (uint32_t i = 0; i < PSPLIT_HINT_ARGUMENTS && advice->arguments[i]; i++) {
    const size_t n = strlen(advice->arguments[i]);
    if (n >= sizeof diag->hint_arguments - used) break;
    memcpy(diag->hint_arguments + used, advice->arguments[i], n + 1);
    psplit_make_printable(diag->hint_arguments + used);
    used += n + 1;
    diag->n_hint_arguments++;
  }
  /* One that does not fit cannot be typed in part. */
  if (advice->arguments[0] && !diag->n_hint_arguments) diag->hint = PSPLIT_HINT_NONE;
}

/* A text that is too long loses its middle: who it is about stands at its beginning, and why at its
 * end. Without memory for all of it, its end. */
static void put_args(char out[PSPLIT_DIAG_BYTES], const char *format, va_list args)
  PSPLIT_PRINTF(2, 0);
static void put_args(char out[PSPLIT_DIAG_BYTES], const char *format, va_list args) {
  enum { HEAD = PSPLIT_DIAG_BYTES / 2, DOTS = 3, TAIL = PSPLIT_DIAG_BYTES - 1 - HEAD - DOTS };
  va_list again;
  va_copy(again, args);
  const psplit_i_plain_numbers numbers = psplit_i_plain_numbers_begin();
  const int n = vsnprintf(out, PSPLIT_DIAG_BYTES, format, args);
  char *whole = n >= PSPLIT_DIAG_BYTES ? malloc((size_t)n + 1) : NULL;
  if (whole) {
    vsnprintf(whole, (size_t)n + 1, format, again);
    memset(out + HEAD, '.', DOTS);
    memcpy(out + HEAD + DOTS, whole + n - TAIL, TAIL + 1);
  }
  free(whole);
  psplit_i_plain_numbers_end(numbers);
  va_end(again);
}

static void put(char out[PSPLIT_DIAG_BYTES], const char *format, ...) PSPLIT_PRINTF(2, 3);
static void put(char out[PSPLIT_DIAG_BYTES], const char *format, ...) {
  va_list args;
  va_start(args, format);
  put_args(out, format, args);
  va_end(args);
}

static void set(psplit_diag *diag, psplit_code code, const psplit_i_advice *advice,
                const char *format, va_list args) PSPLIT_PRINTF(4, 0);
static void set(psplit_diag *diag, psplit_code code, const psplit_i_advice *advice,
                const char *format, va_list args) {
  put_args(diag->message, format, args);
  psplit_make_printable(diag->message);
  take_advice(diag, advice);
  diag->code = code;
}

psplit_code psplit_i_fail(psplit_diag *diag, psplit_code code, const char *format, ...) {
  if (!diag || diag->code != PSPLIT_OK) return code;
  va_list args;
  va_start(args, format);
  set(diag, code, &(psplit_i_advice){0}, format, args);
  va_end(args);
  return code;
}

psplit_code psplit_i_fail_about(psplit_diag *diag, psplit_code code, psplit_i_advice advice,
                                const char *format, ...) {
  if (!diag || diag->code != PSPLIT_OK) return code;
  va_list args;
  va_start(args, format);
  set(diag, code, &advice, format, args);
  va_end(args);
  return code;
}

psplit_code psplit_i_fail_as(psplit_diag *diag, const psplit_diag *from) {
  if (diag && diag->code == PSPLIT_OK) *diag = *from;
  return from->code;
}

psplit_code psplit_diag_fail(psplit_diag *diag, psplit_code code, const char *format, ...) {
  if (!diag || diag->code != PSPLIT_OK) return code;
  va_list args;
  va_start(args, format);
  set(diag, code, &(psplit_i_advice){0}, format, args);
  va_end(args);
  return code;
}

/* Whether there is a failure that has a place. */
static bool is_placed(const psplit_diag *diag) {
  return diag && diag->code != PSPLIT_OK && diag->code != PSPLIT_CANCELLED;
}

static void join(psplit_diag *diag, const char *first, const char *between, const char *second) {
  char joined[PSPLIT_DIAG_BYTES];
  put(joined, "%s%s%s", first, between, second);
  psplit_make_printable(joined);
  memcpy(diag->message, joined, strlen(joined) + 1);
}

void psplit_i_diag_context(psplit_diag *diag, const char *format, ...) {
  if (!is_placed(diag)) return;
  char context[PSPLIT_DIAG_BYTES];
  va_list args;
  va_start(args, format);
  put_args(context, format, args);
  va_end(args);
  join(diag, context, ": ", diag->message);
}

bool psplit_i_diag_show(psplit_diag *diag, const char *hidden, const char *shown) {
  char *at = is_placed(diag) && *hidden ? strstr(diag->message, hidden) : NULL;
  if (!at) return false;
  const char *rest = at + strlen(hidden);
  *at = '\0';
  join(diag, diag->message, shown, rest);
  return true;
}

void psplit_i_diag_add(psplit_diag *diag, const char *format, ...) {
  if (!is_placed(diag)) return;
  char more[PSPLIT_DIAG_BYTES];
  va_list args;
  va_start(args, format);
  put_args(more, format, args);
  va_end(args);
  join(diag, diag->message, "; ", more);
}

psplit_code psplit_i_nomem(psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_NOMEM, "out of memory");
}

void psplit_i_say(const psplit_logger *logger, psplit_severity severity, const char *format, ...) {
  if (!logger || !logger->emit) return;
  char line[PSPLIT_DIAG_BYTES];
  va_list args;
  va_start(args, format);
  put_args(line, format, args);
  va_end(args);
  psplit_make_printable(line);
  logger->emit(logger->user, severity, line);
}

void psplit_i_advise(const psplit_logger *logger, psplit_severity severity, psplit_i_advice advice,
                     const char *format, ...) {
  if (!logger) return;
  psplit_diag what;
  va_list args;
  va_start(args, format);
  set(&what, PSPLIT_OK, &advice, format, args);
  va_end(args);
  if (logger->advise) {
    logger->advise(logger->user, severity, &what);
    return;
  }
  const char *help = psplit_hint_text(what.hint);
  psplit_i_say(logger, severity, "%.1200s%s%s", what.message, help ? "; " : "", help ? help : "");
}

const char *psplit_code_name(psplit_code code) {
  switch (code) {
    case PSPLIT_OK: return "OK";
    case PSPLIT_NOMEM: return "NOMEM";
    case PSPLIT_IO: return "IO";
    case PSPLIT_MALFORMED: return "MALFORMED";
    case PSPLIT_INVALID: return "INVALID";
    case PSPLIT_UNSUPPORTED: return "UNSUPPORTED";
    case PSPLIT_LIMIT: return "LIMIT";
    case PSPLIT_INFEASIBLE: return "INFEASIBLE";
    case PSPLIT_PLUGIN: return "PLUGIN";
    case PSPLIT_USAGE: return "USAGE";
    case PSPLIT_MISMATCH: return "MISMATCH";
    case PSPLIT_INTERNAL: return "INTERNAL";
    case PSPLIT_CANCELLED: return "CANCELLED";
  }
  return "UNKNOWN";
}

const char *psplit_subject_name(psplit_subject subject) {
  switch (subject) {
    case PSPLIT_SUBJECT_INLINE_IF: return "psplit_read_options.inline_ifs";
    case PSPLIT_SUBJECT_PIN: return "psplit_planner_options.pins";
    case PSPLIT_SUBJECT_KEEP_TOGETHER: return "psplit_planner_options.keep_together";
    case PSPLIT_SUBJECT_WEIGHTS: return "psplit_emit_options.weights";
    case PSPLIT_SUBJECT_STATE: return "psplit_planner_options.states";
    case PSPLIT_SUBJECT_SHAPE: return "psplit_planner_options.shapes";
    case PSPLIT_SUBJECT_NAME_TEMPLATE: return "psplit_emit_options.name_template";
    case PSPLIT_SUBJECT_PASSES: return "psplit_planner_run.text";
    case PSPLIT_SUBJECT_STOP_AFTER: return "psplit_planner_options.stop_after";
    case PSPLIT_SUBJECT_SOLVER: return "psplit_planner_options.solver";
    case PSPLIT_SUBJECT_DIMS: return "psplit_planner_options.dims";
    case PSPLIT_SUBJECT_DECODE: return "psplit_planner_options.decode";
    case PSPLIT_SUBJECT_IDS: return "psplit_generator_options.ids";
    case PSPLIT_SUBJECT_LOGITS: return "psplit_generator_options.logits";
    case PSPLIT_SUBJECT_BATCH_DIM: return "psplit_service_options.batch_dim";
    case PSPLIT_SUBJECT_TRAIN_DATA: return "psplit_train_options.data";
    case PSPLIT_SUBJECT_NONE:
    case PSPLIT_N_SUBJECTS: break;
  }
  return NULL;
}

const char *psplit_hint_text(psplit_hint hint) {
  static const char *const TEXTS[PSPLIT_N_HINTS] = {
    [PSPLIT_HINT_REPLACE] = "psplit_emit_options.replace allows that",
    [PSPLIT_HINT_FOLLOW_SYMLINKS] = "psplit_read_options.follow_symlinks allows that",
    [PSPLIT_HINT_MAX_GRAPH_BYTES] = "psplit_read_options.max_graph_bytes raises the limit",
    [PSPLIT_HINT_DATA_DIRECTORY] = "psplit_read_options.data_directory names it",
    [PSPLIT_HINT_INLINE_KNOWN] =
      "its condition is constant: psplit_read_options.inline_ifs can take it",
    [PSPLIT_HINT_INLINE_ASSUMED] =
      "where it is known which one runs, psplit_read_options.inline_ifs can take it",
    [PSPLIT_HINT_CONFIGURATION] =
      "psplit_planner_options.configuration chooses one, ignore_annotations ignores all",
    [PSPLIT_HINT_IGNORE_ANNOTATIONS] =
      "psplit_planner_options.ignore_annotations ignores all annotations",
    [PSPLIT_HINT_MORE_STAGES] =
      "psplit_planner_options.n_stages or ignore_annotations would have to change",
    [PSPLIT_HINT_TIED_DUPLICATE] =
      "PSPLIT_TIED_DUPLICATE in psplit_planner_options.tied_weights gives each stage its own",
    [PSPLIT_HINT_DIMS] = "psplit_planner_options.dims fixes them",
    [PSPLIT_HINT_MEASURED_DIMS] = "psplit_planner_options.dims can give the same",
    [PSPLIT_HINT_ALLOW_INVALID] = "psplit_planner_options.allow_invalid plans it anyway",
    [PSPLIT_HINT_PASSES] = "psplit_passes_help() lists them",
    [PSPLIT_HINT_COSTS_FILE] = "docs/costs/measured.md says what a costs file is",
    [PSPLIT_HINT_MEASURE_NODES] = "measured costs of the nodes would tell",
    [PSPLIT_HINT_MEASURE_PIPELINE] = "a run of the whole pipeline would tell",
    [PSPLIT_HINT_MEASURE_BOTH] =
      "measured costs of the nodes would tell, and a run of the whole pipeline",
    [PSPLIT_HINT_BOUNDARY_IO] = "PSPLIT_BOUNDARY_IO in psplit_emit_options.boundary does without",
    [PSPLIT_HINT_WEIGHTS_EXTERNAL] = "PSPLIT_WEIGHTS_EXTERNAL in psplit_emit_options.weights helps",
    [PSPLIT_HINT_REFERENCE_DIRECTORY] =
      "give a directory that holds the model, or PSPLIT_WEIGHTS_EXTERNAL",
    [PSPLIT_HINT_ONNXRUNTIME] = "PSPLIT_ONNXRUNTIME can name the library",
    [PSPLIT_HINT_MICRO_BATCHES] = "give a number of micro-batches",
    [PSPLIT_HINT_INPUT] = "give a file, or ask for random numbers",
    [PSPLIT_HINT_INPUT_SIZE] = "give its dimensions or its shape",
    [PSPLIT_HINT_INPUT_SHAPE] = "give its dimensions or its shape",
    [PSPLIT_HINT_INPUT_SIZES] = "look at its dimensions and its shape",
    [PSPLIT_HINT_STREAM] = "ask for a stream",
    [PSPLIT_HINT_TIMEOUT] = "a longer timeout may help",
    [PSPLIT_HINT_MAX_TEXT] = "max_text_bytes (max_bytes for files) raises the limit",
    [PSPLIT_HINT_FEWER_MICRO_BATCHES] = "fewer micro-batches stay within it",
    [PSPLIT_HINT_WEIGHT_INPUTS] =
      "PSPLIT_WEIGHTS_INPUT in psplit_training_form.weights does without",
    [PSPLIT_HINT_DROPOUT] = "psplit_training_options.dropout says whether it drops",
    [PSPLIT_HINT_TRAIN_DATA] = "psplit_train_options.data names a file for it",
    [PSPLIT_HINT_MAX_UNPACKED] =
      "max_unpacked_bytes of psplit_feed_options, or of psplit_train_options, raises the limit",
    [PSPLIT_HINT_TIME_LIMIT] = "a larger time_limit_s may find one",
    [PSPLIT_HINT_TRAINER] = "psplit_train runs them",
    [PSPLIT_HINT_TRAINING] =
      "psplit_training_form with PSPLIT_WEIGHTS_INPUT and an optimizer makes stages that do",
    [PSPLIT_HINT_CUSTOM_OPS] = "psplit_onnxruntime_add_custom_ops gives it a library of them",
    [PSPLIT_HINT_WEIGHT_GRADIENTS] =
      "PSPLIT_WEIGHT_GRADIENTS_APART in psplit_training_form.weight_gradients separates them",
    [PSPLIT_HINT_FEWER_STAGES] = "a smaller psplit_planner_options.n_stages may do",
    [PSPLIT_HINT_IDS] = "psplit_generator_options.ids can name it",
    [PSPLIT_HINT_LOGITS] = "psplit_generator_options.logits can name it",
    [PSPLIT_HINT_KEEP_TOGETHER] = "psplit_planner_options.keep_together keeps its nodes together",
    [PSPLIT_HINT_PINS] = "psplit_planner_options.pins can cut both alike",
    [PSPLIT_HINT_EXPORT] = "psplit_checkpoint_export writes trained weights into the model",
  };
  return (unsigned)hint < PSPLIT_N_HINTS ? TEXTS[hint] : NULL;
}

const char *psplit_hint_argument(const psplit_diag *diag, uint32_t index) {
  const char *at = diag->hint_arguments;
  if (index >= diag->n_hint_arguments) return "";
  for (uint32_t i = 0; i < index; i++) at += strlen(at) + 1;
  return at;
}

const char *psplit_version(void) { return PSPLIT_VERSION; }
