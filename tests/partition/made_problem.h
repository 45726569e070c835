/* Problems that tests make node by node: one kind of devices, tensors sent point to point. */
#ifndef PSPLIT_TESTS_MADE_PROBLEM_H
#define PSPLIT_TESTS_MADE_PROBLEM_H

#include "random_problem.h"

void begin_problem(random_problem *r, uint32_t n_devices);
/* Returns its number. */
uint32_t add_node(random_problem *r, int64_t ns);
/* A tensor for n consumers, to[n]; none if there are none. `ns`: to send and to receive. */
void add_net(random_problem *r, uint32_t producer, int64_t ns, const uint32_t *to, uint32_t n);

#endif
