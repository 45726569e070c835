/* grouping.c against brute force: a merge is taken just where the quotient stays acyclic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "planner.h"

enum { MAX_NODES = 24 };

/* A random DAG: node i makes value i and reads values of earlier nodes. */
typedef struct random_graph {
  psplit_i_graph graph;
  psplit_i_node nodes[MAX_NODES];
  psplit_i_value values[MAX_NODES];
  uint32_t inputs[MAX_NODES][MAX_NODES], outputs[MAX_NODES], topo[MAX_NODES];
  uint32_t consumer_off[MAX_NODES + 1], consumers[MAX_NODES * MAX_NODES];
  uint8_t flags[MAX_NODES];
  uint32_t pin[MAX_NODES];
} random_graph;

static void make_graph(random_graph *r, uint64_t seed, uint32_t n, unsigned percent) {
  *r = (random_graph){0};
  uint64_t draw = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t n_inputs = 0;
    for (uint32_t j = 0; j < i; j++)
      if (psplit_i_splitmix64(seed, draw++) % 100 < percent) r->inputs[i][n_inputs++] = j;
    r->outputs[i] = r->topo[i] = i;
    r->pin[i] = PSPLIT_NONE;
    r->nodes[i] = (psplit_i_node){.name = "",
                                  .op_type = "Op",
                                  .domain = "",
                                  .overload = "",
                                  .inputs = r->inputs[i],
                                  .n_inputs = n_inputs,
                                  .outputs = &r->outputs[i],
                                  .n_outputs = 1};
    r->values[i] = (psplit_i_value){.name = "v", .producer = i};
  }
  for (uint32_t v = 0; v < n; v++) {
    r->consumer_off[v + 1] = r->consumer_off[v];
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t k = 0; k < r->nodes[i].n_inputs; k++)
        if (r->inputs[i][k] == v) r->consumers[r->consumer_off[v + 1]++] = i;
  }
  r->graph = (psplit_i_graph){.n_nodes = n,
                              .n_values = n,
                              .nodes = r->nodes,
                              .values = r->values,
                              .topo = r->topo,
                              .consumer_off = r->consumer_off,
                              .consumers = r->consumers};
}

/* Whether the quotient by `group` has no cycle: groups without a predecessor are taken away. */
static bool is_acyclic(const random_graph *r, const uint32_t *group) {
  const uint32_t n = r->graph.n_nodes;
  bool gone[MAX_NODES] = {0};
  for (bool progress = true; progress;) {
    progress = false;
    for (uint32_t g = 0; g < n; g++) {
      if (gone[g]) continue;
      bool waits = false;
      for (uint32_t i = 0; i < n && !waits; i++)
        for (uint32_t k = 0; k < r->nodes[i].n_inputs && group[i] == g; k++)
          if (group[r->inputs[i][k]] != g && !gone[group[r->inputs[i][k]]]) waits = true;
      if (!waits) gone[g] = progress = true;
    }
  }
  for (uint32_t g = 0; g < n; g++)
    if (!gone[g]) return false;
  return true;
}

static bool merges(psplit_i_grouping *grouping, const uint32_t *nodes, uint32_t n) {
  psplit_diag diag = {0};
  bool merged;
  assert_int_equal(psplit_i_group_merge(grouping, nodes, n, &diag, &merged), PSPLIT_OK);
  return merged;
}

static void merges_are_exact(void **state) {
  (void)state;
  uint32_t n_taken = 0, n_refused = 0;
  for (uint64_t seed = 0; seed < 3000; seed++) {
    static random_graph r;
    const uint32_t n = 2 + (uint32_t)(psplit_i_splitmix64(seed, 999) % (MAX_NODES - 1));
    make_graph(&r, seed, n, 5 + (unsigned)(seed % 40));
    psplit_i_arena arena;
    psplit_i_arena_init(&arena, 0);
    psplit_i_grouping grouping;
    assert_true(psplit_i_grouping_init(&grouping, &r.graph, r.flags, r.pin, &arena));
    uint32_t group[MAX_NODES];
    for (uint32_t i = 0; i < n; i++) group[i] = i;
    for (uint32_t step = 0; step < 20; step++) {
      uint32_t members[3];
      const uint32_t n_members = 2 + (uint32_t)(psplit_i_splitmix64(seed, 5000 + step) % 2);
      for (uint32_t m = 0; m < n_members; m++)
        members[m] = (uint32_t)(psplit_i_splitmix64(seed, 6000 + 3 * step + m) % n);
      uint32_t wanted[MAX_NODES];
      memcpy(wanted, group, sizeof wanted);
      for (uint32_t m = 1; m < n_members; m++)
        for (uint32_t i = 0; i < n; i++)
          if (group[i] == group[members[m]] || group[i] == group[members[0]])
            wanted[i] = group[members[0]];
      for (uint32_t m = 1; m < n_members; m++) /* groups joined through an earlier member */
        for (uint32_t i = 0; i < n; i++)
          if (group[i] == group[members[m]]) wanted[i] = group[members[0]];
      const bool convex = is_acyclic(&r, wanted);
      assert_int_equal(merges(&grouping, members, n_members), convex);
      if (convex) memcpy(group, wanted, sizeof group);
      convex ? n_taken++ : n_refused++;
      for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
          assert_int_equal(psplit_i_group_of(&grouping, i) == psplit_i_group_of(&grouping, j),
                           group[i] == group[j]);
    }
    /* Numbers are a topological order of the groups. */
    uint32_t number[MAX_NODES];
    psplit_i_grouping_number(&grouping, number);
    for (uint32_t i = 0; i < n; i++) {
      assert_true(number[i] < grouping.n_groups);
      for (uint32_t k = 0; k < r.nodes[i].n_inputs; k++)
        assert_true(number[r.inputs[i][k]] <= number[i]);
    }
    psplit_i_arena_fini(&arena);
  }
  assert_true(n_taken > 1000 && n_refused > 1000); /* both happen often enough to mean something */
}

static void pins_keep_groups_apart(void **state) {
  (void)state;
  static random_graph r;
  make_graph(&r, 1, 4, 0);
  r.pin[0] = 0;
  r.pin[1] = 1;
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_grouping grouping;
  assert_true(psplit_i_grouping_init(&grouping, &r.graph, r.flags, r.pin, &arena));
  assert_false(merges(&grouping, (const uint32_t[]){0, 1}, 2));
  assert_true(merges(&grouping, (const uint32_t[]){0, 2}, 2));
  assert_true(merges(&grouping, (const uint32_t[]){1, 3}, 2));
  assert_false(merges(&grouping, (const uint32_t[]){2, 3}, 2));
  assert_int_equal(grouping.n_groups, 2);
  psplit_i_arena_fini(&arena);
}

/* A chain that grows by one node at a time, from its end as `attach` does it: no merge looks again
 * at all that came together before. */
static void long_chains_are_linear(void **state) {
  (void)state;
  enum { N = 5000 };
  static psplit_i_node nodes[N];
  static psplit_i_value values[N];
  static uint32_t made[N], off[N + 1], readers[N], pin[N];
  static uint8_t flags[N];
  for (uint32_t i = 0; i < N; i++) {
    made[i] = i;
    pin[i] = PSPLIT_NONE;
    nodes[i] = (psplit_i_node){.name = "",
                               .op_type = "Op",
                               .domain = "",
                               .overload = "",
                               .inputs = i ? &made[i - 1] : NULL,
                               .n_inputs = i > 0,
                               .outputs = &made[i],
                               .n_outputs = 1};
    values[i] = (psplit_i_value){.name = "v", .producer = i};
    off[i + 1] = i + 1 < N ? i + 1 : i;
    readers[i] = i + 1;
  }
  const psplit_i_graph graph = {.n_nodes = N,
                                .n_values = N,
                                .nodes = nodes,
                                .values = values,
                                .topo = made,
                                .consumer_off = off,
                                .consumers = readers};
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_grouping grouping;
  assert_true(psplit_i_grouping_init(&grouping, &graph, flags, pin, &arena));
  for (uint32_t i = N - 1; i > 0; i--)
    assert_true(merges(&grouping, (const uint32_t[]){i, i - 1}, 2));
  assert_int_equal(grouping.n_groups, 1);
  assert_true(grouping.work <= 10 * N);
  psplit_i_arena_fini(&arena);
}

static void canonical_is(const char *text, const char *wanted) {
  psplit_diag diag = {0};
  char *canonical = NULL;
  if (psplit_pipeline_canonical(text, &diag, &canonical) != PSPLIT_OK)
    fail_msg("%s: %s", text, diag.message);
  assert_string_equal(canonical, wanted);
  free(canonical);
}

static void refused(const char *text, const char *part) {
  psplit_diag diag = {0};
  char *canonical;
  assert_int_equal(psplit_pipeline_canonical(text, &diag, &canonical), PSPLIT_USAGE);
  if (!strstr(diag.message, part)) fail_msg("%s: \"%s\" lacks \"%s\"", text, diag.message, part);
}

static void pipeline_texts_parse(void **state) {
  (void)state;
  canonical_is("", "");
  canonical_is("fuse", "fuse");
  canonical_is("coarsen:max_nodes=50,fuse", "coarsen:max_nodes=50:exact=false,fuse");
  canonical_is("coarsen", "coarsen:max_nodes=10000:exact=false");
  refused("fuze", "unknown pass \"fuze\"");
  refused("fuse,", "unknown pass \"\"");
  refused("coarsen:max_nodes=0", "from 1 to");
  refused("coarsen:max_nodes=1e3", "from 1 to");
  refused("coarsen:max=3", "no option \"max\"");
  refused("partition:gap=nan", "from 0 to 1");
  /* What stands for nothing would become the default in the canonical form. */
  refused("partition:solver", "solver has no value");
  refused("partition:solver=", "solver has no value");
  canonical_is("fuse:patterns=", "fuse");
  canonical_is("partition:gap=0.1234567890123456",
               "partition:solver=auto:gap=0.1234567890123456:time_limit=-1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(merges_are_exact),
    cmocka_unit_test(pins_keep_groups_apart),
    cmocka_unit_test(long_chains_are_linear),
    cmocka_unit_test(pipeline_texts_parse),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
