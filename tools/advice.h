/* What the library advises, in the words of the commands: names of their options. */
#ifndef PSPLIT_TOOLS_ADVICE_H
#define PSPLIT_TOOLS_ADVICE_H

#include <psplit/base.h>

enum { CLI_ADVICE_BYTES = PSPLIT_DIAG_BYTES + 4 * PSPLIT_HINT_BYTES };

/* Subject, message and hint of a failure or of a line for a logger, as one line; truncated to fit.
 */
const char *cli_advice(const psplit_diag *diag, char *buffer, size_t bytes);

#endif
