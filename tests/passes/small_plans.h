/* Random small models and devices, and the best of all their splits by enumeration. What fails ends
 * the test. */
#ifndef PSPLIT_TESTS_SMALL_PLANS_H
#define PSPLIT_TESTS_SMALL_PLANS_H

#include "planner.h"

/* A stream of draws. */
typedef struct dice {
  uint64_t seed, at;
} dice;

uint32_t draw(dice *d, uint32_t below);
psplit_devices *parsed(const char *text);
/* The usual ones, on one thread; devices may be NULL. */
psplit_planner_options options_for(uint32_t n_stages, const psplit_devices *devices);
psplit_planner *unit_of(const psplit_model *model, const psplit_planner_options *options);
/* A plan by cutting between nodes; false where there is none. */
bool plan_of(psplit_planner *planner);

/* The text of a file of devices d0, d1, ..., behind the last of them: the links that are not
 * listed, then those that are. */
void begin_links(psplit_i_text *text, const char *bytes_per_second, uint32_t latency_ns);
void add_link(psplit_i_text *text, uint32_t from, uint32_t to, const char *bytes_per_second,
              uint32_t latency_ns);
/* The devices; frees the text. */
psplit_devices *end_links(psplit_i_text *text);

psplit_model *random_model(dice *d, uint32_t n_nodes);
/* Hosts and racks, links of their own, some missing, some devices slower, some with little memory.
 */
psplit_devices *random_devices(dice *d, uint32_t n);
/* The least value of all splits of the nodes, as their plans say it, with the devices in the order
 * that is given; INT64_MAX: none fits. */
int64_t best_of_all(const psplit_model *model, const psplit_planner_options *options);

#endif
