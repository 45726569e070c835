/* What the files of onnx-pipeline-split share: what it was asked for.
 *
 *   split_request.c  options, and which go together
 *   split_plan.c     from the model to a plan
 *   split_files.c    files beside DIR: whether they may be written, and writing them
 *   split_compare.c  a range of numbers of stages
 *   split.c          the way from the model to the files */
#ifndef PSPLIT_TOOLS_SPLIT_H
#define PSPLIT_TOOLS_SPLIT_H

#include <psplit/emit.h>
#include <psplit/passes.h>

#include "choose.h"
#include "cli.h"
#include "limits.h"
#include "plan_options.h"
#include "print_plan.h"
#include "targets.h"
#include "training_options.h"
#include "tune.h"
#include "undo.h"

typedef struct split_request {
  limits_options limits;
  choose_options choose;
  const char *model, *directory, *depfile, *annotate, *certificate, *clean;
  char problem[4096];        /* that the certificate is of: its file */
  uint32_t n_stages, last_k; /* a range of stages to plan where they differ */
  uint32_t n_micro_batches;
  psplit_annotation annotation;
  bool by_names;                /* --annotate-as names */
  bool formed;                  /* --annotate-as was given */
  const char *tuning, *running; /* options that only --autotune, or also --probe, has a use for */
  target target;
  psplit_emit_file file; /* of the target */
  plan_options plan;
  tune_settings tune;
  training_options training;
  psplit_emit_options emit;
  plan_report report;
  bool has_more; /* options besides --clean and those of all commands */
  bool plan_only, json, print_pipeline, help_passes, verify, quiet;
  const psplit_model *opened; /* MODEL */
  psplit_training *trained;   /* with --training */
  const planned *made;        /* its plan */
  undo *beside;               /* what was written beside DIR */
  double start_s;
  uint32_t n_rounds; /* of --autotune, once it has ended */
} split_request;

/* --- split_request.c --- */

/* Fills the request, which is all zero; 0 to go on, else the exit status. */
int split_parse(split_request *r, int argc, char **argv);
/* Whether no stages are made: something of the model itself is printed or written. */
static inline bool split_is_of_model(const split_request *r) {
  return r->training.print || r->training.lower || r->training.info;
}
static inline bool split_is_range(const split_request *r) { return r->last_k > r->n_stages; }

/* --- split_files.c --- */

/* Dimensions and inputs that MODEL does not have are mistakes. */
PSPLIT_MUST_USE psplit_code split_check_names(const split_request *r, psplit_diag *diag);
/* Whether the outputs can be written, before the work for them begins. */
PSPLIT_MUST_USE psplit_code split_check_outputs(const split_request *r, psplit_diag *diag);
/* The same for what only the plan tells: files of a split that stand among others, and those that
 * passes have read. */
PSPLIT_MUST_USE psplit_code split_check_planned_outputs(const split_request *r, uint32_t n_stages,
                                                        psplit_diag *diag);
/* Writes what stands beside DIR: before DIR appears, so that there is no DIR where it fails. */
PSPLIT_MUST_USE psplit_code split_write_beside(const split_request *r, psplit_diag *diag);
/* The same behind --verify: `accept` of psplit_emit_options, whose user is the request. */
PSPLIT_MUST_USE psplit_code split_accept(void *request, const char *directory, psplit_diag *diag);

/* --- split_plan.c --- */

/* Measures devices with --probe. */
PSPLIT_MUST_USE psplit_code split_probe(split_request *r, const psplit_model *model,
                                        psplit_diag *diag);
/* With --training: differentiates the model, which makes *io_subject what is planned. */
PSPLIT_MUST_USE psplit_code split_begin_training(split_request *r, const psplit_logger *logger,
                                                 const psplit_model **io_subject,
                                                 psplit_diag *diag);
/* *out_plan is the one in *out. Errors: those of the passes; USAGE (none of them partitions). */
PSPLIT_MUST_USE psplit_code split_make_plan(split_request *r, const psplit_model *subject,
                                            uint32_t n_stages, psplit_diag *diag, planned *out,
                                            const psplit_plan **out_plan);

/* --- split_compare.c --- */

/* What each number of stages of the range would give; one that has no plan says why and is passed.
 * Where none has one, it is the error of the last. */
PSPLIT_MUST_USE psplit_code split_compare(split_request *r, psplit_diag *diag);

#endif
