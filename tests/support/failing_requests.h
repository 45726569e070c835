/* Requests to arenas and tables of names that fail by the chain of callers that leads to them
 * (failing_chains.h): who asks through a function that many call is told from the others, and each
 * has an error to pass on. For programs of one thread that ask too often to have every request
 * fail, and that do the same each time until one does, linked with failing_requests_dep; without
 * these calls requests count as allocations (failing.h). */
#ifndef PSPLIT_TESTS_FAILING_REQUESTS_H
#define PSPLIT_TESTS_FAILING_REQUESTS_H

#include <stdbool.h>

/* From now on requests count as allocations no more. */
void fail_requests_by_chain(void);
/* The next request of a chain of which none has failed yet fails. */
void fail_new_request(void);
/* No request fails any more. Tells whether one has. */
bool stop_failing_requests(void);

#endif
