/* Result codes and diagnostics shared by every public header of libpsplit. */
#ifndef PSPLIT_BASE_H
#define PSPLIT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PSPLIT_API __attribute__((visibility("default")))
#define PSPLIT_MUST_USE __attribute__((warn_unused_result)) /* where psplit_code is returned */
#define PSPLIT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PSPLIT_API
#define PSPLIT_MUST_USE
#define PSPLIT_PRINTF(fmt, args)
#endif
/* On a type, so that it also covers callbacks and static functions. gcc has no such attribute. */
#if defined(__clang__)
#define PSPLIT_MUST_USE_TYPE PSPLIT_MUST_USE
#else
#define PSPLIT_MUST_USE_TYPE
#endif

/* Options: structs that start with `struct_size`, the caller's sizeof, so that a program compiled
 * against an older version keeps working: fields that it does not know have their defaults. Set by
 * their init functions, or by `{.struct_size = sizeof(psplit_read_options), ...}`; 0 is rejected
 * (USAGE), and so is a field that is set but newer than the library (UNSUPPORTED). NULL selects the
 * defaults where a function says so. */

/* `const volatile int *cancel` in options: set to non-zero, from any thread or a signal handler, it
 * ends the call early (CANCELLED); outputs are untouched then, and nothing is left behind. It is
 * polled many times per second and must stay valid until the call returns. NULL: the call cannot be
 * cancelled. */

/* The null id. All dense ids in this library are uint32_t and less than it. */
#define PSPLIT_NONE UINT32_MAX

typedef enum PSPLIT_MUST_USE_TYPE psplit_code {
  PSPLIT_OK = 0,
  PSPLIT_NOMEM,       /* the allocator refused, or a memory limit the caller set was reached */
  PSPLIT_IO,          /* the operating system could not read or write a file */
  PSPLIT_MALFORMED,   /* the bytes are not of the format that they claim (protobuf, JSON) */
  PSPLIT_INVALID,     /* well-formed, but violates a rule of ONNX or of the file format */
  PSPLIT_UNSUPPORTED, /* valid, but not handled by this version; never guessed at */
  PSPLIT_LIMIT,       /* a documented limit on size, depth or count was exceeded */
  PSPLIT_INFEASIBLE,  /* no split satisfies the constraints */
  PSPLIT_PLUGIN,      /* a pass plugin was refused or failed */
  PSPLIT_USAGE,       /* a meaningless option, pipeline text or argument */
  PSPLIT_MISMATCH,    /* a requested check failed */
  PSPLIT_INTERNAL,    /* a bug in this library; please report it */
  PSPLIT_CANCELLED    /* the flag `cancel` of the options was set; "interrupted" */
} psplit_code;

/* The field of an options struct that a message is about. For those up to NAME_TEMPLATE, the
 * message starts with its value. */
typedef enum psplit_subject {
  PSPLIT_SUBJECT_NONE = 0,
  PSPLIT_SUBJECT_INLINE_IF,     /* psplit_read_options.inline_ifs */
  PSPLIT_SUBJECT_PIN,           /* psplit_planner_options.pins */
  PSPLIT_SUBJECT_KEEP_TOGETHER, /* psplit_planner_options.keep_together */
  PSPLIT_SUBJECT_WEIGHTS,       /* psplit_emit_options.weights */
  PSPLIT_SUBJECT_STATE,         /* psplit_planner_options.states */
  PSPLIT_SUBJECT_SHAPE,         /* psplit_planner_options.shapes */
  PSPLIT_SUBJECT_NAME_TEMPLATE, /* psplit_emit_options.name_template */
  PSPLIT_SUBJECT_PASSES,        /* the pipeline of psplit_planner_run() */
  PSPLIT_SUBJECT_STOP_AFTER,    /* psplit_planner_options.stop_after */
  PSPLIT_SUBJECT_SOLVER,        /* psplit_planner_options.solver, psplit_partition_options.solver */
  PSPLIT_SUBJECT_DIMS,          /* psplit_planner_options.dims, psplit_feed_options.dims */
  PSPLIT_SUBJECT_DECODE,        /* psplit_planner_options.decode */
  PSPLIT_SUBJECT_IDS,           /* psplit_generator_options.ids */
  PSPLIT_SUBJECT_LOGITS,        /* psplit_generator_options.logits */
  PSPLIT_SUBJECT_BATCH_DIM,     /* psplit_service_options.batch_dim */
  PSPLIT_SUBJECT_TRAIN_DATA,    /* psplit_train_options.data */
  PSPLIT_N_SUBJECTS
} psplit_subject;

/* A remedy, for programs to express in terms of their own options. Arguments in brackets. */
typedef enum psplit_hint {
  PSPLIT_HINT_NONE = 0,
  PSPLIT_HINT_REPLACE,             /* permission to replace existing files */
  PSPLIT_HINT_FOLLOW_SYMLINKS,     /* psplit_read_options.follow_symlinks */
  PSPLIT_HINT_MAX_GRAPH_BYTES,     /* psplit_read_options.max_graph_bytes */
  PSPLIT_HINT_DATA_DIRECTORY,      /* psplit_read_options.data_directory */
  PSPLIT_HINT_INLINE_KNOWN,        /* inline_ifs: [If, branch]; the condition is constant */
  PSPLIT_HINT_INLINE_ASSUMED,      /* inline_ifs: [If], if the branch is known */
  PSPLIT_HINT_CONFIGURATION,       /* psplit_planner_options.configuration or ignore_annotations */
  PSPLIT_HINT_IGNORE_ANNOTATIONS,  /* psplit_planner_options.ignore_annotations */
  PSPLIT_HINT_MORE_STAGES,         /* n_stages or ignore_annotations: [a sufficient n_stages] */
  PSPLIT_HINT_TIED_DUPLICATE,      /* psplit_planner_options.tied_weights: PSPLIT_TIED_DUPLICATE */
  PSPLIT_HINT_DIMS,                /* psplit_planner_options.dims: [up to 6 names, "..." if more] */
  PSPLIT_HINT_MEASURED_DIMS,       /* dims: [NAME=VALUE ...] of a table of costs */
  PSPLIT_HINT_ALLOW_INVALID,       /* psplit_planner_options.allow_invalid */
  PSPLIT_HINT_PASSES,              /* the list of passes and their options: psplit_passes_help() */
  PSPLIT_HINT_COSTS_FILE,          /* pass the file as a table of costs */
  PSPLIT_HINT_MEASURE_NODES,       /* measured costs of the nodes: docs/costs.md */
  PSPLIT_HINT_MEASURE_PIPELINE,    /* measured costs of a run of the pipeline */
  PSPLIT_HINT_MEASURE_BOTH,        /* both of these */
  PSPLIT_HINT_BOUNDARY_IO,         /* psplit_emit_options.boundary: PSPLIT_BOUNDARY_IO */
  PSPLIT_HINT_WEIGHTS_EXTERNAL,    /* psplit_emit_options.weights: PSPLIT_WEIGHTS_EXTERNAL */
  PSPLIT_HINT_REFERENCE_DIRECTORY, /* another directory, or PSPLIT_WEIGHTS_EXTERNAL */
  /* The following concern running stages. */
  PSPLIT_HINT_ONNXRUNTIME,   /* the path of the ONNX Runtime library */
  PSPLIT_HINT_MICRO_BATCHES, /* the number of micro-batches */
  PSPLIT_HINT_INPUT,         /* a file or random numbers for an input: [its name] */
  PSPLIT_HINT_INPUT_SIZE,    /* the size of an input */
  /* Sizes of the input [name, dimensions ...]: up to 6, then "..."; name "": of several inputs. */
  PSPLIT_HINT_INPUT_SHAPE,
  PSPLIT_HINT_INPUT_SIZES,         /* the given size of an input is probably wrong */
  PSPLIT_HINT_STREAM,              /* input from a stream */
  PSPLIT_HINT_TIMEOUT,             /* a longer timeout for other ranks */
  PSPLIT_HINT_MAX_TEXT,            /* a larger limit on the size of text files */
  PSPLIT_HINT_FEWER_MICRO_BATCHES, /* a shorter run, whose profile is smaller */
  PSPLIT_HINT_WEIGHT_INPUTS,       /* psplit_training_form.weights: PSPLIT_WEIGHTS_INPUT */
  PSPLIT_HINT_DROPOUT,             /* psplit_training_options.dropout */
  PSPLIT_HINT_TRAIN_DATA,          /* psplit_train_options.data: [an input's name] */
  PSPLIT_HINT_WEIGHT_GRADIENTS,    /* psplit_training_form.weight_gradients: ..._APART */
  PSPLIT_HINT_MAX_UNPACKED,        /* psplit_feed_options.max_unpacked_bytes */
  /* With INFEASIBLE: in the time limit, no split was found, nor was it proved that there is
   * none. */
  PSPLIT_HINT_TIME_LIMIT, /* psplit_partition_options.time_limit_s, psplit_planner_options's */
  PSPLIT_HINT_TRAINER,    /* psplit_train, which the stages are made for */
  PSPLIT_HINT_TRAINING,   /* a split for training: weights as inputs, an optimizer */
  PSPLIT_HINT_CUSTOM_OPS, /* psplit_onnxruntime_add_custom_ops, for this operator */
  /* With INFEASIBLE: not all stages can have work, or fewer fit the memory of devices. */
  PSPLIT_HINT_FEWER_STAGES,  /* psplit_planner_options.n_stages */
  PSPLIT_HINT_IDS,           /* psplit_generator_options.ids */
  PSPLIT_HINT_LOGITS,        /* psplit_generator_options.logits */
  PSPLIT_HINT_KEEP_TOGETHER, /* psplit_planner_options.keep_together */
  PSPLIT_HINT_PINS,          /* psplit_planner_options.pins */
  PSPLIT_HINT_EXPORT,        /* psplit_checkpoint_export, of a checkpoint of a training run */
  PSPLIT_N_HINTS
} psplit_hint;

enum { PSPLIT_DIAG_BYTES = 1536, PSPLIT_HINT_BYTES = 1024, PSPLIT_HINT_ARGUMENTS = 8 };

/* The first failure of a call, in the caller's memory; never allocates. Must be zeroed before each
 * use.
 *
 * `message` is one line that says what failed and where. `hint` is a remedy, if it is an option,
 * which programs may have their own name for. */
typedef struct psplit_diag {
  psplit_code code;
  char message[PSPLIT_DIAG_BYTES];
  psplit_subject subject;
  psplit_hint hint;
  uint32_t n_hint_arguments;
  char hint_arguments[PSPLIT_HINT_BYTES]; /* concatenated, each NUL-terminated */
} psplit_diag;

/* Records a failure as the library does, as one printable line, unless `diag` (may be NULL) already
 * holds one; returns `code`. For callbacks, and for programs that check their own input. */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_diag_fail(psplit_diag *diag, psplit_code code,
                                                        const char *format, ...)
  PSPLIT_PRINTF(3, 4);

/* Replaces, in place, what could mislead a terminal or a reader by '?': control characters,
 * bidirectional controls, and bytes that are not UTF-8, such as a character truncated at the
 * end. */
PSPLIT_API void psplit_make_printable(char *text);
/* Prints n bytes as a JSON string with quotes. What psplit_make_printable would replace is escaped;
 * bytes that are not UTF-8 become U+FFFD. Allocates nothing. */
PSPLIT_API void psplit_json_print(FILE *out, const char *bytes, size_t n);

/* Short upper-case name of a code ("MALFORMED"). */
PSPLIT_API const char *psplit_code_name(psplit_code code);

/* A hint in terms of this API ("psplit_emit_options.replace allows that"); NULL for NONE. */
PSPLIT_API const char *psplit_hint_text(psplit_hint hint);
/* Name of the field that a subject denotes ("psplit_planner_options.pins"); NULL for NONE. */
PSPLIT_API const char *psplit_subject_name(psplit_subject subject);
/* An argument of a hint, "" beyond the last. */
PSPLIT_API const char *psplit_hint_argument(const psplit_diag *diag, uint32_t index);

/* Version of the library, "X.Y.Z". */
PSPLIT_API const char *psplit_version(void);

typedef enum psplit_severity { PSPLIT_NOTE, PSPLIT_WARNING, PSPLIT_PROGRESS } psplit_severity;

/* The name that `name` most likely stands for: equal except for case, within a small edit distance,
 * or one a prefix of the other; PSPLIT_NONE if none is near. */
PSPLIT_API uint32_t psplit_nearest_name(const char *name, const char *const *names, uint32_t n);

/* Identifies a file that is not UTF-8 text by its first n bytes, to be printed after "it is":
 * "UTF-16 text" or "compressed by gzip"; *out_helps is "; gunzip it first" or "". NULL: not
 * recognised. Static texts. */
PSPLIT_API const char *psplit_foreign_text(const char *bytes, size_t n, const char **out_helps);

/* Receives advice or progress, one line without a newline; libraries never print. May be NULL
 * wherever one is taken. Called from the thread that made the library call. */
typedef struct psplit_logger {
  void (*emit)(void *user, psplit_severity severity, const char *line);
  void *user;
  /* Called instead of `emit` for lines with a hint, so that programs can phrase the remedy; its
   * code is OK. NULL: such lines go to `emit`, with the hint in terms of this API. */
  void (*advise)(void *user, psplit_severity severity, const psplit_diag *advice);
} psplit_logger;

#ifdef __cplusplus
}
#endif
#endif
