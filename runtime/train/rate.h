/* Learning rates, as a function of the step. */
#ifndef PSPLIT_RUNTIME_TRAIN_RATE_H
#define PSPLIT_RUNTIME_TRAIN_RATE_H

#include <psplit/train.h>

/* Of step `step` (from 0) of n_steps. */
double psplit_i_rate_at(const psplit_train_options *options, uint64_t step, uint64_t n_steps);

/* What gradients are multiplied with so that their norm is at most `most` (0: any), as
 * torch.nn.utils.clip_grad_norm_ has it; at most 1. */
double psplit_i_clip_scale(double norm, double most);

#endif
