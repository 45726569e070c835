/* Whether two names are one file. */
#ifndef PSPLIT_TOOLS_SAME_FILE_H
#define PSPLIT_TOOLS_SAME_FILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Whether the path leads to the file, or directory, of this status. Of devices and pipes there may
 * well be two users: never. */
bool cli_leads_to(const char *path, const struct stat *of);
bool cli_same_file(const char *a, const char *b);

#endif
