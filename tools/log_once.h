/* A logger that passes each line on once, for plans that are made again with other numbers of
 * stages. */
#ifndef PSPLIT_TOOLS_LOG_ONCE_H
#define PSPLIT_TOOLS_LOG_ONCE_H

#include <psplit/base.h>

typedef struct log_once log_once;

/* Passes lines on to `to`, which outlives it; progress always. After 64 lines, none is held back.
 * NULL when out of memory. */
log_once *log_once_create(const psplit_logger *to);
/* Valid until log_once_destroy(). */
const psplit_logger *log_once_logger(const log_once *log);
void log_once_destroy(log_once *log);

#endif
