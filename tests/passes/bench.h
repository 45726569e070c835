/* A model text and a planner over it, on which tests run passes. */
#ifndef PSPLIT_TESTS_BENCH_H
#define PSPLIT_TESTS_BENCH_H

#include "planner.h"

typedef struct bench {
  psplit_model *model;
  psplit_planner *planner;
  const psplit_i_graph *graph;
} bench;

/* `options` may be NULL. */
bench start(const char *model, const psplit_planner_options *options);
void stop(bench *b);
/* A pipeline text, NULL: the default one; the test fails if it does. */
void run(bench *b, const char *pipeline);
/* Options for so many stages; groups are checked after every pass. */
psplit_planner_options stages(uint32_t n);
/* The node that makes a value, which there has to be. */
uint32_t node_of(const bench *b, const char *value);

#endif
