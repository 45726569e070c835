/* Calls that fail by who makes them: each chain of callers has one of its calls fail, however often
 * it makes them. So each branch that a failure takes is reached, in as many runs as there are
 * chains, where one run for each call would be too many. Of allocations: failing.h; other calls
 * ask here. */
#ifndef PSPLIT_TESTS_FAILING_CHAINS_H
#define PSPLIT_TESTS_FAILING_CHAINS_H

#include <stdbool.h>

/* No chain has had a call fail. */
void forget_chains(void);
/* The next call of a chain of which none has failed fails. */
void fail_new_chain(void);
/* No call fails any more. Tells whether one has. */
bool stop_failing_chains(void);
/* Whether the call that its caller makes is the one to fail. */
bool next_chain_fails(void);

#endif
