/* A random problem with its instance and automaton, on which parts of the solver can be called. */
#ifndef PSPLIT_TESTS_BED_H
#define PSPLIT_TESTS_BED_H

#include "assignment.h"
#include "closure.h"
#include "random_problem.h"

typedef struct bed {
  random_problem r;
  psplit_partition_options options; /* the default ones, on one thread */
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_closure closure;
  psplit_i_arena arena;
  psplit_i_assignment assignment;
} bed;

/* Of b->r, whatever it is; false, with nothing to end, where it contradicts itself. */
bool bed_take(bed *b);
void bed_fini(bed *b);
/* What the split on the bed takes by the definition; INT64_MAX: it is not valid. */
int64_t checked_value(const bed *b);

/* The problem that a text is. */
psplit_problem *parsed_problem(const char *text);

/* So much of n as the environment asks for, half of it by default: PSPLIT_PROPERTY_PERCENT. */
uint32_t percent(uint32_t n);

#endif
