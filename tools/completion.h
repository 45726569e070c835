/* Completions for shells: what there is to complete stands in the option tables. */
#ifndef PSPLIT_TOOLS_COMPLETION_H
#define PSPLIT_TOOLS_COMPLETION_H

#include "cli.h"

/* Prints the script that completes the program's options and their arguments in `shell`: bash, zsh
 * or fish. */
void completion_print(const cli *program, const char *shell, FILE *out);

#endif
