/* Links that differ between pairs of devices: every transfer counts over the link between its two
 * stages, in the checker and in all that searches, bounds and proves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "random_problem.h"

/* Two hosts of two devices: 10 within a host, 100 from one to the other. The second host pays
 * nothing for the way back. */
static const char kTwoHosts[] =
  "{\"format\": \"psplit-problem\", \"comm\": \"p2p\","
  " \"devices\": [{\"name\": \"a\", \"count\": 2}, {\"name\": \"b\", \"count\": 2}],"
  " \"link_classes\": [{\"latency_ns\": 10}, {\"latency_ns\": 100}, {}],"
  " \"device_links\": [[0, 1], [2, 0]],"
  " \"nodes\": [{\"time_ns\": 1}, {\"time_ns\": 2}, {\"time_ns\": 3}, {\"time_ns\": 4}],"
  " \"tensors\": [{\"producer\": 0, \"consumers\": [1, 2, 3]},"
  "              {\"producer\": 2, \"consumers\": [3], \"link_ns\": [7, 70, 700]}]}";

static psplit_problem *parsed(const char *text) {
  psplit_diag diag = {0};
  psplit_problem *p = NULL;
  if (psplit_problem_parse_json(text, strlen(text), "test", &diag, &p) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  return p;
}

static void the_checker_counts_the_link_between_two_stages(void **state) {
  (void)state;
  psplit_problem *p = parsed(kTwoHosts);
  static const uint32_t stage[] = {0, 1, 2, 3};
  static const int64_t recv[] = {0, 10, 100, 107}, send[] = {210, 0, 7, 0};
  psplit_solution *s;
  psplit_diag diag = {0};
  assert_int_equal(psplit_partition_check(p, NULL, stage, NULL, NULL, NULL, &diag, &s), PSPLIT_OK);
  for (uint32_t k = 0; k < 4; k++) {
    assert_int_equal(s->stages[k].recv_ns, recv[k]);
    assert_int_equal(s->stages[k].send_ns, send[k]);
  }
  psplit_solution_destroy(s);
  /* Stage 1 has the second device of the first entry: its links are no other's. */
  static const uint32_t swapped[] = {0, 1, 1, 1};
  assert_int_equal(psplit_partition_check(p, NULL, stage, NULL, swapped, NULL, &diag, &s),
                   PSPLIT_MISMATCH);
  psplit_problem_destroy(p);
}

static void refused(psplit_problem *p, psplit_code expected, const char *word) {
  psplit_solution *s;
  psplit_diag diag = {0};
  assert_int_equal(psplit_partition_solve(p, NULL, &diag, &s), expected);
  if (!strstr(diag.message, word)) fail_msg("\"%s\" does not say \"%s\"", diag.message, word);
}

static void what_links_between_pairs_do_not_go_with_is_refused(void **state) {
  (void)state;
  psplit_problem *p = parsed(kTwoHosts);
  psplit_problem q = *p;
  q.any_device_order = true;
  refused(&q, PSPLIT_UNSUPPORTED, "in their order");
  q = *p;
  q.comm = PSPLIT_COMM_SHARED;
  refused(&q, PSPLIT_UNSUPPORTED, "point to point");
  static const uint32_t link[] = {0, 1, 3, 0};
  q = *p;
  q.device_link = link;
  refused(&q, PSPLIT_INVALID, "of class 3; there are 3");
  q.device_link = NULL;
  refused(&q, PSPLIT_USAGE, "device_link");
  int64_t times[6] = {0};
  times[5] = -1;
  q = *p;
  q.net_link_ns = times;
  refused(&q, PSPLIT_INVALID, "net 1: negative");
  times[5] = INT64_C(1) << 59;
  refused(&q, PSPLIT_LIMIT, "transfer times");
  psplit_partition_options o;
  psplit_partition_options_init(&o);
  o.max_replicas = 2;
  psplit_solution *s;
  assert_int_equal(psplit_partition_solve(p, &o, NULL, &s), PSPLIT_UNSUPPORTED);
  psplit_problem_destroy(p);
}

/* One line each, which says where. */
static void bad_links_in_a_file_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *word;
  } cases[] = {
    {"\"link_classes\": [{}]", "device_links: is missing"},
    {"\"link_classes\": [], \"device_links\": [[0]]", "link_classes: must be"},
    {"\"device_links\": [[0]]", "link_classes: is missing"},
    {"\"link_classes\": [{}], \"device_links\": [[0, 0]]", "device_links[0]: must be"},
    {"\"link_classes\": [{}], \"device_links\": [[-1]]", "device_links[0][0]: must be"},
    {"\"link_classes\": [{\"latency_ns\": -1}], \"device_links\": [[0]]",
     "link_classes[0].latency_ns: must be"},
    {"\"link_classes\": [{}], \"device_links\": [[0]],"
     " \"tensors\": [{\"producer\": 0, \"consumers\": [0], \"link_ns\": [1, 2]}]",
     "tensors[0].link_ns: must be"},
    {"\"tensors\": [{\"producer\": 0, \"consumers\": [0], \"link_ns\": 1}]",
     "tensors[0].link_ns: is of links"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    psplit_diag diag = {0};
    psplit_problem *p = NULL;
    snprintf(
      text, sizeof text,
      "{\"format\": \"psplit-problem\", \"devices\": [{}], \"nodes\": [{\"time_ns\": 1}], %s}",
      cases[i].text);
    assert_int_equal(psplit_problem_parse_json(text, strlen(text), "test", &diag, &p),
                     PSPLIT_INVALID);
    if (!strstr(diag.message, cases[i].word)) fail_msg("%s: %s", cases[i].text, diag.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_checker_counts_the_link_between_two_stages),
    cmocka_unit_test(what_links_between_pairs_do_not_go_with_is_refused),
    cmocka_unit_test(bad_links_in_a_file_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
