/* Why: whoever looks for a checkpoint finds the one of before or the new one, whole, whatever
 * happened to who wrote it: killed, without room, memory or a system call, or read meanwhile. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "checkpoint.h"
#include "checkpoints.h"
#include "counter_random.h"
#include "failing.h"
#include "failing_calls.h"
#include "scratch.h"

/* --- what is left behind --- */

static void an_abort_leaves_the_old_one(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_checkpoint_writer writer;
  uint64_t bytes;
  must_save("c", 1, 1);
  assert_int_equal(psplit_i_checkpoint_probe("c", &diag), PSPLIT_OK);
  assert_int_equal(n_entries("."), 1);
  assert_int_equal(psplit_i_checkpoint_begin("c", &diag, &writer), PSPLIT_OK);
  assert_int_equal(psplit_i_checkpoint_write_stage(writer.path, 0, NULL, 0, &diag, &bytes),
                   PSPLIT_OK);
  assert_int_equal(n_entries("."), 2);
  psplit_i_checkpoint_abort(&writer);
  assert_int_equal(n_entries("."), 1);
  assert_int_equal(must_look("c"), 1);
}

static void leftovers_go_and_what_is_written_stays(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_checkpoint_writer writer;
  assert_int_equal(psplit_i_checkpoint_begin("c", &diag, &writer), PSPLIT_OK);
  assert_int_equal(mkdir(".c.psplit-1-0", 0777), 0); /* of a process that was killed */
  put(".c.psplit-1-0/stage0.safetensors", "half", 4);
  put(".c.psplit-1-0/.stage1.safetensors.psplit-0123456789abcdef", "half", 4);
  assert_int_equal(mkdir(".c.psplit-mine", 0777), 0);
  must_save("c", 1, 1);
  assert_int_equal(n_entries("."), 3);
  assert_int_equal(access(writer.path, F_OK), 0);
  psplit_i_checkpoint_abort(&writer);
  assert_int_equal(n_entries("."), 2);
}

/* Killed between the two renames of a file system that cannot exchange. */
static void a_checkpoint_on_its_way_is_found(void **state) {
  (void)state;
  must_save("c", 4, 2);
  must_save("d", 5, 1);
  assert_int_equal(rename("c", ".c.psplit-7-09"), 0);
  assert_int_equal(must_look("c"), 4);
  assert_int_equal(rename("d", ".c.psplit-7-0"), 0);
  assert_int_equal(must_look("c"), 5);
  /* The next writer has it in its place before anything else. */
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_checkpoint_probe("c", &diag), PSPLIT_OK);
  assert_int_equal(access("c/training.json", F_OK), 0);
  assert_int_equal(must_look("c"), 5);
  assert_int_equal(n_entries("."), 1);
}

/* Of several that are hidden the one that is furthest, and none that is not whole. */
static void the_furthest_on_its_way_is_found(void **state) {
  (void)state;
  static const char *const others[] = {".c.psplit-1-0", ".c.psplit-2-0", ".c.psplit-3-0",
                                       ".c.psplit-4-0"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_int_equal(mkdir(others[i], 0777), 0);
  put(".c.psplit-1-0/training.json", "", 0);
  put(".c.psplit-2-0/training.json", "{\"step\": \"nine\"}", 16);
  assert_int_equal(mkdir(".c.psplit-3-0/training.json", 0777), 0);
  put(".c.psplit-4-0/training.json", "{\"step\": 99}", 12);
  assert_int_equal(truncate(".c.psplit-4-0/training.json", (64 << 20) + 1), 0);
  put(".c.psplit-5-0", "", 0); /* no directory */
  for (uint64_t step = 4; step <= 6; step++) {
    char hidden[40];
    must_save("d", step, 2);
    snprintf(hidden, sizeof hidden, ".c.psplit-7-0%u", (unsigned)(step * 7 % 10));
    assert_int_equal(rename("d", hidden), 0);
  }
  assert_int_equal(must_look("c"), 6);
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_checkpoint_probe("c", &diag), PSPLIT_OK);
  assert_int_equal(must_look("c"), 6);
}

/* --- trouble --- */

static void *save_many(void *stop) {
  for (uint64_t step = 2; !atomic_load((atomic_bool *)stop); step++)
    must_save("c", step, (uint32_t)(step % 3 + 1));
  return NULL;
}

static void readers_find_one_that_is_whole(void **state) {
  (void)state;
  for (int way = 0; way < 2; way++) {
    atomic_bool stop = false;
    pthread_t writer;
    int64_t last = 0;
    cannot_exchange = way == 1;
    must_save("c", 1, 1);
    assert_int_equal(pthread_create(&writer, NULL, save_many, &stop), 0);
    for (int i = 0; i < 200; i++) {
      const int64_t step = must_look("c");
      if (step < last) fail_msg("%" PRId64 " after %" PRId64, step, last);
      last = step;
    }
    atomic_store(&stop, true);
    pthread_join(writer, NULL);
    cannot_exchange = false;
  }
}

/* Writes checkpoints until it is killed; tells of each once it is there. */
static void write_until_killed(int told) {
  psplit_diag diag = {0};
  for (uint64_t step = 1; save("c", step, (uint32_t)(step % 3 + 1), "adamw", &diag) == PSPLIT_OK;
       step++)
    if (write(told, &step, sizeof step) != sizeof step) break;
  fprintf(stderr, "%s\n", diag.message);
  _exit(1);
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Kills a writer at a random moment of its second to fifth checkpoint; PSPLIT_KILLS says how often.
 */
static void kill_at_random(unsigned n_kills) {
  unsigned moved = 0;
  for (unsigned k = 0; k < n_kills; k++) {
    const psplit_i_random_stream stream = {.seed = 17, .use = PSPLIT_I_RANDOM_TEST, .major = k};
    int told[2];
    uint64_t step = 0, last = 0;
    cannot_exchange = k % 2;
    if (access("c", F_OK) != 0) must_save("c", 0, 2);
    assert_int_equal(pipe(told), 0);
    const int64_t began = now_ns();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) write_until_killed(told[1]);
    close(told[1]);
    assert_int_equal(read(told[0], &last, sizeof last), sizeof last);
    const uint64_t most = 4 * (uint64_t)(now_ns() - began),
                   wait = psplit_i_random_below(&stream, 0, most);
    const struct timespec nap = {(time_t)(wait / 1000000000), (long)(wait % 1000000000)};
    nanosleep(&nap, NULL);
    kill(child, SIGKILL);
    while (read(told[0], &step, sizeof step) == sizeof step) last = step;
    close(told[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    const int64_t found = must_look("c");
    if (found < (int64_t)last || found > (int64_t)last + 1)
      fail_msg("kill %u: step %" PRId64 " after %" PRIu64, k, found, last);
    moved += last > 1;
  }
  /* A writer that never got further would prove little. */
  assert_true(moved > n_kills / 4);
  cannot_exchange = false;
  must_save("c", 99, 1);
  assert_int_equal(n_entries("."), 1);
}

static void kill_9_leaves_the_old_or_the_new_one(void **state) {
  (void)state;
  const char *text = getenv("PSPLIT_KILLS");
  kill_at_random(text ? (unsigned)atoi(text) : 24);
}

/* In a child, since the limit is a process's. */
static void a_full_disk_costs_nothing(void **state) {
  (void)state;
  must_save("c", 1, 2);
  const pid_t child = fork();
  if (child == 0) {
    bool good = true;
    for (rlim_t most = 0; most < 500; most += 25) {
      const struct rlimit limit = {most, 1 << 20};
      psplit_diag diag = {0};
      setrlimit(RLIMIT_FSIZE, &limit);
      const psplit_code code = save("c", 2, 2, "adamw", &diag);
      good &= code == PSPLIT_IO && strstr(diag.message, "File too large");
    }
    _exit(good ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(must_look("c"), 1);
  assert_int_equal(n_entries("."), 1);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  must_save("c", 1, 2);
  const long before = live_blocks();
  bool failed = true;
  int64_t last = 1;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    fail_allocation_after(nth);
    const psplit_code code = save("c", 2, 3, "adamw", &diag);
    failed = stop_failing();
    assert_true(code == PSPLIT_OK || (failed && code == PSPLIT_NOMEM));
    assert_int_equal(live_blocks(), before);
    const int64_t step = must_look("c");
    assert_true(step == 2 || (code != PSPLIT_OK && step == last));
    last = step;
    assert_int_equal(n_entries("."), 1);
    assert_true(nth < 2000);
  }
  failed = true;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    psplit_i_checkpoint *found = NULL;
    fail_allocation_after(nth);
    psplit_code code = psplit_i_checkpoint_open("c", &diag, &found);
    if (code == PSPLIT_OK)
      code = psplit_i_checkpoint_fits(found, WEIGHTS, N_WEIGHTS, "adamw", &diag);
    failed = stop_failing();
    psplit_i_checkpoint_close(found);
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_int_equal(live_blocks(), before);
    assert_true(nth < 2000);
  }
}

/* Whichever system call fails: the old one or the new one is there, and what is left of the other
 * goes with the next. */
static void no_failing_call_loses_a_checkpoint(void **state) {
  (void)state;
  static const int reasons[] = {EIO, ENOMEM, EMFILE, EACCES};
  for (size_t r = 0; r < 2 * sizeof reasons / sizeof *reasons; r++) {
    cannot_exchange = r % 2;
    long n_told = 0;
    bool failed = true;
    for (long nth = 0; failed; nth++) {
      psplit_diag diag = {0};
      must_save("c", 1, 1);
      fail_call_after(nth, reasons[r / 2]);
      const psplit_code code = save("c", 2, 2, "adamw", &diag);
      failed = stop_failing_calls();
      n_told += code != PSPLIT_OK;
      const int64_t step = must_look("c");
      if (step != 2 && (step != 1 || code == PSPLIT_OK)) fail_msg("%ld: %d", nth, (int)step);
      if (code != PSPLIT_OK && (!failed || !*diag.message)) fail_msg("%ld: %s", nth, diag.message);
      psplit_i_checkpoint *found = NULL;
      diag = (psplit_diag){0};
      fail_call_after(nth, reasons[r / 2]);
      const psplit_code opened = psplit_i_checkpoint_open("c", &diag, &found);
      if (stop_failing_calls()) failed = true;
      if ((opened == PSPLIT_OK) != !*diag.message) fail_msg("%ld: %s", nth, diag.message);
      psplit_i_checkpoint_close(found);
    }
    assert_true(n_told > 20);
    must_save("c", 3, 1);
    assert_int_equal(n_entries("."), 1);
  }
  cannot_exchange = false;
}

/* What is hidden is found or not: out of memory it is not "no checkpoint". */
static void no_memory_hides_no_checkpoint(void **state) {
  (void)state;
  must_save("c", 4, 2);
  assert_int_equal(rename("c", ".c.psplit-7-09"), 0);
  bool failed = true;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    psplit_i_checkpoint *found = NULL;
    fail_allocation_after(nth);
    const psplit_code code = psplit_i_checkpoint_open("c", &diag, &found);
    failed = stop_failing();
    psplit_i_checkpoint_close(found);
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    assert_true(nth < 2000);
  }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    IN_SCRATCH(an_abort_leaves_the_old_one),
    IN_SCRATCH(leftovers_go_and_what_is_written_stays),
    IN_SCRATCH(a_checkpoint_on_its_way_is_found),
    IN_SCRATCH(the_furthest_on_its_way_is_found),
    IN_SCRATCH(readers_find_one_that_is_whole),
    IN_SCRATCH(kill_9_leaves_the_old_or_the_new_one),
    IN_SCRATCH(a_full_disk_costs_nothing),
    IN_SCRATCH(no_failing_call_loses_a_checkpoint),
    IN_SCRATCH(every_allocation_may_fail),
    IN_SCRATCH(no_memory_hides_no_checkpoint),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
