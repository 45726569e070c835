/* Lists of edges, sorted, without repetitions and turned round, against a table of all pairs. */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "lists.h"
#include "problem.h"

enum { N = 70, MOST = 3000 }; /* lists are short and long */

static uint64_t draw(uint64_t *state) { return psplit_i_splitmix64(7, (*state)++); }

/* The lists hold what the table has, ascending; x is in list y, or y in list x. */
static void assert_lists(const uint32_t *off, const uint32_t *item, bool has[N][N], bool turned) {
  uint32_t at = 0;
  for (uint32_t x = 0; x < N; x++) {
    assert_int_equal(off[x], at);
    for (uint32_t y = 0; y < N; y++)
      if (turned ? has[y][x] : has[x][y]) assert_int_equal(item[at++], y);
  }
  assert_int_equal(off[N], at);
}

static void test_edges(void **unused) {
  (void)unused;
  uint64_t state = 0;
  for (uint32_t n_edges = 0; n_edges <= MOST; n_edges = n_edges * 2 + 1) {
    static bool has[N][N];
    static uint64_t edges[MOST];
    uint32_t off[N + 1] = {0}, back_off[N + 1] = {0}, item[MOST], back[MOST];
    memset(has, 0, sizeof has);
    for (uint32_t k = 0; k < n_edges; k++) {
      const uint32_t x = (uint32_t)(draw(&state) % N), y = (uint32_t)(draw(&state) % N);
      edges[k] = (uint64_t)x << 32 | y;
      has[x][y] = true;
    }
    psplit_i_lists_of_edges(edges, n_edges, N, off, item);
    assert_lists(off, item, has, false);
    psplit_i_lists_transpose(N, off, item, N, back_off, back);
    assert_lists(back_off, back, has, true);
  }
}

static void test_marked(void **state) {
  (void)state;
  /* Nets 5 -> 1, 2 and 1 -> 0: the first pin sends. */
  static const uint32_t off[] = {0, 3, 5}, pin[] = {5, 1, 2, 1, 0};
  static const uint32_t inc_off[] = {0, 1, 3, 4, 4, 4, 5}, inc[] = {2, 0, 3, 0, 1};
  uint32_t out_off[7] = {0}, out[5];
  psplit_i_lists_transpose_marked(2, off, pin, 6, out_off, out);
  assert_memory_equal(out_off, inc_off, sizeof inc_off);
  assert_memory_equal(out, inc, sizeof inc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_edges),
    cmocka_unit_test(test_marked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
