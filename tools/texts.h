/* Sizes, times and names as people read them, and other small things that all commands use. */
#ifndef PSPLIT_TOOLS_TEXTS_H
#define PSPLIT_TOOLS_TEXTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Room for one more item of `size` bytes behind the n of a list of malloc'd items, which may be
 * NULL while n is 0; NULL when out of memory (the list stays). */
void *cli_grow(void *items, size_t n, size_t size);

/* The number that an MPI launcher gave this process; NULL: none did. */
const char *cli_rank(void);

/* "1 stage", "2 stages": in `buffer` of CLI_COUNT bytes. */
enum { CLI_COUNT = 64 };
const char *cli_counted(uint64_t n, const char *what, char *buffer);

/* "12.3 MiB", "45.6 ms": three digits that matter, in `buffer` of CLI_TEXT bytes. */
enum { CLI_TEXT = 32 };
const char *cli_bytes(uint64_t bytes, char *buffer);
const char *cli_time(int64_t ns, char *buffer);

/* What a certificate of less than the bound says of messages that share a latency, point to point:
 * by shared memory all count. */
#define CLI_SOME_MESSAGES ", where not all messages need be counted"

/* A name from a model for a terminal, as psplit_make_printable has it. Truncates to fit `bytes`. */
const char *cli_printable(const char *text, char *buffer, size_t bytes);

/* Columns of names that are told apart by their ends, as devices often are: `width`, or what `text`
 * needs up to CLI_NAME - 1, whichever is more. */
enum { CLI_NAME = 49 };
int cli_width(int width, const char *text);

/* Seconds on a clock that only goes forward. */
double cli_now_s(void);

#endif
