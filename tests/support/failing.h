/* Allocations that fail when told to. A program that uses this is linked with failing_dep, whose
 * flags have the linker send the allocator's calls here. */
#ifndef PSPLIT_TESTS_FAILING_H
#define PSPLIT_TESTS_FAILING_H

#include <stdbool.h>

/* Lets the next `nth` allocations succeed and the one after them fail. */
void fail_allocation_after(long nth);
/* The next allocation of a chain of callers of which none has failed fails: failing_chains.h. */
void fail_new_allocation(void);
/* No allocation fails any more. Tells whether one has. */
bool stop_failing(void);
/* Counts one allocation more; whether it is the one to fail. For allocators of one's own. */
bool next_allocation_fails(void);
/* Blocks that are allocated and not freed. */
long live_blocks(void);

#endif
