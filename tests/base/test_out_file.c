/* Why: an output never costs what was there before it, whichever allocation, call or reader fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "failing.h"
#include "scratch.h"

static void put(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static bool holds(const char *path, const char *text) {
  char found[64] = {0};
  FILE *file = fopen(path, "r");
  if (!file) return false;
  const size_t n = fread(found, 1, sizeof found - 1, file);
  fclose(file);
  return n == strlen(text) && strcmp(found, text) == 0;
}

static unsigned n_entries(void) {
  DIR *here = opendir(".");
  unsigned n = 0;
  assert_non_null(here);
  while (readdir(here)) n++;
  closedir(here);
  return n - 2;
}

static void replaces_once_complete(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_out_file file;
  put("a", "old");
  assert_int_equal(psplit_i_out_begin("a", NULL, &diag, &file), PSPLIT_OK);
  assert_int_equal(psplit_i_out_write(&file, "ne", 2, &diag), PSPLIT_OK);
  assert_true(holds("a", "old"));
  assert_int_equal(psplit_i_out_write(&file, "w", 1, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_out_commit(&file, &diag), PSPLIT_OK);
  assert_true(holds("a", "new"));
  assert_int_equal(n_entries(), 1);
  assert_int_equal(psplit_i_out_begin("a", NULL, &diag, &file), PSPLIT_OK);
  assert_int_equal(psplit_i_out_write(&file, "x", 1, &diag), PSPLIT_OK);
  psplit_i_out_abandon(&file);
  psplit_i_out_abandon(&file);
  assert_true(holds("a", "new"));
  assert_int_equal(n_entries(), 1);
}

/* One that is there before, and one that comes while the new one is written. */
static void keeps_what_exists(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_out_file file;
  const psplit_i_out_options keep = {.keep = true};
  put("a", "old");
  assert_int_equal(psplit_i_out_put("a", &keep, "new", 3, &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "a exists"));
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_out_probe("a", &keep, &diag), PSPLIT_IO);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_out_begin("b", &keep, &diag, &file), PSPLIT_OK);
  put("b", "late");
  assert_int_equal(psplit_i_out_commit(&file, &diag), PSPLIT_IO);
  assert_true(holds("a", "old") && holds("b", "late"));
  assert_int_equal(n_entries(), 2);
}

static void probes_leave_nothing(void **state) {
  (void)state;
  psplit_diag diag = {0};
  put("a", "old");
  assert_int_equal(mkdir("d", 0777), 0);
  assert_int_equal(mkfifo("f", 0666), 0);
  assert_int_equal(psplit_i_out_probe("a", NULL, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_out_probe("b", NULL, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_out_probe("f", NULL, &diag), PSPLIT_OK); /* nobody reads it */
  static const char *const bad[] = {"d", "d/", "new/", "no/b", "a/b", "", "d/.."};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    diag = (psplit_diag){0};
    assert_int_equal(psplit_i_out_probe(bad[i], NULL, &diag), PSPLIT_IO);
  }
  assert_true(holds("a", "old"));
  assert_int_equal(n_entries(), 3);
}

/* A name as long as names can be leaves room for the hidden one. */
static void takes_the_longest_name(void **state) {
  (void)state;
  psplit_diag diag = {0};
  char name[256] = {0};
  memset(name, 'n', 255);
  assert_int_equal(psplit_i_out_put(name, NULL, "x", 1, &diag), PSPLIT_OK);
  assert_true(holds(name, "x"));
}

/* Modes bind all but root, so a child gives that up. */
static void heeds_permissions(void **state) {
  (void)state;
  put("a", "old");
  assert_int_equal(chmod("a", 0444), 0);
  assert_int_equal(mkdir("locked", 0777), 0);
  put("locked/a", "old");
  assert_int_equal(chmod("locked/a", 0666) | chmod("locked", 0555) | chmod(".", 0777), 0);
  assert_int_equal(mkdir("blind", 0777) | chmod("blind", 0333), 0);
  const pid_t child = fork();
  if (child == 0) {
    psplit_diag diag = {0};
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
    bool good = psplit_i_out_put("a", NULL, "new", 3, &diag) == PSPLIT_IO;
    diag = (psplit_diag){0};
    good &= psplit_i_out_put("locked/a", NULL, "new", 3, &diag) == PSPLIT_IO;
    diag = (psplit_diag){0};
    good &= psplit_i_out_put("blind/a", NULL, "new", 3, &diag) == PSPLIT_OK;
    _exit(good ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(chmod("locked", 0777) | chmod("blind", 0777), 0);
  assert_int_equal(status, 0);
  assert_true(holds("a", "old") && holds("locked/a", "old") && holds("blind/a", "new"));
}

/* Waiting for somebody to read a FIFO, and for one who has stopped reading, ends. */
static void stops_waiting(void **state) {
  (void)state;
  psplit_diag diag = {0};
  atomic_int stop = 1;
  const psplit_i_out_options options = {.stop = &stop};
  static char much[1 << 20];
  assert_int_equal(mkfifo("f", 0666), 0);
  assert_int_equal(psplit_i_out_put("f", &options, "x", 1, &diag), PSPLIT_CANCELLED);
  const int reader = open("f", O_RDONLY | O_NONBLOCK);
  assert_true(reader >= 0);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_out_put("f", &options, much, sizeof much, &diag), PSPLIT_CANCELLED);
  close(reader);
  assert_int_equal(n_entries(), 1);
}

/* Every allocation in turn: an error and the old file, or the new one; nothing beside it. */
static void survives_failed_allocations(void **state) {
  (void)state;
  put("page", "old");
  assert_int_equal(symlink("page", "link"), 0);
  long n = 0;
  for (bool failed = true; failed; n++) {
    psplit_diag diag = {0};
    put("page", "old");
    const long live = live_blocks();
    fail_allocation_after(n);
    const psplit_code code = psplit_i_out_put("link", NULL, "new", 3, &diag);
    failed = stop_failing();
    assert_int_equal(live_blocks(), live);
    /* The search for leftovers is done without where it cannot be done. */
    assert_true(code == PSPLIT_OK ? holds("page", "new")
                                  : code == PSPLIT_NOMEM && holds("page", "old"));
    assert_int_equal(n_entries(), 2);
  }
  assert_true(n > 5);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(replaces_once_complete),      TEST(keeps_what_exists), TEST(probes_leave_nothing),
    TEST(takes_the_longest_name),      TEST(heeds_permissions), TEST(stops_waiting),
    TEST(survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
