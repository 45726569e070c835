/* External data: every hostile form is refused with its code, at once, and by both ways of opening
 * a file below a directory (openat2, and component by component where the system has none). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "onnx.pb-c.h"
#include "open.h"

static char directory[64]; /* the model is directory/m/model.onnx */

static void in_directory(char path[256], const char *name) {
  snprintf(path, 256, "%s/%s", directory, name);
}

static void put_link(const char *name, const char *target) {
  char path[256];
  in_directory(path, name);
  assert_int_equal(symlink(target, path), 0);
}

static int make_files(void **state) {
  (void)state;
  static const char bytes[8192] = {1, 2, 3, 4};
  char path[256];
  strcpy(directory, "/tmp/psplit-external-XXXXXX");
  assert_non_null(mkdtemp(directory));
  static const char *const directories[] = {"m", "m/sub", "m/x..y", "outside"};
  for (size_t i = 0; i < sizeof directories / sizeof *directories; i++) {
    in_directory(path, directories[i]);
    assert_int_equal(mkdir(path, 0755), 0);
  }
  static const char *const files[] = {"m/w.bin", "m/sub/w.bin", "m/x..y/..z",
                                      "m/...",   "secret",      "outside/w.bin"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    in_directory(path, files[i]);
    write_file(path, bytes, sizeof bytes);
  }
  put_link("m/to_inside", "w.bin");
  put_link("m/to_outside", "../secret");
  put_link("m/chain", "chain2");
  put_link("m/chain2", "to_outside");
  put_link("m/loop", "loop");
  put_link("m/dir_link", "../outside");
  put_link("m/sub_link", "sub");
  put_link("m/zero_link", "/dev/zero");
  in_directory(path, "m/fifo");
  assert_int_equal(mkfifo(path, 0644), 0);
  in_directory(path, "m/zero"); /* needs root; the case below then expects IO instead */
  if (mknod(path, S_IFCHR | 0644, (dev_t)(1 << 8 | 5)) != 0) (void)unlink(path);
  return 0;
}

static int remove_files(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", directory);
  return system(command);
}

/* Appends "key": "value" to a list of pairs. */
static void add_pair(psplit_i_text *pairs, const char *key, const char *value) {
  psplit_i_text_addf(pairs, "%s\"%s\": \"", pairs->n ? ", " : "", key);
  for (const char *c = value; *c; c++) psplit_i_text_addf(pairs, *c == '\\' ? "\\%c" : "%c", *c);
  psplit_i_text_puts(pairs, "\"");
}

/* An external tensor of so many floats; entries that are NULL are left out. */
static psplit_i_text external_tensor(const char *location, const char *offset, const char *length,
                                     int n_floats) {
  psplit_i_text pairs = {0}, text = {0};
  if (location) add_pair(&pairs, "location", location);
  if (offset) add_pair(&pairs, "offset", offset);
  if (length) add_pair(&pairs, "length", length);
  psplit_i_text_addf(&text, "float[%d] t = {} @{data_location: EXTERNAL, external_data: [%s]}",
                     n_floats, pairs.n ? pairs.bytes : "");
  psplit_i_text_fini(&pairs);
  return text;
}

/* Opens a model around a tensor in the directory; closes it again if that succeeds. */
static psplit_code open_with(const char *tensor, bool follow_symlinks, psplit_diag *diag) {
  psplit_i_text text = {0};
  psplit_i_text_addf(&text, "() => () <%s> {}", tensor);
  pb bytes = bytes_of_text(text.bytes);
  psplit_i_text_fini(&text);
  char path[256];
  in_directory(path, "m/model.onnx");
  write_file(path, bytes.bytes, bytes.n);
  psplit_i_text_fini(&bytes);
  const psplit_read_options options = {.struct_size = sizeof options,
                                       .follow_symlinks = follow_symlinks};
  psplit_model *model = NULL;
  *diag = (psplit_diag){0};
  const psplit_code code = psplit_model_open(path, &options, diag, &model);
  if (model) {
    psplit_i_payload payload;
    const Onnx__TensorProto *held = model->proto->graph->initializer[0];
    const bool empty = psplit_i_tensor_of(held).n_elements == 0;
    assert_int_equal(psplit_i_tensor_payload(model, held, &payload), !empty);
    assert_int_equal(payload.file, 1);
    assert_true(model->has_external_data);
    check_model(model);
    assert_int_equal(psplit_i_model_unchanged(model, NULL), PSPLIT_OK);
  }
  psplit_model_close(model);
  return code;
}

/* Of a processor: a busy machine takes longer. What hangs ends with the test's time. */
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void each_form_has_its_code(void **state) {
  (void)state;
  char absolute[256];
  in_directory(absolute, "m/w.bin");
  const struct {
    const char *location, *offset, *length;
    psplit_code code, following; /* the second with --follow-symlinks */
    const char *part;
  } cases[] = {
    {"w.bin", NULL, NULL, PSPLIT_OK, PSPLIT_OK, ""},
    {"w.bin", "8152", "40", PSPLIT_OK, PSPLIT_OK, ""},
    {"./w.bin", NULL, NULL, PSPLIT_OK, PSPLIT_OK, ""},
    {"sub/w.bin", "0", NULL, PSPLIT_OK, PSPLIT_OK, ""},
    {"sub//w.bin", "0", NULL, PSPLIT_OK, PSPLIT_OK, ""},
    {"x..y/..z", NULL, NULL, PSPLIT_OK, PSPLIT_OK, ""},
    {"...", NULL, NULL, PSPLIT_OK, PSPLIT_OK, ""},
    {"model.onnx", "3", NULL, PSPLIT_OK, PSPLIT_OK, ""},
    /* where it is */
    {NULL, NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "without a location"},
    {"", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "without a location"},
    {absolute, NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"/dev/zero", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"\\w.bin", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"..", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"../secret", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"sub/../w.bin", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"sub/../../secret", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"sub/..", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "is outside"},
    {"to_inside", NULL, NULL, PSPLIT_INVALID, PSPLIT_OK, "symbolic link"},
    {"to_outside", NULL, NULL, PSPLIT_INVALID, PSPLIT_OK, "symbolic link"},
    {"chain", NULL, NULL, PSPLIT_INVALID, PSPLIT_OK, "symbolic link"},
    {"loop", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "symbolic link"},
    {"dir_link/w.bin", NULL, NULL, PSPLIT_INVALID, PSPLIT_OK, "symbolic link"},
    {"sub_link/w.bin", NULL, NULL, PSPLIT_INVALID, PSPLIT_OK, "symbolic link"},
    {"zero_link", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, ""},
    /* what it is */
    {"absent", NULL, NULL, PSPLIT_IO, PSPLIT_IO, "No such file"},
    {"w.bin/x", NULL, NULL, PSPLIT_IO, PSPLIT_IO, "Not a directory"},
    {"fifo", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "not a regular file"},
    {"sub", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "not a regular file"},
    {".", NULL, NULL, PSPLIT_INVALID, PSPLIT_INVALID, "not a regular file"},
    /* which bytes of it */
    {"w.bin", "-4", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset \"-4\" has to be a number"},
    {"w.bin", "+4", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset \"+4\" has to be a number"},
    {"w.bin", " 4", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset \" 4\" has to be a number"},
    {"w.bin", "4x", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset \"4x\" has to be a number"},
    {"w.bin", "0x4", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset \"0x4\" has to be a number"},
    {"w.bin", "", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset \"\""},
    {"w.bin", "18446744073709551616", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "offset"},
    {"w.bin", "18446744073709551615", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "past the end"},
    {"w.bin", "18446744073709551600", "40", PSPLIT_INVALID, PSPLIT_INVALID, "past the end"},
    {"w.bin", "9223372036854775807", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "past the end"},
    {"w.bin", "8192", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "past the end"},
    {"w.bin", "8153", NULL, PSPLIT_INVALID, PSPLIT_INVALID, "past the end"},
    {"w.bin", NULL, "39", PSPLIT_INVALID, PSPLIT_INVALID, "39 bytes, its shape needs 40"},
    {"w.bin", NULL, "44", PSPLIT_INVALID, PSPLIT_INVALID, "44 bytes, its shape needs 40"},
    {"w.bin", NULL, "-1", PSPLIT_INVALID, PSPLIT_INVALID, "length \"-1\""},
    {"w.bin", NULL, "18446744073709551615", PSPLIT_INVALID, PSPLIT_INVALID, "length"},
    {"w.bin", NULL, "18446744073709551656", PSPLIT_INVALID, PSPLIT_INVALID, "length"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (unsigned follow = 0; follow < 2; follow++) {
      psplit_i_text tensor =
        external_tensor(cases[i].location, cases[i].offset, cases[i].length, 10);
      psplit_diag diag;
      const double start = seconds();
      const psplit_code code = open_with(tensor.bytes, follow, &diag);
      psplit_i_text_fini(&tensor);
      if (seconds() - start > 2) fail_msg("case %zu took %.1f s", i, seconds() - start);
      if (code != (follow ? cases[i].following : cases[i].code))
        fail_msg("%s, offset %s, length %s, follow %u: %s: %s", cases[i].location, cases[i].offset,
                 cases[i].length, follow, psplit_code_name(code), diag.message);
      if (!follow && !strstr(diag.message, cases[i].part))
        fail_msg("\"%s\" lacks \"%s\"", diag.message, cases[i].part);
    }
}

/* A tensor without elements has a place like any other, the end of the file included. */
static void empty_tensors_have_a_place(void **state) {
  (void)state;
  const struct {
    const char *location, *offset, *length;
    psplit_code code;
  } cases[] = {
    {"w.bin", "0", "0", PSPLIT_OK},         {"w.bin", NULL, NULL, PSPLIT_OK},
    {"w.bin", "8192", "0", PSPLIT_OK},      {"nothing.bin", "0", "0", PSPLIT_OK},
    {"w.bin", "8193", "0", PSPLIT_INVALID}, {"w.bin", "0", "4", PSPLIT_INVALID},
    {"absent.bin", "0", "0", PSPLIT_IO},
  };
  char path[256];
  in_directory(path, "m/nothing.bin");
  write_file(path, "", 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_i_text tensor = external_tensor(cases[i].location, cases[i].offset, cases[i].length, 0);
    psplit_diag diag;
    const psplit_code code = open_with(tensor.bytes, false, &diag);
    psplit_i_text_fini(&tensor);
    if (code != cases[i].code)
      fail_msg("case %zu: %s: %s", i, psplit_code_name(code), diag.message);
  }
}

static void devices_are_refused(void **state) {
  (void)state;
  char path[256];
  struct stat status;
  in_directory(path, "m/zero");
  psplit_diag diag;
  const psplit_code code = open_with("float[10] t = [\"location\": \"zero\"]", false, &diag);
  const bool made = stat(path, &status) == 0;
  /* A container may let a device be made but not opened. */
  if (code != PSPLIT_INVALID) assert_int_equal(code, PSPLIT_IO);
  if (made && code == PSPLIT_INVALID) assert_non_null(strstr(diag.message, "not a regular file"));
}

static void contradictions_are_refused(void **state) {
  (void)state;
#define AT_W_BIN "@{data_location: EXTERNAL, external_data: [\"location\": \"w.bin\"]}"
  static const struct {
    const char *tensor;
    psplit_code code;
    const char *part;
  } cases[] = {
    {"float[1] t = raw \"1234\" " AT_W_BIN, PSPLIT_INVALID, "both external and inline"},
    {"float[1] t = {1} " AT_W_BIN, PSPLIT_INVALID, "both external and inline"},
    {"float[1000] t = raw {0 * 1000} " AT_W_BIN, PSPLIT_INVALID, "both external and inline"},
    {"string[1] t = {} " AT_W_BIN, PSPLIT_INVALID, "strings"},
    {"float[10] t = [\"location\": \"w.bin\", \"location\": \"w.bin\"]", PSPLIT_INVALID, ""},
    {"float[10] t = [\"location\": \"w.bin\", \"offset\": \"0\", \"offset\": \"0\"]",
     PSPLIT_INVALID, ""},
    {"float[10] t = [\"location\": \"w.bin\", \"length\": \"40\", \"length\": \"40\"]",
     PSPLIT_INVALID, ""},
    /* other keys are the writer's own */
    {"float[10] t = [\"location\": \"w.bin\", \"checksum\": \"whatever\"]", PSPLIT_OK, ""},
  };
  psplit_diag diag;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(open_with(cases[i].tensor, false, &diag), cases[i].code);
    assert_non_null(strstr(diag.message, cases[i].part));
  }

  /* As bytes: no text has a string with a NUL. */
  pb entry = {0}, tensor = {0}, graph = {0}, bytes = {0};
  pb_string(&entry, 1, "location");
  pb_bytes(&entry, 2, "w.bin\0.txt", 10);
  pb_message(&tensor, 13, &entry);
  pb_message(&graph, 5, &tensor);
  pb_message(&bytes, 7, &graph);
  refused(&bytes, PSPLIT_MALFORMED, "NUL");
}

enum { MANY = 5000 };

static void part_path(char path[256], unsigned i) {
  char name[32];
  snprintf(name, sizeof name, "m/part%u", i);
  in_directory(path, name);
}

/* MANY tensors of four bytes, each its number, in a file each; the model is m/many.onnx. */
static void make_many_files(char model_path[256]) {
  psplit_i_text text = {0};
  char path[256];
  psplit_i_text_puts(&text, "() => () <");
  for (unsigned i = 0; i < MANY; i++) {
    part_path(path, i);
    write_file(path, &i, 4);
    psplit_i_text_addf(&text, "%sfloat[1] part%u = [\"location\": \"part%u\"]", i ? ", " : "", i,
                       i);
  }
  psplit_i_text_puts(&text, "> {}");
  pb bytes = bytes_of_text(text.bytes);
  psplit_i_text_fini(&text);
  in_directory(model_path, "m/many.onnx");
  write_file(model_path, bytes.bytes, bytes.n);
  psplit_i_text_fini(&bytes);
}

static void limit_open_files(rlim_t limit) {
  struct rlimit now;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
  now.rlim_cur = limit;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
}

/* A file for each tensor, as some exporters write, in linear time and with few of them open; where
 * not even those can be, it is a limit that the message says how to raise. */
static void many_files(void **state) {
  (void)state;
  struct rlimit old;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  char path[256], model_path[256];
  make_many_files(model_path);
  const int free_fd = dup(0);
  close(free_fd);

  limit_open_files((rlim_t)free_fd + 16); /* fewer than are kept open otherwise */
  psplit_model *model = NULL;
  psplit_diag diag = {0};
  assert_int_equal(psplit_model_open(model_path, NULL, &diag, &model), PSPLIT_OK);
  assert_int_equal(model->files.n, MANY + 1);
  for (unsigned k = 0; k < MANY; k++) {
    const unsigned i = k * 7 % MANY; /* 7 and MANY have no common factor */
    psplit_i_payload payload;
    unsigned number = MANY;
    assert_true(psplit_i_tensor_payload(model, model->proto->graph->initializer[i], &payload));
    assert_int_equal(psplit_i_model_read(model, payload.file, 0, &number, 4, &diag), PSPLIT_OK);
    assert_int_equal(number, i);
  }
  assert_int_equal(psplit_i_model_unchanged(model, &diag), PSPLIT_OK);
  /* Many holders at a time, until there is nothing to close for the next one. */
  int held[16], n_held = 0;
  psplit_code code = PSPLIT_OK;
  while (n_held < 16 && code == PSPLIT_OK)
    if ((code = psplit_i_data_file_hold(model, (uint32_t)n_held + 1, &diag, &held[n_held])) ==
        PSPLIT_OK)
      n_held++;
  assert_int_equal(code, PSPLIT_LIMIT);
  assert_true(n_held > 4);
  for (int i = 0; i < n_held; i++) psplit_i_data_file_release(model, (uint32_t)i + 1, held[i]);
  /* Another file in place of one that is closed at the moment. */
  diag = (psplit_diag){0};
  part_path(path, 100);
  unlink(path);
  write_file(path, "1234", 4);
  unsigned number;
  assert_int_equal(psplit_i_model_read(model, 101, 0, &number, 4, &diag), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "changed"));
  psplit_model_close(model);

  limit_open_files((rlim_t)free_fd + 2); /* the model and its directory */
  model = NULL;
  diag = (psplit_diag){0};
  assert_int_equal(psplit_model_open(model_path, NULL, &diag, &model), PSPLIT_LIMIT);
  assert_non_null(strstr(diag.message, "ulimit -n"));
  assert_null(model);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
  for (unsigned i = 0; i < MANY; i++) {
    part_path(path, i);
    unlink(path);
  }
}

/* A change of either file after it was opened is noticed. */
static void changed_files_are_noticed(void **state) {
  (void)state;
  psplit_diag diag;
  assert_int_equal(open_with("float[10] t = [\"location\": \"w.bin\"]", false, &diag), PSPLIT_OK);
  char model_path[256], data_path[256];
  in_directory(model_path, "m/model.onnx");
  in_directory(data_path, "m/w.bin");
  const char *const paths[] = {model_path, data_path};
  for (size_t i = 0; i < 2; i++) {
    psplit_model *model = NULL;
    diag = (psplit_diag){0};
    assert_int_equal(psplit_model_open(model_path, NULL, &diag, &model), PSPLIT_OK);
    assert_int_equal(psplit_i_model_unchanged(model, &diag), PSPLIT_OK);
    /* the year 2400: nanoseconds since 1970 do not fit 64 bits */
    const struct timespec times[2] = {{.tv_sec = 13569465600}, {.tv_sec = 13569465600}};
    assert_int_equal(utimensat(AT_FDCWD, paths[i], times, 0), 0);
    assert_int_equal(psplit_i_model_unchanged(model, &diag), PSPLIT_IO);
    psplit_model_close(model);
  }
}

/* From here on openat2 does not exist for this process. */
static void without_openat2(void **state) {
  struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    skip();
  errno = 0;
  assert_int_equal(syscall(SYS_openat2, -1, "", NULL, 0), -1);
  assert_int_equal(errno, ENOSYS);
  each_form_has_its_code(state);
  devices_are_refused(state);
}

/* The bytes of m/model.onnx, whose tensor is in sub/w.bin, and a descriptor of it. */
static int model_with_data(uint8_t *bytes, size_t most, size_t *out_n) {
  char path[256];
  psplit_diag diag;
  psplit_i_text tensor = external_tensor("sub/w.bin", NULL, NULL, 2048);
  assert_int_equal(open_with(tensor.bytes, false, &diag), PSPLIT_OK);
  psplit_i_text_fini(&tensor);
  in_directory(path, "m/model.onnx");
  const int fd = open(path, O_RDONLY);
  const ssize_t n = read(fd, bytes, most); /* the offset is now at the end */
  assert_in_range(n, 1, most - 1);
  *out_n = (size_t)n;
  return fd;
}

/* From memory, from a descriptor, and again from what is open: external data is where the options
 * say, nothing of the caller's is kept, and descriptors stay whose they were. */
static void without_a_path(void **state) {
  (void)state;
  uint8_t bytes[1024], scribbled[1024];
  size_t n;
  char wanted[256], name[16];
  const int fd = model_with_data(bytes, sizeof bytes, &n);
  in_directory(wanted, "m/sub/w.bin");
  for (int from_memory = 0; from_memory < 2; from_memory++) {
    psplit_read_options options;
    psplit_diag diag = {0};
    psplit_model *model = NULL, *again = NULL;
    psplit_read_options_init(&options);
    assert_int_equal(from_memory
                       ? psplit_model_open_memory(bytes, n, "mine", &options, &diag, &model)
                       : psplit_model_open_fd(fd, "mine", &options, &diag, &model),
                     PSPLIT_USAGE);
    assert_null(model);
    assert_int_equal(diag.hint, PSPLIT_HINT_DATA_DIRECTORY);
    assert_memory_equal(diag.message, "mine: ", 6);
    char data[256];
    in_directory(data, "m");
    options.data_directory = data;
    strcpy(name, "mine");
    memcpy(scribbled, bytes, n);
    diag = (psplit_diag){0};
    assert_int_equal(from_memory
                       ? psplit_model_open_memory(scribbled, n, name, &options, &diag, &model)
                       : psplit_model_open_fd(fd, name, &options, &diag, &model),
                     PSPLIT_OK);
    memset(scribbled, 0xff, sizeof scribbled);
    memset(data, 'x', sizeof data - 1);
    memset(name, 'x', sizeof name - 1);
    assert_int_equal(psplit_model_n_files(model), 2);
    assert_string_equal(psplit_model_file_path(model, 0), "mine");
    assert_string_equal(psplit_model_file_path(model, 1), wanted);
    check_model(model);
    assert_int_equal(psplit_i_model_unchanged(model, NULL), PSPLIT_OK);
    assert_int_equal(
      psplit_i_model_reopen(model, NULL, 0, &(psplit_read_options){0}, &diag, &again), PSPLIT_OK);
    psplit_model_close(model);
    assert_string_equal(psplit_model_file_path(again, 1), wanted);
    check_model(again);
    psplit_model_close(again);
  }
  assert_int_equal(close(fd), 0);
}

/* A proof opens a model that has Ifs inlined a second time: with its own data_directory. */
static void reopened_from_its_own_options(void **state) {
  (void)state;
  uint8_t bytes[1024];
  size_t n;
  char path[256], wanted[256], *data = malloc(256);
  close(model_with_data(bytes, sizeof bytes, &n));
  assert_non_null(data);
  in_directory(data, "m");
  in_directory(path, "m/model.onnx");
  in_directory(wanted, "m/sub/w.bin");
  const psplit_read_options options = {.struct_size = sizeof options, .data_directory = data};
  psplit_diag diag = {0};
  psplit_model *model, *again;
  assert_int_equal(psplit_model_open(path, &options, &diag, &model), PSPLIT_OK);
  memset(data, 'x', 255);
  free(data);
  assert_int_equal(psplit_i_model_reopen(model, NULL, 0, &(psplit_read_options){0}, &diag, &again),
                   PSPLIT_OK);
  assert_string_equal(psplit_model_file_path(again, 1), wanted);
  psplit_model_close(again);
  psplit_model_close(model);
}

static void bad_memory_and_descriptors(void **state) {
  (void)state;
  int ends[2];
  psplit_diag diag = {0};
  psplit_model *model = NULL;
  assert_int_equal(psplit_model_open_memory(NULL, 0, NULL, NULL, &diag, &model), PSPLIT_MALFORMED);
  assert_memory_equal(diag.message, "model: ", 7);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_model_open_memory("\xff", 1, NULL, NULL, &diag, &model),
                   PSPLIT_MALFORMED);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_model_open_fd(-1, NULL, NULL, &diag, &model), PSPLIT_IO);
  assert_int_equal(pipe(ends), 0);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_model_open_fd(ends[0], NULL, NULL, &diag, &model), PSPLIT_IO);
  assert_non_null(strstr(diag.message, "not a regular file"));
  assert_null(model);
  close(ends[0]);
  close(ends[1]);
  diag = (psplit_diag){0};
  assert_int_equal(psplit_model_open_fd(0, NULL, &(psplit_read_options){0}, &diag, &model),
                   PSPLIT_USAGE);
  assert_non_null(strstr(diag.message, "psplit_read_options_init"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_form_has_its_code),
    cmocka_unit_test(empty_tensors_have_a_place),
    cmocka_unit_test(devices_are_refused),
    cmocka_unit_test(contradictions_are_refused),
    cmocka_unit_test(many_files),
    cmocka_unit_test(without_a_path),
    cmocka_unit_test(reopened_from_its_own_options),
    cmocka_unit_test(bad_memory_and_descriptors),
    cmocka_unit_test(changed_files_are_noticed),
    cmocka_unit_test(without_openat2), /* last: it cannot be undone */
  };
  return cmocka_run_group_tests(tests, make_files, remove_files);
}
