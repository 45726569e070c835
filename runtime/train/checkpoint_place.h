/* Locations of checkpoints, and hidden directories next to them; private to runtime/train. */
#ifndef PSPLIT_RUNTIME_TRAIN_CHECKPOINT_PLACE_H
#define PSPLIT_RUNTIME_TRAIN_CHECKPOINT_PLACE_H

#include "base.h"

#define PSPLIT_I_TRAINING_JSON "training.json"

/* A place: `target` without slashes at its end, its directory, and its last part, which hidden
 * names are for. */
typedef struct psplit_i_checkpoint_place {
  char *target, *parent;
  const char *name; /* in target */
} psplit_i_checkpoint_place;

/* Errors: USAGE (no name of its own: "", "/", "." or ".."), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_place_init(const char *path, psplit_diag *diag,
                                                           psplit_i_checkpoint_place *out);
void psplit_i_checkpoint_place_fini(psplit_i_checkpoint_place *place); /* a zeroed one is fine */

/* The name of a stage's file, "stage7.safetensors". */
enum { PSPLIT_I_STAGE_FILE_BYTES = 40 };
void psplit_i_stage_file(uint32_t stage, char out[PSPLIT_I_STAGE_FILE_BYTES]);
/* Whether a file of this name belongs to a checkpoint, or to one that was being written. */
bool psplit_i_is_checkpoint_file(const char *name);

/* Removes the files of a checkpoint below the directory `fd`, then `path`, which it is. Where there
 * is something else, that stays. */
void psplit_i_checkpoint_remove(int fd, const char *path);

/* The hidden directory that is complete and of the last step, if there is one; malloc'd, the
 * caller's. What is being moved at this moment is found too, unless `idle`, which also locks what
 * is found by *out_fd, the caller's to close. Errors: NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_checkpoint_find_hidden(const psplit_i_checkpoint_place *place,
                                                            bool idle, psplit_diag *diag,
                                                            char **out_path, int *out_fd);
/* Whether something is in the place by now, or hidden: who has found nothing looks again. */
bool psplit_i_checkpoint_is_about(const psplit_i_checkpoint_place *place);
/* Removes hidden directories that nobody locks, as far as that goes. */
void psplit_i_checkpoint_remove_stale(const psplit_i_checkpoint_place *place);

#endif
