/* What the fuzz targets that plan and write splits share. */
#ifndef PSPLIT_TESTS_FUZZ_SPLITS_H
#define PSPLIT_TESTS_FUZZ_SPLITS_H

#include <psplit/emit.h>
#include <psplit/passes.h>
#include <psplit/training.h>

#include "fuzz.h"

enum { FUZZ_PATH_BYTES = 4096 };

/* Prints what `diag` says, and aborts. */
_Noreturn void fuzz_fail(const char *what, const psplit_diag *diag);
/* The same unless it holds. */
void fuzz_must(bool holds, const char *what, const psplit_diag *diag);
/* Aborts with the condition's text unless it holds. */
#define FUZZ_HOLDS(condition) fuzz_holds((condition), #condition)
void fuzz_holds(bool holds, const char *condition);

/* A number that differs for most inputs. */
uint32_t fuzz_hash(const uint8_t *data, size_t n);

/* `name` in a directory of this process in $TMPDIR, best in memory, which goes when it ends. */
void fuzz_path(const char *name, char out[FUZZ_PATH_BYTES]);
/* Removes a file, or a directory with all that is in it; nothing there is fine. */
void fuzz_remove(const char *path);

/* Opens the input as a model that holds itself as its external data; NULL: it is none. `fd` is
 * fuzz_file's. */
psplit_model *fuzz_open(int fd, const psplit_inline_if *ifs, size_t n_ifs, psplit_diag *diag);
/* A small model that does not change: what `text` says. */
psplit_model *fuzz_model_of(const char *text);

/* Options for n_stages, one thread and 0.02 s of work, with grouping checked after each pass. */
void fuzz_planner_options(psplit_planner_options *options, uint32_t n_stages);
/* Whether the model has such a split; what it lacks is a reason that users are told. Anything else
 * that goes wrong aborts. */
bool fuzz_plan(psplit_planner *planner);
/* Whether psplit_emit wrote `directory`; boundary and weights are drawn from `choice`. */
bool fuzz_emit(const psplit_model *model, const psplit_plan *plan, const char *directory,
               uint32_t choice);
/* Write two stages of a model for which nothing may go wrong; `form`: that train it by its output
 * "loss". */
void fuzz_must_split(const psplit_model *model, const char *directory, uint32_t choice);
void fuzz_must_train(const psplit_model *model, const char *directory,
                     const psplit_training_form *form);
#endif
