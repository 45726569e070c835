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
#define PSPLIT_MUST_USE __attribute__((warn_unused_result)) /* on all that return psplit_code */
#define PSPLIT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PSPLIT_API
#define PSPLIT_MUST_USE
#define PSPLIT_PRINTF(fmt, args)
#endif
/* On a type: callbacks and static functions that return it count too. gcc has no such attribute. */
#if defined(__clang__)
#define PSPLIT_MUST_USE_TYPE PSPLIT_MUST_USE
#else
#define PSPLIT_MUST_USE_TYPE
#endif

/* Options: structs that start with `struct_size`, the caller's sizeof, so that a program which was
 * compiled against an older version goes on to work: what it does not know has its default. Their
 * init functions set it, or `{.struct_size = sizeof(psplit_read_options), ...}`; 0 is refused
 * (USAGE), and so is a field set that is newer than the library (UNSUPPORTED). NULL stands for the
 * defaults where a function says so. */

/* `const volatile int *cancel` in options: becomes non-zero, from any thread or a signal handler,
 * to end the call early (CANCELLED); outputs are untouched then, and nothing is left behind. It is
 * looked at many times a second and has to be there until the call returns. NULL: nothing does. */

/* An id that names nothing. Every dense id in this library is a uint32_t below it. */
#define PSPLIT_NONE UINT32_MAX

typedef enum PSPLIT_MUST_USE_TYPE psplit_code {
  PSPLIT_OK = 0,
  PSPLIT_NOMEM,       /* the allocator refused, or a memory limit the caller set was reached */
  PSPLIT_IO,          /* the operating system could not read or write a file */
  PSPLIT_MALFORMED,   /* bytes that are not what they claim to be (protobuf, JSON) */
  PSPLIT_INVALID,     /* well-formed bytes that break a rule of ONNX or of the file's own format */
  PSPLIT_UNSUPPORTED, /* valid input that this version does not handle; never guessed at */
  PSPLIT_LIMIT,       /* a documented limit on size, depth or count was exceeded */
  PSPLIT_INFEASIBLE,  /* no split satisfies the constraints */
  PSPLIT_PLUGIN,      /* a pass plugin was refused or failed */
  PSPLIT_USAGE,       /* an option, pipeline text or argument that cannot be meant */
  PSPLIT_MISMATCH,    /* a check that was asked for does not hold */
  PSPLIT_INTERNAL,    /* a bug in this library; please report it */
  PSPLIT_CANCELLED    /* the flag `cancel` of the options was set; "interrupted" */
} psplit_code;

/* The field of an options struct that a message is about; of those up to NAME_TEMPLATE the message
 * starts with its value. */
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

/* What would help, for programs to put in the words of their own options. [arguments]. */
typedef enum psplit_hint {
  PSPLIT_HINT_NONE = 0,
  PSPLIT_HINT_REPLACE,             /* leave to replace what is there */
  PSPLIT_HINT_FOLLOW_SYMLINKS,     /* psplit_read_options.follow_symlinks */
  PSPLIT_HINT_MAX_GRAPH_BYTES,     /* psplit_read_options.max_graph_bytes */
  PSPLIT_HINT_DATA_DIRECTORY,      /* psplit_read_options.data_directory */
  PSPLIT_HINT_INLINE_KNOWN,        /* inline_ifs: [If, branch]; the condition is constant */
  PSPLIT_HINT_INLINE_ASSUMED,      /* inline_ifs: [If]; where it is known which branch runs */
  PSPLIT_HINT_CONFIGURATION,       /* psplit_planner_options.configuration or ignore_annotations */
  PSPLIT_HINT_IGNORE_ANNOTATIONS,  /* psplit_planner_options.ignore_annotations */
  PSPLIT_HINT_MORE_STAGES,         /* n_stages or ignore_annotations: [n_stages that do] */
  PSPLIT_HINT_TIED_DUPLICATE,      /* psplit_planner_options.tied_weights: PSPLIT_TIED_DUPLICATE */
  PSPLIT_HINT_DIMS,                /* psplit_planner_options.dims: [up to 6 names, "..." if more] */
  PSPLIT_HINT_MEASURED_DIMS,       /* dims: [NAME=VALUE ...] that a table of costs is of */
  PSPLIT_HINT_ALLOW_INVALID,       /* psplit_planner_options.allow_invalid */
  PSPLIT_HINT_PASSES,              /* the list of passes and their options: psplit_passes_help() */
  PSPLIT_HINT_COSTS_FILE,          /* another file: a table of costs */
  PSPLIT_HINT_MEASURE_NODES,       /* measured costs of the nodes: docs/costs.md */
  PSPLIT_HINT_MEASURE_PIPELINE,    /* a run of the whole pipeline */
  PSPLIT_HINT_MEASURE_BOTH,        /* the two */
  PSPLIT_HINT_BOUNDARY_IO,         /* psplit_emit_options.boundary: PSPLIT_BOUNDARY_IO */
  PSPLIT_HINT_WEIGHTS_EXTERNAL,    /* psplit_emit_options.weights: PSPLIT_WEIGHTS_EXTERNAL */
  PSPLIT_HINT_REFERENCE_DIRECTORY, /* another directory, or PSPLIT_WEIGHTS_EXTERNAL */
  /* The rest is of running stages. */
  PSPLIT_HINT_ONNXRUNTIME,   /* where the library of ONNX Runtime is */
  PSPLIT_HINT_MICRO_BATCHES, /* how many micro-batches to run */
  PSPLIT_HINT_INPUT,         /* a file or random numbers for an input: [its name] */
  PSPLIT_HINT_INPUT_SIZE,    /* how large an input is */
  /* The same for the input [name, dimensions ...]: up to 6, "..." if more; name "": of several. */
  PSPLIT_HINT_INPUT_SHAPE,
  PSPLIT_HINT_INPUT_SIZES,         /* a look at what was given as the size of an input */
  PSPLIT_HINT_STREAM,              /* input from a stream */
  PSPLIT_HINT_TIMEOUT,             /* how long to wait for others */
  PSPLIT_HINT_MAX_TEXT,            /* the largest size of a text that is read */
  PSPLIT_HINT_FEWER_MICRO_BATCHES, /* a shorter run, whose profile is smaller */
  PSPLIT_HINT_WEIGHT_INPUTS,       /* psplit_training_form.weights: PSPLIT_WEIGHTS_INPUT */
  PSPLIT_HINT_DROPOUT,             /* psplit_training_options.dropout */
  PSPLIT_HINT_TRAIN_DATA,          /* psplit_train_options.data: [an input's name] */
  PSPLIT_HINT_WEIGHT_GRADIENTS,    /* psplit_training_form.weight_gradients: ..._APART */
  PSPLIT_HINT_MAX_UNPACKED,        /* psplit_feed_options.max_unpacked_bytes */
  /* INFEASIBLE with this one: no split was found in the time, nor proved that there is none. */
  PSPLIT_HINT_TIME_LIMIT, /* psplit_partition_options.time_limit_s, psplit_planner_options's */
  PSPLIT_HINT_TRAINER,    /* psplit_train: the stages are for it */
  PSPLIT_HINT_TRAINING,   /* a split by psplit_training_options, weights as inputs, an optimizer */
  PSPLIT_HINT_CUSTOM_OPS, /* psplit_onnxruntime_add_custom_ops: a library of the operator */
  PSPLIT_N_HINTS
} psplit_hint;

enum { PSPLIT_DIAG_BYTES = 1536, PSPLIT_HINT_BYTES = 1024, PSPLIT_HINT_ARGUMENTS = 8 };

/* The first failure of a call, in the caller's memory; never allocates. Zeroed before its first use
 * and before it is used again.
 * `message` says what failed and where, on one line; `hint` what would help, if that is one of the
 * options that a program has names of its own for. */
typedef struct psplit_diag {
  psplit_code code;
  char message[PSPLIT_DIAG_BYTES];
  psplit_subject subject;
  psplit_hint hint;
  uint32_t n_hint_arguments;
  char hint_arguments[PSPLIT_HINT_BYTES]; /* one after the other, each with its NUL */
} psplit_diag;

/* Describes a failure as the library does, in one printable line, unless `diag` (which may be NULL)
 * holds one already; returns `code`. For callbacks, and for programs that check what they hand on.
 */
PSPLIT_API PSPLIT_MUST_USE psplit_code psplit_diag_fail(psplit_diag *diag, psplit_code code,
                                                        const char *format, ...)
  PSPLIT_PRINTF(3, 4);

/* What a terminal or a reader may be misled by becomes '?', in place: control characters, those
 * that change the order in which others are read, and bytes that are not UTF-8, such as a character
 * that the end of `text` cut. */
PSPLIT_API void psplit_make_printable(char *text);
/* The n bytes as a string of JSON, quotes included: what psplit_make_printable would take away is
 * escaped, bytes that are not UTF-8 become U+FFFD. Allocates nothing. */
PSPLIT_API void psplit_json_print(FILE *out, const char *bytes, size_t n);

/* Short upper-case name of a code ("MALFORMED"). */
PSPLIT_API const char *psplit_code_name(psplit_code code);

/* A hint in words of this API ("psplit_emit_options.replace allows that"); NULL for NONE. */
PSPLIT_API const char *psplit_hint_text(psplit_hint hint);
/* The field that a subject stands for ("psplit_planner_options.pins"); NULL for NONE. */
PSPLIT_API const char *psplit_subject_name(psplit_subject subject);
/* An argument of a hint, "" beyond the last. */
PSPLIT_API const char *psplit_hint_argument(const psplit_diag *diag, uint32_t index);

/* Version of the library, "X.Y.Z". */
PSPLIT_API const char *psplit_version(void);

typedef enum psplit_severity { PSPLIT_NOTE, PSPLIT_WARNING, PSPLIT_PROGRESS } psplit_severity;

/* The name that was most likely meant by `name`: the same in another case, one that differs in few
 * letters, or one of which the other is the beginning; PSPLIT_NONE where none is near. */
PSPLIT_API uint32_t psplit_nearest_name(const char *name, const char *const *names, uint32_t n);

/* What a file is that is no UTF-8 text, by the n bytes that it begins with: "UTF-16 text" or
 * "compressed by gzip", behind "it is", and in *out_helps "; gunzip it first" or "". NULL: nothing
 * tells that it is something else. Static texts. */
PSPLIT_API const char *psplit_foreign_text(const char *bytes, size_t n, const char **out_helps);

/* Receives one line (no newline) of advice or progress; libraries never print.
 * May be NULL wherever one is taken. Called from the thread that made the library call. */
typedef struct psplit_logger {
  void (*emit)(void *user, psplit_severity severity, const char *line);
  void *user;
  /* Instead of `emit` for lines with a hint, for programs that have words of their own for it; its
   * code is OK. NULL: they go to `emit` with the hint in words of this API. */
  void (*advise)(void *user, psplit_severity severity, const psplit_diag *advice);
} psplit_logger;

#ifdef __cplusplus
}
#endif
#endif
