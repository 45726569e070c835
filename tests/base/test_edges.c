/* base/: what is there for kernels, texts and codes that are rarely met. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "failing_calls.h"
#include "out_file.h"
#include "scratch.h"
#include "state_names.h"

/* --- a kernel without openat2 --- */

static int reason_of_syscall; /* 0: the kernel answers */

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (!reason_of_syscall) return __real_syscall(number, a, b, c, d, e, f);
  errno = reason_of_syscall;
  return -1;
}

static void paths_lead_where_the_kernel_says(void **state) {
  (void)state;
  char longest[256 + 2] = {0};
  memset(longest, 'n', 256);
  char too_long[2 * PATH_MAX + 1] = {0};
  for (size_t i = 0; i < PATH_MAX; i++) memcpy(too_long + 2 * i, "./", 2);
  const char *const paths[] = {"a",
                               "d/a",
                               "d//a",
                               "./d/./a",
                               "d",
                               "../x",
                               "/etc",
                               "l",
                               "ld/a",
                               "d/l",
                               "none",
                               "d/none",
                               "a/a",
                               "none/a",
                               "d/",
                               longest,
                               "..",
                               ".",
                               "...",
                               "d/..a",
                               "d/../a",
                               "d/..",
                               "d/../..",
                               "d/../d/a",
                               "d/e/../a",
                               "d/e/../../a",
                               "d/e/../../..",
                               "ld/../a",
                               "a/../a",
                               "none/../a",
                               "./../a",
                               "d/./../a",
                               "a/",
                               "l/",
                               "d/e/../../d/e/./f",
                               "",
                               too_long};
  assert_int_equal(mkdir("d", 0777), 0);
  assert_int_equal(close(open("a", O_CREAT | O_WRONLY, 0666)), 0);
  assert_int_equal(close(open("d/a", O_CREAT | O_WRONLY, 0666)), 0);
  assert_int_equal(close(open("d/..a", O_CREAT | O_WRONLY, 0666)), 0);
  assert_int_equal(mkdir("d/e", 0777), 0);
  assert_int_equal(close(open("d/e/f", O_CREAT | O_WRONLY, 0666)), 0);
  assert_int_equal(symlink("a", "l") | symlink("a", "d/l") | symlink("d", "ld"), 0);
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  static const int reasons[] = {0, ENOSYS, EPERM};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    struct stat found[3];
    int reason[3];
    for (int way = 0; way < 3; way++) {
      reason_of_syscall = reasons[way];
      errno = 0;
      const int fd = psplit_i_open_beneath(here, paths[i], false);
      reason[way] = fd < 0 ? errno : 0;
      reason_of_syscall = 0;
      if (fd >= 0) assert_int_equal(fstat(fd, &found[way]) | close(fd), 0);
    }
    for (int way = 1; way < 3; way++) {
      if (reason[way] != reason[0])
        fail_msg("%s: %s, not %s", paths[i], strerror(reason[way]), strerror(reason[0]));
      if (!reason[0]) assert_true(found[way].st_ino == found[0].st_ino);
    }
  }
  const int fd = psplit_i_open_beneath(here, "l", true);
  assert_true(fd >= 0);
  close(fd);
  close(here);
}

/* --- a kernel without memfd_create --- */

static void files_in_memory_lie_on_disk_elsewhere(void **state) {
  char too_long[5000], found[8] = {0};
  memset(too_long, 'x', sizeof too_long - 1);
  too_long[sizeof too_long - 1] = '\0';
  const struct {
    const char *folder;
    int reason; /* 0: the file is there */
  } cases[] = {{*state, 0}, {"", 0}, {NULL, 0}, {"/nowhere", ENOENT}, {too_long, ENAMETOOLONG}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(cases[i].folder ? setenv("TMPDIR", cases[i].folder, 1) : unsetenv("TMPDIR"),
                     0);
    fail_call_after(0, ENOSYS);
    const int fd = psplit_i_memory_file("bytes", 5);
    const int reason = fd < 0 ? errno : 0;
    assert_true(stop_failing_calls());
    assert_int_equal(reason, cases[i].reason);
    if (fd < 0) continue;
    assert_int_equal(pread(fd, found, sizeof found, 0), 5);
    assert_string_equal(found, "bytes");
    close(fd);
  }
  fail_call_after(0, EMFILE);
  assert_int_equal(psplit_i_memory_file("bytes", 5), -1);
  fail_call_after(1, ENOSPC); /* the write */
  assert_int_equal(psplit_i_memory_file("bytes", 5), -1);
  assert_int_equal(errno, ENOSPC);
  fail_call_after(1, EINTR);
  const int fd = psplit_i_memory_file("bytes", 5);
  assert_true(stop_failing_calls() && fd >= 0);
  assert_int_equal(pread(fd, found, sizeof found, 0), 5);
  close(fd);
}

/* --- output files --- */

static void hidden_names_are_told_apart(void **state) {
  (void)state;
  static const struct {
    const char *name, *prefix;
    bool goes;
  } cases[] = {
    {".a.psplit-0123456789abcdef", NULL, true},
    {".a.psplit-0123456789abcdef", ".a.psplit-", true},
    {".a.psplit-0123456789abcdef", ".b.psplit-", false},
    {".a.psplit-x.psplit-0123456789abcdef", NULL, true},
    {".psplit-0123456789abcdef", NULL, false},
    {"a.psplit-0123456789abcdef", NULL, false},
    {".a.psplit-0123456789abcde", NULL, false},
    {".a.psplit-0123456789abcdefa", NULL, false},
    {".a.psplit-0123456789abcdef.json", NULL, false},
    {".a.psplit-0123456789ABCDEF", NULL, false},
  };
  const int here = open(".", O_RDONLY | O_DIRECTORY);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(close(open(cases[i].name, O_CREAT | O_WRONLY, 0666)), 0);
    if (psplit_i_out_clean(here, cases[i].prefix) != cases[i].goes)
      fail_msg("%s %s", cases[i].name, cases[i].goes ? "stays" : "goes");
    assert_int_equal(access(cases[i].name, F_OK) == 0, !cases[i].goes);
    unlink(cases[i].name);
    assert_int_equal(mkdir(cases[i].name, 0777), 0); /* what is no file stays */
    assert_int_equal(psplit_i_out_clean(here, NULL), 0);
    assert_int_equal(rmdir(cases[i].name), 0);
  }
  close(here);
  assert_int_equal(psplit_i_out_clean(-1, NULL), 0);
}

static void directories_are_synced_or_named(void **state) {
  (void)state;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_out_sync(".", &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_out_sync("none", &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "none: cannot be written: No such file"));
  diag = (psplit_diag){0};
  fail_call_after(0, EACCES);
  assert_int_equal(psplit_i_out_sync(".", &diag), PSPLIT_OK); /* may be written, not read */
  fail_call_after(1, EIO);
  assert_int_equal(psplit_i_out_sync(".", &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "Input/output error"));
  stop_failing_calls();
}

static void many_files_are_put_without_a_sync(void **state) {
  (void)state;
  const psplit_i_out_options many = {.is_many = true};
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_out_put("new", &many, "1", 1, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_out_put("new", &many, "2", 1, &diag), PSPLIT_OK);
  char found[4] = {0};
  FILE *file = fopen("new", "r");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof found, file), 1);
  fclose(file);
  assert_string_equal(found, "2");
}

/* --- texts --- */

static void utf8_is_as_unicode_has_it(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t n, length, printable;
  } cases[] = {
    {"", 0, 0, 0},
    {"a", 1, 1, 1},
    {"\x1f", 1, 1, 0},
    {"\x7f", 1, 1, 0},
    {"\x80", 1, 0, 0},
    {"\xc1\xbf", 2, 0, 0}, /* overlong */
    {"\xc2\x80", 2, 2, 0}, /* C1 */
    {"\xc2\x9f", 2, 2, 0},
    {"\xc2\xa0", 2, 2, 2},
    {"\xc3", 1, 0, 0},
    {"\xc3\x41", 2, 0, 0},
    {"\xd8\x9c", 2, 2, 0}, /* U+061C reorders */
    {"\xd8\x9d", 2, 2, 2},
    {"\xe0\x9f\xbf", 3, 0, 0}, /* overlong */
    {"\xe0\xa0\x80", 3, 3, 3},
    {"\xe2\x80\x8d", 3, 3, 3},
    {"\xe2\x80\x8e", 3, 3, 0},
    {"\xe2\x80\xae", 3, 3, 0},
    {"\xe2\x80\xaf", 3, 3, 3},
    {"\xe2\x81\xa5", 3, 3, 3},
    {"\xe2\x81\xa6", 3, 3, 0},
    {"\xe2\x81\xaa", 3, 3, 3},
    {"\xe2\x82\xac", 3, 3, 3},
    {"\xed\x9f\xbf", 3, 3, 3},
    {"\xed\xa0\x80", 3, 0, 0},     /* a surrogate */
    {"\xf0\x8f\xbf\xbf", 4, 0, 0}, /* overlong */
    {"\xf0\x90\x80\x80", 4, 4, 4},
    {"\xf4\x8f\xbf\xbf", 4, 4, 4},
    {"\xf4\x90\x80\x80", 4, 0, 0}, /* above U+10FFFF */
    {"\xf5\x80\x80\x80", 4, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const unsigned char *bytes = (const unsigned char *)cases[i].bytes;
    if (psplit_i_utf8_length(bytes, cases[i].n) != cases[i].length ||
        psplit_i_printable_length(bytes, cases[i].n) != cases[i].printable)
      fail_msg("case %zu: %zu, %zu", i, psplit_i_utf8_length(bytes, cases[i].n),
               psplit_i_printable_length(bytes, cases[i].n));
  }
}

/* All outputs that may be the next value of an input, likelier ones first. */
static void states_go_by_their_names(void **state) {
  (void)state;
  static const struct {
    const char *input, *outputs;
  } cases[] = {
    {"past_key_values.0.key", "present.0.key present_key_values.0.key "},
    {"past_0", "present_0 "},
    {"past.0", "present.0 "},
    {"1past", ""},
    {"Xpast", ""},
    {"Apast.b", ""},
    {"past9", ""},
    {"pastA past", "pastA present "},
    {"cache_in", "cache_out new_cache_in cache_in_out cache_in_next cache_in_new cache_inN "},
    {"state_input",
     "state_output new_state_input state_input_out state_input_next state_input_new "
     "state_inputN "},
    {"in", ""},
    {"x", ""},
    {"state", "new_state state_out state_next state_new stateN "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_i_text all = {0}, one = {0};
    psplit_i_text_puts(&all, "");
    for (size_t way = 0; way < PSPLIT_I_STATE_WAYS; way++)
      if (psplit_i_state_output(cases[i].input, way, &one))
        psplit_i_text_addf(&all, "%s ", one.bytes);
    if (strcmp(all.bytes, cases[i].outputs) != 0)
      fail_msg("%s: \"%s\", not \"%s\"", cases[i].input, all.bytes, cases[i].outputs);
    psplit_i_text_fini(&all);
    psplit_i_text_fini(&one);
  }
}

/* --- what calls say --- */

static void codes_and_subjects_have_names(void **state) {
  (void)state;
  static const struct {
    psplit_code code;
    const char *name;
  } codes[] = {
    {PSPLIT_OK, "OK"},
    {PSPLIT_NOMEM, "NOMEM"},
    {PSPLIT_IO, "IO"},
    {PSPLIT_MALFORMED, "MALFORMED"},
    {PSPLIT_INVALID, "INVALID"},
    {PSPLIT_UNSUPPORTED, "UNSUPPORTED"},
    {PSPLIT_LIMIT, "LIMIT"},
    {PSPLIT_INFEASIBLE, "INFEASIBLE"},
    {PSPLIT_PLUGIN, "PLUGIN"},
    {PSPLIT_USAGE, "USAGE"},
    {PSPLIT_MISMATCH, "MISMATCH"},
    {PSPLIT_INTERNAL, "INTERNAL"},
    {PSPLIT_CANCELLED, "CANCELLED"},
    {(psplit_code)99, "UNKNOWN"},
  };
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    assert_string_equal(psplit_code_name(codes[i].code), codes[i].name);
  assert_null(psplit_subject_name(PSPLIT_SUBJECT_NONE));
  assert_null(psplit_subject_name(PSPLIT_N_SUBJECTS));
  assert_null(psplit_subject_name((psplit_subject)99));
  for (int s = PSPLIT_SUBJECT_NONE + 1; s < PSPLIT_N_SUBJECTS; s++)
    assert_int_equal(strncmp(psplit_subject_name((psplit_subject)s), "psplit_", 7), 0);
  assert_null(psplit_hint_text(PSPLIT_N_HINTS));
}

static void a_failure_may_be_told_to_nobody(void **state) {
  (void)state;
  psplit_diag first = {0}, then = {0};
  assert_int_equal(psplit_i_fail(NULL, PSPLIT_IO, "x"), PSPLIT_IO);
  assert_int_equal(psplit_i_fail(&first, PSPLIT_IO, "first"), PSPLIT_IO);
  assert_int_equal(psplit_i_fail_as(NULL, &first), PSPLIT_IO);
  assert_int_equal(psplit_i_fail(&then, PSPLIT_USAGE, "before"), PSPLIT_USAGE);
  assert_int_equal(psplit_i_fail_as(&then, &first), PSPLIT_IO);
  assert_string_equal(then.message, "before");
  psplit_i_diag_context(NULL, "nothing");
  assert_false(psplit_i_diag_show(NULL, "nothing", "anything"));
  {
    psplit_diag none = {0};
    assert_false(psplit_i_diag_show(&none, "nothing", "anything"));
    psplit_i_diag_context(&none, "nothing");
    assert_string_equal(none.message, "");
  }
  const psplit_logger silent = {0};
  psplit_i_say(NULL, PSPLIT_WARNING, "x");
  psplit_i_say(&silent, PSPLIT_WARNING, "x");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_scratch, leave_scratch)
  const struct CMUnitTest tests[] = {
    TEST(paths_lead_where_the_kernel_says),
    TEST(files_in_memory_lie_on_disk_elsewhere),
    TEST(hidden_names_are_told_apart),
    TEST(directories_are_synced_or_named),
    TEST(many_files_are_put_without_a_sync),
    cmocka_unit_test(utf8_is_as_unicode_has_it),
    cmocka_unit_test(states_go_by_their_names),
    cmocka_unit_test(codes_and_subjects_have_names),
    cmocka_unit_test(a_failure_may_be_told_to_nobody),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
