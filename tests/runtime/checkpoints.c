#include "checkpoints.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
/* cmocka.h needs some of the above first. */
#include <cmocka.h>

bool cannot_exchange;
bool __real_psplit_i_exchange(const char *a, const char *b);
bool __wrap_psplit_i_exchange(const char *a, const char *b);
bool __wrap_psplit_i_exchange(const char *a, const char *b) {
  return !cannot_exchange && __real_psplit_i_exchange(a, b);
}

enum { N_TENSORS = 2 * N_WEIGHTS };

static const psplit_i_manifest_dim DIMS[] = {{4, NULL}, {6, NULL}};
const psplit_i_trained_weight WEIGHTS[N_WEIGHTS] = {
  {.name = "fc.weight", .dtype = "float32", .shape = {2, DIMS}},
  {.name = "bias \"b\"", .dtype = "float32", .shape = {2, DIMS}},
  {.name = "a/w\n\xc3\xa9", .dtype = "float32", .shape = {2, DIMS}}};
static const char *const STATES[N_WEIGHTS] = {"fc.weight.momentum", "b.momentum", "a.momentum"};

static float value_of(uint64_t step, unsigned tensor, unsigned i) {
  return (float)(step * 1000 + tensor * 100 + i);
}

psplit_code save(const char *path, uint64_t step, uint32_t n_stages, const char *optimizer,
                 psplit_diag *diag) {
  static const int64_t dims[] = {4, 6};
  psplit_i_checkpoint_writer writer;
  uint64_t bytes[8] = {0};
  psplit_code code = psplit_i_checkpoint_begin(path, diag, &writer);
  for (uint32_t s = 0; s < n_stages && code == PSPLIT_OK; s++) {
    psplit_i_checkpoint_tensor tensors[N_TENSORS];
    float values[N_TENSORS][N_ELEMENTS];
    size_t n = 0;
    for (unsigned t = s; t < N_TENSORS; t += n_stages, n++) {
      for (unsigned i = 0; i < N_ELEMENTS; i++) values[n][i] = value_of(step, t, i);
      tensors[n] = (psplit_i_checkpoint_tensor){
        {.name = t < N_WEIGHTS ? WEIGHTS[t].name : STATES[t - N_WEIGHTS],
         .data_type = FLOAT,
         .n_dims = 2,
         .dims = dims,
         .n_bytes = sizeof values[n]},
        values[n]};
    }
    code = psplit_i_checkpoint_write_stage(writer.path, s, tensors, n, diag, &bytes[s]);
  }
  const psplit_i_checkpoint_state state = {.step = step,
                                           .epoch = (uint32_t)(step / 10),
                                           .batch = step % 10,
                                           .seed = UINT64_MAX - 1,
                                           .optimizer = optimizer,
                                           .n_rows = 100,
                                           .batch_rows = 10,
                                           .n_micro_batches = 5,
                                           .n_stages = n_stages};
  if (code == PSPLIT_OK)
    code = psplit_i_checkpoint_commit(&writer, &state, WEIGHTS, N_WEIGHTS, bytes, diag);
  psplit_i_checkpoint_abort(&writer);
  return code;
}

void must_save(const char *path, uint64_t step, uint32_t n_stages) {
  psplit_diag diag = {0};
  if (save(path, step, n_stages, "adamw", &diag) != PSPLIT_OK) fail_msg("%s", diag.message);
}

int64_t look(const char *path, psplit_diag *out_diag) {
  static const int64_t dims[] = {4, 6};
  psplit_i_checkpoint *found;
  psplit_diag diag = {0};
  float values[N_ELEMENTS];
  *out_diag = diag;
  if (psplit_i_checkpoint_open(path, out_diag, &found) != PSPLIT_OK) return -1;
  const psplit_i_checkpoint_state *state = psplit_i_checkpoint_state_of(found);
  assert_int_equal(psplit_i_checkpoint_n_tensors(found), N_TENSORS);
  assert_int_equal(state->epoch, state->step / 10);
  assert_int_equal(state->batch, state->step % 10);
  assert_true(state->seed == UINT64_MAX - 1);
  assert_int_equal(state->n_rows, 100);
  assert_int_equal(state->batch_rows, 10);
  assert_int_equal(state->n_micro_batches, 5);
  for (unsigned t = 0; t < N_TENSORS; t++) {
    const char *name = t < N_WEIGHTS ? WEIGHTS[t].name : STATES[t - N_WEIGHTS];
    assert_int_equal(psplit_i_checkpoint_load(found, name, FLOAT, dims, 2, &diag, values),
                     PSPLIT_OK);
    for (unsigned i = 0; i < N_ELEMENTS; i++) assert_true(values[i] == value_of(state->step, t, i));
  }
  const char *optimizer = state->optimizer;
  assert_int_equal(psplit_i_checkpoint_fits(found, WEIGHTS, N_WEIGHTS, optimizer, &diag),
                   PSPLIT_OK);
  const int64_t step = (int64_t)state->step;
  psplit_i_checkpoint_close(found);
  return step;
}

int64_t must_look(const char *path) {
  psplit_diag diag;
  const int64_t step = look(path, &diag);
  if (step < 0) fail_msg("%s", diag.message);
  return step;
}

unsigned n_entries(const char *path) {
  DIR *here = opendir(path);
  unsigned n = 0;
  assert_non_null(here);
  while (readdir(here)) n++;
  closedir(here);
  return n - 2;
}

void put(const char *path, const char *text, size_t n) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, n), (ssize_t)n);
  close(fd);
}
