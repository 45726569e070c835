/* Going on with a run that ended early: which micro-batches it had delivered, and from where on the
 * rest is to be run. */
#ifndef PSPLIT_TOOLS_RESUME_H
#define PSPLIT_TOOLS_RESUME_H

#include <psplit/run.h>
#include <stdio.h>

#include "cli.h"

/* --resume-from N or "last", which is PSPLIT_NONE; false after an error line. */
bool resume_parse(const cli *program, const char *text, uint32_t *out_first);

/* The first micro-batch of which `directory`, where a run has put its outputs, has not all of the
 * n_outputs. Prints what is there to `out`, which may be NULL. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code resume_find(const char *directory, uint32_t n_outputs, FILE *out,
                                        psplit_diag *diag, uint32_t *out_first);

/* "0-41, 43-99" */
void resume_print_ranges(const psplit_range *ranges, uint32_t n, FILE *out);

/* Of a run that has failed with `why`: what it delivered, and how to go on, as a line for people or
 * as an object. Nothing is said to people where there is nothing. */
void resume_tell(psplit_delivered *delivered, uint32_t first, FILE *out);
void resume_tell_json(psplit_delivered *delivered, uint32_t first, const psplit_diag *why,
                      FILE *out);

#endif
