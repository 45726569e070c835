/* What the library advises, in the words of the commands. */
#include "advice.h"

#include <stdio.h>
#include <string.h>

/* [hint] What comes after the message. $1 is the hint's first argument; what stands in {} is for
 * each of them, $* in turn. */
static const char *const WORDS[PSPLIT_N_HINTS] = {
  [PSPLIT_HINT_REPLACE] = "; --force replaces it",
  [PSPLIT_HINT_FOLLOW_SYMLINKS] = "; --follow-symlinks allows that",
  [PSPLIT_HINT_MAX_GRAPH_BYTES] = "; --max-graph-memory raises the limit",
  [PSPLIT_HINT_DATA_DIRECTORY] = "; give the model as a file beside its data",
  [PSPLIT_HINT_INLINE_KNOWN] = "; its condition is constant: --inline-if $1=$2 takes it",
  [PSPLIT_HINT_INLINE_ASSUMED] =
    "; where it is known which one runs, --inline-if $1=then or --inline-if $1=else takes it",
  [PSPLIT_HINT_CONFIGURATION] = "; choose one with --configuration, or --ignore-annotations",
  [PSPLIT_HINT_IGNORE_ANNOTATIONS] = "; --ignore-annotations ignores all annotations",
  [PSPLIT_HINT_MORE_STAGES] = "; ask for $1 stages or more, or --ignore-annotations",
  [PSPLIT_HINT_TIED_DUPLICATE] = "; --tied-weights duplicate gives each stage its own",
  [PSPLIT_HINT_MEASURED_DIMS] = "; it was measured with{ --dim $*}",
  [PSPLIT_HINT_ALLOW_INVALID] = "; --allow-invalid plans it anyway",
  [PSPLIT_HINT_PASSES] = "; see --help-passes",
  [PSPLIT_HINT_COSTS_FILE] = ("; a costs file is what onnx-pipeline-run --profile writes "
                              "(docs/costs.schema.json), a profile "
                              "of ONNX Runtime, its node memory statistics, or Olive's cost model"),
  [PSPLIT_HINT_MEASURE_NODES] =
    "; onnx-pipeline-run --profile FILE MODEL measures the nodes for --costs FILE",
  [PSPLIT_HINT_MEASURE_PIPELINE] = "; onnx-pipeline-run DIR measures the whole pipeline",
  [PSPLIT_HINT_MEASURE_BOTH] =
    ("; onnx-pipeline-run --profile FILE MODEL measures the nodes for --costs FILE"
     "; onnx-pipeline-run DIR measures the whole pipeline"),
  [PSPLIT_HINT_BOUNDARY_IO] = "; --boundary io does without",
  [PSPLIT_HINT_WEIGHTS_EXTERNAL] = "; --weights external helps",
  [PSPLIT_HINT_REFERENCE_DIRECTORY] =
    "; give a directory that holds the model, or --weights external",
  [PSPLIT_HINT_ONNXRUNTIME] =
    ("; name one with --onnxruntime FILE or PSPLIT_ONNXRUNTIME; `npm install --ignore-scripts "
     "onnxruntime-node` has it as "
     "node_modules/onnxruntime-node/bin/napi-v6/linux/*/libonnxruntime.so.1"),
  [PSPLIT_HINT_MICRO_BATCHES] = ": --micro-batches",
  [PSPLIT_HINT_MAX_TEXT] = "; the limit is lifted by --max-text MIB",
  [PSPLIT_HINT_DROPOUT] = "; --dropout train or frozen says whether it drops",
  [PSPLIT_HINT_FEWER_MICRO_BATCHES] = "; the limit is lifted by fewer --micro-batches",
  [PSPLIT_HINT_INPUT] = ": --input $1=FILE, or --random",
  [PSPLIT_HINT_INPUT_SIZE] = ", with --dim or --shape",
  [PSPLIT_HINT_INPUT_SIZES] = "; see --dim and --shape",
  [PSPLIT_HINT_STREAM] = " and needs --stream",
  [PSPLIT_HINT_WEIGHT_INPUTS] =
    "; onnx-pipeline-split --trained-weights input makes plain inputs of them",
  [PSPLIT_HINT_TRAIN_DATA] = ": --data $1=FILE",
  [PSPLIT_HINT_WEIGHT_GRADIENTS] = "; onnx-pipeline-split --weight-gradients apart separates them",
  [PSPLIT_HINT_MAX_UNPACKED] = "; the limit is lifted by --max-unpacked MIB",
  [PSPLIT_HINT_TIME_LIMIT] = "; a larger --time-limit may find one",
  [PSPLIT_HINT_TIMEOUT] = " (see --timeout)",
  [PSPLIT_HINT_TRAINER] = "; onnx-pipeline-train runs them",
  [PSPLIT_HINT_TRAINING] = ("; onnx-pipeline-split --training --loss LOSS --optimizer adamw "
                            "--trained-weights input makes stages that do"),
  [PSPLIT_HINT_CUSTOM_OPS] = "; --custom-ops FILE gives it a library of custom operators",
  [PSPLIT_HINT_FEWER_STAGES] = "; ask for fewer stages",
  [PSPLIT_HINT_IDS] = ", or as --ids says",
  [PSPLIT_HINT_LOGITS] = ", and --logits names none",
  [PSPLIT_HINT_KEEP_TOGETHER] = "; --keep-together of onnx-pipeline-split keeps its nodes together",
  [PSPLIT_HINT_PINS] = "; --pin of onnx-pipeline-split cuts both alike",
  [PSPLIT_HINT_EXPORT] = "; onnx-pipeline-train --export writes trained weights into the model",
};

/* What comes before the message; no colon where that starts with the option's value. */
static const char *const OPTIONS[PSPLIT_N_SUBJECTS] = {
  [PSPLIT_SUBJECT_INLINE_IF] = "--inline-if ",
  [PSPLIT_SUBJECT_PIN] = "--pin ",
  [PSPLIT_SUBJECT_KEEP_TOGETHER] = "--keep-together ",
  [PSPLIT_SUBJECT_WEIGHTS] = "--weights ",
  [PSPLIT_SUBJECT_STATE] = "--state ",
  [PSPLIT_SUBJECT_SHAPE] = "--shape ",
  [PSPLIT_SUBJECT_NAME_TEMPLATE] = "--name-template ",
  [PSPLIT_SUBJECT_PASSES] = "--passes: ",
  [PSPLIT_SUBJECT_STOP_AFTER] = "--after: ",
  [PSPLIT_SUBJECT_SOLVER] = "--solver: ",
  [PSPLIT_SUBJECT_DIMS] = "--dim: ",
  [PSPLIT_SUBJECT_DECODE] = "--context: ",
  [PSPLIT_SUBJECT_IDS] = "--ids: ",
  [PSPLIT_SUBJECT_LOGITS] = "--logits: ",
  [PSPLIT_SUBJECT_BATCH_DIM] = "--batch-dim: ",
  [PSPLIT_SUBJECT_TRAIN_DATA] = "--data: ",
};

typedef struct line {
  char *text;
  size_t n, most;
} line;

static void add(line *out, const char *text, size_t n) {
  for (size_t i = 0; i < n && out->n + 1 < out->most; i++) out->text[out->n++] = text[i];
  out->text[out->n] = '\0';
}

static void add_text(line *out, const char *text) { add(out, text, strlen(text)); }

/* NAME=VALUE as a POSIX shell takes it for one word. */
static void add_word(line *out, const char *name, const char *value) {
  static const char PLAIN[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,+@%";
  const bool quoted = name[strspn(name, PLAIN)] != '\0';
  if (quoted) add_text(out, "'");
  for (const char *c = name; *c; c++)
    if (*c == '\'')
      add_text(out, "'\\''");
    else
      add(out, c, 1);
  add_text(out, "=");
  add_text(out, value);
  if (quoted) add_text(out, "'");
}

static void add_words(line *out, const psplit_diag *diag, const char *words) {
  const char *first = psplit_hint_argument(diag, 0), *loop = NULL;
  uint32_t i = 0;
  for (const char *c = words; *c; c++) {
    if (strncmp(c, "$1=$2", 5) == 0) {
      add_word(out, first, psplit_hint_argument(diag, 1));
      c += 4;
    } else if (strncmp(c, "$1=then", 7) == 0 || strncmp(c, "$1=else", 7) == 0) {
      add_word(out, first, c[3] == 't' ? "then" : "else");
      c += 6;
    } else if (strncmp(c, "$1", 2) == 0) {
      add_text(out, first);
      c++;
    } else if (strncmp(c, "$*", 2) == 0) {
      add_text(out, psplit_hint_argument(diag, i));
      c++;
    } else if (*c == '{') {
      loop = c;
    } else if (*c == '}') {
      if (++i < diag->n_hint_arguments && loop) c = loop;
    } else {
      add(out, c, 1);
    }
  }
}

/* Names of open sizes from argument `first` on; "..." stands for those that are left out. */
static void add_dimensions(line *out, const psplit_diag *diag, uint32_t first) {
  for (uint32_t i = first; i < diag->n_hint_arguments; i++) {
    const char *name = psplit_hint_argument(diag, i);
    const bool more = strcmp(name, "...") == 0;
    add_text(out, more ? " ..." : " --dim ");
    if (!more) add_word(out, name, "N");
  }
}

/* Sizes of one input, or of several: then its name is "". */
static void add_input_shape(line *out, const psplit_diag *diag) {
  const char *name = psplit_hint_argument(diag, 0);
  add_text(out, ":");
  add_dimensions(out, diag, 1);
  if (diag->n_hint_arguments > 1) add_text(out, ", or");
  add_text(out, " --shape ");
  if (*name)
    add_word(out, name, "...");
  else
    add_text(out, "INPUT=... for each input");
}

const char *cli_advice(const psplit_diag *diag, char *buffer, size_t bytes) {
  line out = {.text = buffer, .most = bytes};
  add(&out, "", 0);
  if ((unsigned)diag->subject < PSPLIT_N_SUBJECTS && OPTIONS[diag->subject])
    add_text(&out, OPTIONS[diag->subject]);
  add_text(&out, diag->message);
  if (diag->hint == PSPLIT_HINT_INPUT_SHAPE) {
    add_input_shape(&out, diag);
  } else if (diag->hint == PSPLIT_HINT_DIMS) {
    add_text(&out, "; pass");
    add_dimensions(&out, diag, 0);
    add_text(&out, " to cost them");
  } else if ((unsigned)diag->hint < PSPLIT_N_HINTS && WORDS[diag->hint]) {
    add_words(&out, diag, WORDS[diag->hint]);
  }
  return buffer;
}
