/* Requests to arenas and tables of names that fail by the place in the code that makes them. For
 * programs of one thread that ask too often to have every request fail, linked with
 * failing_requests_dep; without these calls requests count as allocations (failing.h). */
#ifndef PSPLIT_TESTS_FAILING_REQUESTS_H
#define PSPLIT_TESTS_FAILING_REQUESTS_H

#include <stdbool.h>

/* From now on requests count as allocations no more. */
void fail_requests_by_place(void);
/* The next request from a place of which none has failed yet fails. O(places) for a request. */
void fail_new_place(void);
/* No request fails any more. Tells whether one has. */
bool stop_failing_places(void);

#endif
