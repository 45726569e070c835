/* Why: a step trains on the rows that its place says and on no other, whoever reads them and
 * however the file holds them; a file that does not fit is told before the first step. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "counter_random.h"
#include "failing.h"
#include "made_files.h"
#include "rows.h"
#include "scratch.h"

enum { FLOAT = 1, UINT8 = 2, INT16 = 5, INT32 = 6, INT64 = 7, DOUBLE = 11 };

/* --- files --- */

/* Puts a word in front of what a file holds. */
static void put_behind(const char *path, const char *word) {
  struct stat status;
  const size_t n_word = strlen(word);
  const int fd = open(path, O_RDONLY);
  assert_true(fd >= 0 && fstat(fd, &status) == 0);
  const size_t n = (size_t)status.st_size;
  char *data = malloc(n_word + n);
  assert_non_null(data);
  memcpy(data, word, n_word);
  assert_int_equal(read(fd, data + n_word, n), (ssize_t)n);
  close(fd);
  put_file(path, data, n_word + n);
  free(data);
}

static int16_t *counted(size_t n) {
  int16_t *data = malloc(n * sizeof *data);
  assert_non_null(data);
  for (size_t i = 0; i < n; i++) data[i] = (int16_t)(i * 7 - 3000);
  return data;
}

/* --- which rows --- */

static void an_epoch_has_each_row_once(void **state) {
  (void)state;
  psplit_diag diag = {0};
  for (uint64_t n_rows = 1; n_rows < 40; n_rows++)
    for (uint32_t parts = 1; parts <= 3; parts++) {
      const psplit_i_order order = {
        .n_rows = n_rows, .batch_rows = 2 * parts, .n_micro_batches = parts, .keep_last = true};
      assert_int_equal(psplit_i_order_check(&order, &diag), PSPLIT_OK);
      for (uint32_t epoch = 0; epoch < 2; epoch++) {
        bool seen[40] = {0};
        uint64_t next = 0;
        for (uint64_t b = 0; b < psplit_i_order_n_batches(&order); b++)
          for (uint32_t m = 0; m < parts; m++) {
            const psplit_i_place place = {epoch, b};
            const psplit_i_slice slice = psplit_i_order_slice(&order, place, m);
            assert_int_equal(slice.begin, next);
            assert_true(slice.end - slice.begin <= 2);
            for (uint64_t at = slice.begin; at < slice.end; at++) {
              const uint64_t row = psplit_i_order_row(&order, epoch, at);
              assert_true(row < n_rows && !seen[row]);
              seen[row] = true;
            }
            next = slice.end;
          }
        assert_int_equal(next, n_rows);
      }
    }
}

static void what_is_left_is_dropped_and_steps_go_on(void **state) {
  (void)state;
  psplit_diag diag = {0};
  const psplit_i_order order = {.n_rows = 23, .batch_rows = 6, .n_micro_batches = 3, .seed = 5};
  assert_int_equal(psplit_i_order_check(&order, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_order_n_batches(&order), 3);
  const psplit_i_place place = psplit_i_order_place(&order, 7);
  assert_int_equal(place.epoch, 2);
  assert_int_equal(place.batch, 1);
  const psplit_i_slice slice = psplit_i_order_slice(&order, place, 2);
  assert_int_equal(slice.epoch, 2);
  assert_int_equal(slice.begin, 10);
  assert_int_equal(slice.end, 12);
  assert_int_equal(psplit_i_order_place(&order, UINT64_MAX).epoch, UINT32_MAX);
}

/* Part of what a run promises: the row of a place is that of the seed, the epoch and no more. */
static void rows_are_those_of_the_counter(void **state) {
  (void)state;
  const psplit_i_order order = {.n_rows = 1000, .batch_rows = 8, .n_micro_batches = 1, .seed = 9};
  const psplit_i_random_stream stream = {.seed = 9, .use = PSPLIT_I_RANDOM_SHUFFLE, .major = 4};
  unsigned moved = 0;
  for (uint64_t at = 0; at < 1000; at++) {
    assert_int_equal(psplit_i_order_row(&order, 4, at),
                     psplit_i_random_permuted(&stream, at, 1000));
    moved += psplit_i_order_row(&order, 4, at) != psplit_i_order_row(&order, 5, at);
  }
  assert_true(moved > 900);
  const psplit_i_order plain = {
    .n_rows = 1000, .batch_rows = 8, .n_micro_batches = 1, .in_order = true};
  for (uint64_t at = 0; at < 1000; at++) assert_int_equal(psplit_i_order_row(&plain, 4, at), at);
}

static void orders_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const struct {
    psplit_i_order order;
    const char *says;
  } wrong[] = {
    {{.n_rows = 9, .batch_rows = 0, .n_micro_batches = 1},
     "a batch of 0 rows in 1 micro-batches: both must be at least 1"},
    {{.n_rows = 9, .batch_rows = 3},
     "a batch of 3 rows in 0 micro-batches: both must be at least 1"},
    {{.n_rows = 9, .batch_rows = 3, .n_micro_batches = 2},
     "a batch of 3 rows cannot be cut into 2 micro-batches of the same size; take a multiple of 2"},
    {{.n_rows = 9, .batch_rows = 3, .n_micro_batches = 4},
     "a batch of 3 rows cannot be cut into 4 micro-batches of the same size; take a multiple of 4"},
    {{.n_rows = 5, .batch_rows = 6, .n_micro_batches = 2},
     "the data has 5 rows, fewer than a batch of 6"},
    {{.batch_rows = 6, .n_micro_batches = 2, .keep_last = true},
     "the data has 0 rows, fewer than a batch of 6"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    psplit_diag diag = {0};
    assert_int_equal(psplit_i_order_check(&wrong[i].order, &diag), PSPLIT_USAGE);
    assert_string_equal(diag.message, wrong[i].says);
  }
}

/* --- what is read --- */

static const int64_t ROWS_OF_12[] = {-1, 3, 4};
static const psplit_i_rows_wanted INT16_ROWS = {
  .name = "x", .data_type = INT16, .n_dims = 3, .dims = ROWS_OF_12};

static psplit_i_order all_rows(uint64_t n) {
  return (psplit_i_order){.n_rows = n, .batch_rows = n, .n_micro_batches = 1, .seed = 3};
}

/* Every slice of two epochs, against the whole array. */
static void expect_rows(const char *path, const psplit_i_rows_wanted *wanted, const int16_t *data,
                        uint64_t n_rows, size_t width) {
  psplit_diag diag = {0};
  psplit_i_rows rows;
  if (psplit_i_rows_open(path, wanted, &diag, &rows) != PSPLIT_OK) fail_msg("%s", diag.message);
  assert_int_equal(rows.n_rows, n_rows);
  assert_int_equal(rows.row_bytes, width * sizeof *data);
  int16_t *out = malloc((size_t)n_rows * width * sizeof *data);
  assert_non_null(out);
  for (int shuffled = 0; shuffled < 2; shuffled++) {
    psplit_i_order order = all_rows(n_rows);
    order.in_order = !shuffled;
    for (uint64_t begin = 0; begin <= n_rows; begin++)
      for (uint64_t end = begin; end <= n_rows; end++) {
        const psplit_i_slice slice = {.epoch = (uint32_t)begin % 2, .begin = begin, .end = end};
        assert_int_equal(psplit_i_rows_read(&rows, &order, &slice, &diag, out), PSPLIT_OK);
        for (uint64_t at = begin; at < end; at++)
          assert_memory_equal(out + (at - begin) * width,
                              data + psplit_i_order_row(&order, slice.epoch, at) * width,
                              width * sizeof *data);
      }
  }
  free(out);
  psplit_i_rows_close(&rows);
}

static void every_form_gives_the_same_rows(void **state) {
  (void)state;
  enum { N_ROWS = 11, WIDTH = 12, N = N_ROWS * WIDTH };
  int16_t *data = counted(N), turned[N];
  for (int version = 1; version <= 3; version++) {
    made_bytes file = make_npy(version, "<i2", "False", "(11, 3, 4)", data, N * 2);
    put_file("a.npy", file.at, file.n);
    expect_rows("a.npy", &INT16_ROWS, data, N_ROWS, WIDTH);
    put_npz("stored.npz", "x", &file, false, 0);
    expect_rows("stored.npz", &INT16_ROWS, data, N_ROWS, WIDTH);
    put_npz("far.npz", "x", &file, false, (UINT64_C(5) << 30) + 3);
    expect_rows("far.npz", &INT16_ROWS, data, N_ROWS, WIDTH);
#if PSPLIT_HAS_ZLIB
    put_npz("packed.npz", "x", &file, true, 0);
    expect_rows("packed.npz", &INT16_ROWS, data, N_ROWS, WIDTH);
#endif
    free(file.at);
  }
  for (size_t i = 0; i < N; i++) {
    const uint16_t value = (uint16_t)data[i];
    turned[i] = (int16_t)(value >> 8 | value << 8);
  }
  put_npy("big.npy", ">i2", "False", "(11, 3, 4)", turned, sizeof turned);
  expect_rows("big.npy", &INT16_ROWS, data, N_ROWS, WIDTH);
  /* Of one dimension there is one order; numpy may call it either. */
  static const int64_t plain[] = {4};
  const psplit_i_rows_wanted labels = {.name = "y", .data_type = INT16, .n_dims = 1, .dims = plain};
  put_npy("labels.npy", "<i2", "True", "(132,)", data, N * 2);
  expect_rows("labels.npy", &labels, data, N, 1);
  const psplit_i_rows_wanted any = {.name = "x", .data_type = INT16, .n_dims = PSPLIT_NONE};
  expect_rows("a.npy", &any, data, N_ROWS, WIDTH);
  free(data);
}

static void values_that_the_input_holds_are_taken_on_request(void **state) {
  (void)state;
  psplit_diag diag = {0};
  psplit_i_rows rows;
  psplit_i_rows_wanted wanted = {.name = "y", .data_type = INT64, .n_dims = PSPLIT_NONE};
  put_npy("y.npy", "|u1", "False", "(4,)", "\1\2\3\4", 4);
  assert_int_equal(psplit_i_rows_open("y.npy", &wanted, &diag, &rows), PSPLIT_INVALID);
  assert_string_equal(diag.message, "data for y: y.npy holds |u1, the input is int64");
  wanted.safe_casts = true;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_i_rows_open("y.npy", &wanted, &diag, &rows), PSPLIT_OK);
  assert_int_equal(rows.data_type, UINT8);
  assert_int_equal(rows.wanted_type, INT64);
  psplit_i_rows_close(&rows);
}

/* Bytes that this process has read so far; false: the system does not tell. */
static bool read_so_far(uint64_t *out) {
  FILE *file = fopen("/proc/self/io", "r");
  if (!file) return false;
  const bool good = fscanf(file, "rchar: %" SCNu64, out) == 1;
  fclose(file);
  return good;
}

static void nothing_else_is_read(void **state) {
  (void)state;
  enum { WIDTH = 1000, N_SLICE = 5 };
  const uint64_t n_rows = UINT64_C(3000000); /* 6 GB with holes */
  psplit_diag diag = {0};
  psplit_i_rows rows;
  static const int64_t dims[] = {-1, WIDTH};
  static int16_t out[N_SLICE * WIDTH];
  const psplit_i_rows_wanted wanted = {.name = "x", .data_type = INT16, .n_dims = 2, .dims = dims};
  uint64_t before = 0, opened = 0, after = 0, self = 0;
  made_bytes file = make_npy(1, "<i2", "False", "(3000000, 1000)", "", 0);
  put_file("large.npy", file.at, file.n);
  assert_int_equal(truncate("large.npy", (off_t)(file.n + n_rows * WIDTH * 2)), 0);
  const psplit_i_order order = all_rows(n_rows);
  const psplit_i_slice slice = {.epoch = 1, .begin = 1000, .end = 1000 + N_SLICE};
  if (!read_so_far(&before) || !read_so_far(&self)) skip();
  self -= before;
  assert_true(read_so_far(&before));
  assert_int_equal(psplit_i_rows_open("large.npy", &wanted, &diag, &rows), PSPLIT_OK);
  assert_true(read_so_far(&opened));
  assert_int_equal(psplit_i_rows_read(&rows, &order, &slice, &diag, out), PSPLIT_OK);
  assert_true(read_so_far(&after));
  assert_true(opened - before < self + 16 + file.n + 16);
  assert_true(after - opened >= sizeof out);
  assert_true(after - opened < self + 16 + sizeof out);
  psplit_i_rows_close(&rows);
  free(file.at);
}

typedef struct reader {
  const psplit_i_rows *rows;
  const int16_t *data;
  bool good;
} reader;

static void *read_much(void *user) {
  enum { WIDTH = 12, N_SLICE = 7 };
  reader *r = user;
  int16_t out[N_SLICE * WIDTH];
  psplit_diag diag = {0};
  const psplit_i_order order = all_rows(r->rows->n_rows);
  r->good = true;
  for (uint32_t epoch = 0; epoch < 50; epoch++)
    for (uint64_t at = 0; at + N_SLICE <= r->rows->n_rows; at += N_SLICE) {
      const psplit_i_slice slice = {.epoch = epoch, .begin = at, .end = at + N_SLICE};
      r->good &= psplit_i_rows_read(r->rows, &order, &slice, &diag, out) == PSPLIT_OK;
      for (uint64_t i = 0; i < N_SLICE; i++)
        r->good &=
          memcmp(out + i * WIDTH, r->data + psplit_i_order_row(&order, epoch, at + i) * WIDTH,
                 WIDTH * 2) == 0;
    }
  return NULL;
}

static void threads_read_at_once(void **state) {
  (void)state;
  enum { N_ROWS = 97, WIDTH = 12, N_THREADS = 4 };
  int16_t *data = counted(N_ROWS * WIDTH);
  psplit_diag diag = {0};
  psplit_i_rows rows;
  pthread_t threads[N_THREADS];
  reader readers[N_THREADS];
  put_npy("a.npy", "<i2", "False", "(97, 3, 4)", data, N_ROWS * WIDTH * 2);
  assert_int_equal(psplit_i_rows_open("a.npy", &INT16_ROWS, &diag, &rows), PSPLIT_OK);
  for (int t = 0; t < N_THREADS; t++) {
    readers[t] = (reader){.rows = &rows, .data = data};
    assert_int_equal(pthread_create(&threads[t], NULL, read_much, &readers[t]), 0);
  }
  for (int t = 0; t < N_THREADS; t++) {
    pthread_join(threads[t], NULL);
    assert_true(readers[t].good);
  }
  psplit_i_rows_close(&rows);
  free(data);
}

/* --- what does not fit --- */

static void expect_refused(const char *path, const psplit_i_rows_wanted *wanted, psplit_code code,
                           const char *says) {
  psplit_diag diag = {0};
  psplit_i_rows rows;
  assert_int_equal(psplit_i_rows_open(path, wanted, &diag, &rows), code);
  assert_string_equal(diag.message, says);
  psplit_i_rows_close(&rows);
}

static void what_does_not_fit_is_said(void **state) {
  (void)state;
  int16_t *data = counted(132);
  const psplit_i_rows_wanted *x = &INT16_ROWS;
  expect_refused("none.npy", x, PSPLIT_IO,
                 "data for x: none.npy: cannot be read: No such file or directory");
  put_npy("a.npy", "<i4", "False", "(11, 3, 2)", data, 264);
  expect_refused("a.npy", x, PSPLIT_INVALID, "data for x: a.npy holds <i4, the input is int16");
  put_npy("a.npy", "<i2", "False", "(11, 12)", data, 264);
  expect_refused("a.npy", x, PSPLIT_INVALID,
                 "data for x: a.npy has the shape [11, 12], the input takes [?, 3, 4]: all but the "
                 "first have to agree");
  put_npy("a.npy", "<i2", "False", "(11, 4, 3)", data, 264);
  expect_refused("a.npy", x, PSPLIT_INVALID,
                 "data for x: a.npy has the shape [11, 4, 3], the input takes [?, 3, 4]: all but "
                 "the first have to agree");
  put_npy("a.npy", "<i2", "True", "(11, 3, 4)", data, 264);
  expect_refused("a.npy", x, PSPLIT_UNSUPPORTED,
                 "data for x: a.npy is in Fortran order, where a row is spread over the file; "
                 "write it with numpy.ascontiguousarray");
  put_npy("a.npy", "<i2", "False", "(0, 3, 4)", data, 0);
  expect_refused("a.npy", x, PSPLIT_INVALID, "data for x: a.npy is empty");
  put_npy("a.npy", "<i2", "False", "(11, 3, 4)", data, 262);
  expect_refused(
    "a.npy", x, PSPLIT_MALFORMED,
    "data for x: a.npy: cut short: its shape takes more than the 262 bytes that it has");
  put_npy("a.npy", "<i2", "False", "(9223372036854775807, 3, 4)", data, 264);
  expect_refused(
    "a.npy", x, PSPLIT_MALFORMED,
    "data for x: a.npy: cut short: its shape takes more than the 264 bytes that it has");
  put_npy("a.npy", "<i2", "False", "(10, 3, 4)", data, 264);
  expect_refused("a.npy", x, PSPLIT_MALFORMED, "data for x: a.npy: has 24 bytes after its array");
  const psplit_i_rows_wanted any = {.name = "x", .data_type = INT16, .n_dims = PSPLIT_NONE};
  put_npy("a.npy", "<i2", "False", "()", data, 2);
  expect_refused("a.npy", &any, PSPLIT_INVALID,
                 "data for x: a.npy holds a single number; its first axis has to be the rows");
  put_file("a.npy", "text, and no array", 18);
  expect_refused("a.npy", x, PSPLIT_MALFORMED,
                 "data for x: a.npy: not an .npy file of version 1 to 3");
  put_file("a.npy", "\x1f\x8b\x08", 3);
  expect_refused("a.npy", x, PSPLIT_MALFORMED,
                 "data for x: a.npy: not an .npy file of version 1 to 3: it is compressed by gzip; "
                 "gunzip it first");
  static const char *const kHeaders[][2] = {{"False", "(11, 3, 4), 'shape': (22, 3, 2)"},
                                            {"False, 'fortran_order': True", "(11, 3, 4)"},
                                            {"Maybe", "(11, 3, 4)"},
                                            {"False", "(11 3 4)"},
                                            {"False", "(11,, 3, 4)"},
                                            {"False", "(11, 3, 4"},
                                            {"False", "(11, 3, 4), 'more': 1"},
                                            {"False", "(11, 3, 4)} {"},
                                            {"False", "(-11, 3, 4)"}};
  for (size_t i = 0; i < sizeof kHeaders / sizeof *kHeaders; i++) {
    put_npy("a.npy", "<i2", kHeaders[i][0], kHeaders[i][1], data, 264);
    expect_refused("a.npy", x, PSPLIT_MALFORMED,
                   "data for x: a.npy: the header is not a .npy header");
  }
  put_file("a.npz", "text", 4);
  expect_refused("a.npz", x, PSPLIT_MALFORMED, "data for x: a.npz: not a ZIP archive");
  put_file("a.npz", "\xff\xfe{\0", 4);
  expect_refused("a.npz", x, PSPLIT_MALFORMED,
                 "data for x: a.npz: not a ZIP archive: it is UTF-16 text; save it as UTF-8");
  made_bytes moved = make_npy(1, "<i2", "False", "(11, 3, 4)", data, 264);
  put_npz("a.npz", "x", &moved, false, 0);
  put_behind("a.npz", "front");
  expect_refused("a.npz", x, PSPLIT_MALFORMED, "data for x: a.npz: the archive is damaged");
  free(moved.at);
  put_file("a.csv", "1,2", 3);
  expect_refused("a.csv", x, PSPLIT_UNSUPPORTED,
                 "data for x: a.csv: rows are read from .npy and .npz; write it with numpy.save");
  made_bytes file = make_npy(1, "<i2", "False", "(11, 3, 4)", data, 264);
  listed_twice = true;
  put_npz("a.npz", "x", &file, false, 0);
  listed_twice = false;
  expect_refused("a.npz", x, PSPLIT_MALFORMED, "data for x: a.npz has 2 arrays x");
  put_npz("a.npz", "z", &file, false, 0);
  expect_refused("a.npz", x, PSPLIT_INVALID, "data for x: a.npz has no array x");
  const psplit_i_rows_wanted text = {.name = "x", .data_type = 8, .n_dims = PSPLIT_NONE};
  put_file("a.npy", file.at, file.n);
  expect_refused(
    "a.npy", &text, PSPLIT_UNSUPPORTED,
    "data for x: a.npy: strings cannot be read by rows; number them before the training");
  free(file.at);
  free(data);
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_rows_agree("x", 5, "y", 5, &diag), PSPLIT_OK);
  assert_int_equal(psplit_i_rows_agree("x", 60000, "y", 10000, &diag), PSPLIT_INVALID);
  assert_string_equal(
    diag.message,
    "the data has 60000 rows for x and 10000 for y: row by row they have to belong together");
}

static void a_file_that_shrinks_is_said(void **state) {
  (void)state;
  int16_t *data = counted(132), out[132];
  psplit_diag diag = {0};
  psplit_i_rows rows;
  put_npy("a.npy", "<i2", "False", "(11, 3, 4)", data, 264);
  assert_int_equal(psplit_i_rows_open("a.npy", &INT16_ROWS, &diag, &rows), PSPLIT_OK);
  assert_int_equal(truncate("a.npy", 100), 0);
  const psplit_i_order order = all_rows(11);
  const psplit_i_slice slice = {.begin = 0, .end = 11};
  assert_int_equal(psplit_i_rows_read(&rows, &order, &slice, &diag, out), PSPLIT_IO);
  assert_string_equal(diag.message,
                      "data for x: a.npy: cannot be read: it was truncated meanwhile");
  psplit_i_rows_close(&rows);
  free(data);
}

/* Cut at each byte: an error each time, and nothing read that is not there. */
static void files_cut_anywhere_are_refused(void **state) {
  (void)state;
  int16_t *data = counted(132);
  made_bytes file = make_npy(1, "<i2", "False", "(11, 3, 4)", data, 264);
  put_npz("whole.npz", "x", &file, false, 0);
  for (int kind = 0; kind < (PSPLIT_HAS_ZLIB ? 3 : 2); kind++) {
    const char *path = kind ? "cut.npz" : "cut.npy";
    unsigned char whole[1000];
    put_file(path, file.at, file.n);
    if (kind) put_npz(path, "x", &file, kind == 2, 0);
    const int fd = open(path, O_RDONLY);
    const ssize_t n = read(fd, whole, sizeof whole);
    close(fd);
    assert_true(n > 264 && n < (ssize_t)sizeof whole);
    for (ssize_t cut = 0; cut < n; cut++) {
      psplit_diag diag = {0};
      psplit_i_rows rows;
      put_file(path, whole, (size_t)cut);
      assert_int_equal(psplit_i_rows_open(path, &INT16_ROWS, &diag, &rows), PSPLIT_MALFORMED);
      assert_true(*diag.message);
    }
  }
  free(file.at);
  free(data);
}

/* Each byte of an archive's list and headers spoilt: refused, or the rows as they were; never a
 * crash, never rows of something else that go unnoticed in a packed array, which has a checksum. */
static void spoilt_archives_do_no_harm(void **state) {
  (void)state;
  int16_t *data = counted(132), out[132];
  made_bytes file = make_npy(1, "<i2", "False", "(11, 3, 4)", data, 264);
  unsigned char whole[1000];
  put_npz("a.npz", "x", &file, PSPLIT_HAS_ZLIB, 0);
  const int fd = open("a.npz", O_RDONLY);
  const ssize_t n = read(fd, whole, sizeof whole);
  close(fd);
  psplit_i_order order = all_rows(11);
  order.in_order = true;
  const psplit_i_slice slice = {.begin = 0, .end = 11};
  for (ssize_t at = 0; at < n; at++)
    for (int bit = 0; bit < 8; bit++) {
      psplit_diag diag = {0};
      psplit_i_rows rows;
      whole[at] ^= (unsigned char)(1 << bit);
      put_file("a.npz", whole, (size_t)n);
      whole[at] ^= (unsigned char)(1 << bit);
      if (psplit_i_rows_open("a.npz", &INT16_ROWS, &diag, &rows) != PSPLIT_OK) continue;
      assert_int_equal(psplit_i_rows_read(&rows, &order, &slice, &diag, out), PSPLIT_OK);
      if (PSPLIT_HAS_ZLIB) assert_memory_equal(out, data, sizeof out);
      psplit_i_rows_close(&rows);
    }
  free(file.at);
  free(data);
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  int16_t *data = counted(132);
  made_bytes file = make_npy(1, "<i2", "False", "(11, 3, 4)", data, 264);
  put_npz("a.npz", "x", &file, PSPLIT_HAS_ZLIB, 0);
  free(file.at);
  free(data);
  const long before = live_blocks();
  bool failed = true;
  for (long nth = 0; failed; nth++) {
    psplit_diag diag = {0};
    psplit_i_rows rows;
    fail_allocation_after(nth);
    const psplit_code code = psplit_i_rows_open("a.npz", &INT16_ROWS, &diag, &rows);
    failed = stop_failing();
    assert_int_equal(code, failed ? PSPLIT_NOMEM : PSPLIT_OK);
    psplit_i_rows_close(&rows);
    assert_int_equal(live_blocks(), before);
    assert_true(nth < 50);
  }
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, enter_scratch, leave_scratch)

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_epoch_has_each_row_once),
    cmocka_unit_test(what_is_left_is_dropped_and_steps_go_on),
    cmocka_unit_test(rows_are_those_of_the_counter),
    cmocka_unit_test(orders_that_cannot_be_are_refused),
    IN_SCRATCH(every_form_gives_the_same_rows),
    IN_SCRATCH(values_that_the_input_holds_are_taken_on_request),
    IN_SCRATCH(nothing_else_is_read),
    IN_SCRATCH(threads_read_at_once),
    IN_SCRATCH(what_does_not_fit_is_said),
    IN_SCRATCH(a_file_that_shrinks_is_said),
    IN_SCRATCH(files_cut_anywhere_are_refused),
    IN_SCRATCH(spoilt_archives_do_no_harm),
    IN_SCRATCH(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
