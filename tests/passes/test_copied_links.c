/* Nodes that are computed again where links differ, or are missing: no split with such copies is
 * below the bound that is given for them. Told by enumeration. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>

#include "copied_plans.h"
#include "copies.h"
#include "links.h"

typedef struct counts {
  unsigned n_plans, n_helped, n_tight, n_close; /* the bound is the best, or within a tenth of it */
} counts;

static bool links_differ(psplit_planner *planner) {
  psplit_i_links links;
  assert_int_equal(psplit_i_links_find(planner, false, &planner->scratch, NULL, &links), PSPLIT_OK);
  psplit_i_arena_reset(&planner->scratch);
  return links.n > 1 || planner->next_hop;
}

static void compare_one(uint32_t m, psplit_planner *planner, counts *io) {
  psplit_diag diag = {0};
  copied_search s = {.planner = planner, .best_ns = INT64_MAX, .plain_ns = INT64_MAX};
  uint32_t stage[2 * MOST_NODES];
  int64_t bound_ns = 0;
  if (psplit_i_bound_with_copies(planner, &diag, &bound_ns, stage) != PSPLIT_OK)
    fail_msg("model %u: %s", m, diag.message);
  find_best_copied(&s);
  if (bound_ns > s.best_ns)
    fail_msg("model %u: the bound %ld is above %ld", m, (long)bound_ns, (long)s.best_ns);
  io->n_plans++;
  io->n_helped += s.best_ns < s.plain_ns;
  io->n_tight += bound_ns == s.best_ns;
  io->n_close += bound_ns >= s.best_ns - s.best_ns / 10;
}

/* Equal links, of which those between neighbours are there, and at least one is missing. */
static psplit_devices *devices_in_line(dice *d, uint32_t n) {
  psplit_i_text text = {0};
  psplit_i_text_puts(&text, "{\"devices\": [");
  for (uint32_t i = 0; i < n; i++)
    psplit_i_text_addf(&text, "%s{\"name\": \"d%u\", \"preset\": \"cpu\"}", i ? ", " : "", i);
  const char *speed = draw(d, 2) ? "1e9" : "1e10";
  begin_links(&text, speed, draw(d, 3) * 1000);
  bool any = false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i + 2; j < n; j++) {
      if (any && draw(d, 3) == 0) continue;
      add_link(&text, i, j, "0", 0);
      any = true;
    }
  return end_links(&text);
}

static counts compare(uint32_t n_models, uint32_t seed, bool line, psplit_message_latency latency) {
  counts found = {0};
  for (uint32_t m = 0; m < n_models; m++) {
    dice d = {seed + m, 0};
    const uint32_t n_stages = line ? 3 + draw(&d, 2) : 2 + draw(&d, 3);
    psplit_devices *devices = line ? devices_in_line(&d, n_stages) : random_devices(&d, n_stages);
    psplit_planner_options options = options_for(n_stages, devices);
    options.device_order = PSPLIT_DEVICE_ORDER_GIVEN;
    options.message_latency = latency;
    psplit_model *model = draw_model(&d, 4 + draw(&d, MOST_NODES - 3));
    psplit_planner *planner = unit_of(model, &options);
    if (planner->graph->n_nodes <= MOST_NODES + 2 && plan_of(planner) && links_differ(planner))
      compare_one(seed + m, planner, &found);
    psplit_planner_destroy(planner);
    psplit_model_close(model);
    psplit_devices_destroy(devices);
  }
  print_message("# of %u plans copies help in %u, the bound is the best in %u, and near it in %u\n",
                found.n_plans, found.n_helped, found.n_tight, found.n_close);
  return found;
}

/* If all that may be copied cost nothing, the bound would be near the best in one of twenty such
 * plans. */
static void no_split_is_below_the_bound(void **state) {
  (void)state;
  const counts found = compare(40, 0, false, PSPLIT_LATENCY_PER_TENSOR);
  assert_true(found.n_helped >= 8 && found.n_close >= 8);
}

static void none_is_where_latency_is_a_messages(void **state) {
  (void)state;
  const counts found = compare(40, 0, false, PSPLIT_LATENCY_PER_PAIR);
  assert_true(found.n_helped >= 8 && found.n_close >= 6);
}

/* What a stage copies was relayed by those in between all the same, and the bound was above the
 * best. */
static void none_is_where_links_are_missing(void **state) {
  (void)state;
  const counts found = compare(20, 60, true, PSPLIT_LATENCY_PER_TENSOR);
  assert_true(found.n_helped >= 5 && found.n_close >= 10);
  compare(20, 60, true, PSPLIT_LATENCY_PER_PAIR);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_split_is_below_the_bound),
    cmocka_unit_test(none_is_where_latency_is_a_messages),
    cmocka_unit_test(none_is_where_links_are_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
