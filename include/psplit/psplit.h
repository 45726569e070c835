/* What most programs need of libpsplit: a model in, one ONNX file per stage out, with the proof
 * that these are the model. docs/library.md has a whole program, samples/embed.c.
 *
 *   psplit_model_open          reads a model file: its structure, not its weights   (model.h)
 *   psplit_model_open_memory   the same for bytes in memory
 *   psplit_model_open_fd       the same for a file that is open
 *   psplit_model_close         closes it
 *   psplit_planner_create      ties a model to options: stages, devices, sizes      (passes.h)
 *   psplit_planner_run         finds a plan, the best it can prove or has time for
 *   psplit_planner_plan        the plan: loads, transfers, bound, speed-up          (plan.h)
 *   psplit_planner_destroy     frees both
 *   psplit_emit                writes the stages and pipeline.json                  (emit.h)
 *   psplit_verify              proves that files are the model, without running it  (verify.h)
 *
 * Each takes a psplit_diag, zeroed, which says on failure what failed, where, and what would help
 * (base.h). Options are structs with an init function; most have NULL for the defaults.
 *
 * Lifetimes: the model outlives the planner, and the planner its plan. Strings and devices of
 * psplit_planner_options are not copied and outlive the planner; those of all other options may go
 * when the call returns.
 * Threads: calls on distinct objects may run at the same time, and so may calls that take a model
 * as const; a planner is used by one thread at a time. */
#ifndef PSPLIT_PSPLIT_H
#define PSPLIT_PSPLIT_H

#include <psplit/base.h>
#include <psplit/devices.h>
#include <psplit/emit.h>
#include <psplit/model.h>
#include <psplit/passes.h>
#include <psplit/plan.h>
#include <psplit/verify.h>

#endif
