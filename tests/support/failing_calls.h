/* System calls that fail when told to, within one program. A program that uses this is linked with
 * failing_calls_dep, whose flags have the linker send the calls of our libraries here. Whole
 * commands, whose calls fail inside of the C library too: faults.c. Nothing is synced: such a
 * call succeeds at once. */
#ifndef PSPLIT_TESTS_FAILING_CALLS_H
#define PSPLIT_TESTS_FAILING_CALLS_H

#include <stdbool.h>

/* Lets the next `nth` calls through and has the one after them fail with errno `why`. */
void fail_call_after(long nth, int why);
/* A file system that cannot exchange files: all calls of renameat2 fail. */
void fail_exchanges(int why);
/* Has the call after the next `nth` set the flag of a user who cancels; none fails for that. */
void cancel_at_call(long nth, volatile int *flag);
/* How many calls were made since: of no use before it is set. */
long calls_since_cancelled(void);
/* No call fails any more. Tells whether one has. */
bool stop_failing_calls(void);

#endif
