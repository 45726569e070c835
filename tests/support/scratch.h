/* A directory for each test, as setup and teardown of cmocka: the test runs in it, its path is the
 * state, and it goes with all that is in it. */
#ifndef PSPLIT_TESTS_SCRATCH_H
#define PSPLIT_TESTS_SCRATCH_H

int enter_scratch(void **state);
int leave_scratch(void **state);

#endif
