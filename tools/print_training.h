/* The steps and the report of a training in words. */
#ifndef PSPLIT_TOOLS_PRINT_TRAINING_H
#define PSPLIT_TOOLS_PRINT_TRAINING_H

#include <psplit/train.h>
#include <stdio.h>

/* A line. */
void print_training_step(const psplit_train_step *step, FILE *out);

/* A row for each device, and how fast all were. */
void print_training_table(const psplit_train_report *report, FILE *out);

#endif
