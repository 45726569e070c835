/* Why: what ONNX Runtime leaves behind of a stage is found or missed by a line that says which, and
 * times are sums of what stages took, in whatever order. The runs are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profile.h"
#include "stage.h"

enum { N_STAGES = 2, N_RUNS = 5 };

typedef enum left { A_PROFILE, PART, NOTHING, NO_DIRECTORY, A_FAILURE } left;
static left left_behind;
static uint32_t n_run; /* micro-batches that are told of */

psplit_code __wrap_psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                        const psplit_i_run_options *options, psplit_diag *diag,
                                        psplit_i_timeline *out);
psplit_code __wrap_psplit_i_run_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                        const psplit_i_run_options *options, psplit_diag *diag,
                                        psplit_i_timeline *out) {
  static const int64_t took_ns[N_RUNS] = {30, 10, 50, 20, 40};
  (void)ort;
  psplit_code code;
  assert_non_null(options->turn); /* one stage at a time */
  PSPLIT_TRY(psplit_i_timeline_init(pipe->manifest.n_stages, n_run, diag, out));
  out->n_micro_batches = n_run;
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++) {
    for (uint32_t m = 0; m < n_run; m++)
      out->events[s * n_run + m] =
        (psplit_i_event){.ready_ns = 100, .done_ns = 100 + (s + 1) * took_ns[m]};
    if (!options->stage_sessions || !options->stage_sessions[s].profile_prefix) continue;
    char path[256];
    snprintf(path, sizeof path, "%s", options->stage_sessions[s].profile_prefix);
    if (left_behind == NO_DIRECTORY && s) {
      *strrchr(path, '/') = '\0';
      assert_int_equal(rmdir(path), 0);
    } else if (left_behind != NOTHING || !s) {
      strcat(path, "_1.json");
      FILE *file = fopen(path, "w");
      assert_non_null(file);
      fprintf(file, left_behind == PART && s ? "[events of %u," : "[events of %u]\n", s);
      fclose(file);
    }
  }
  if (left_behind == A_FAILURE) PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID, "stage 1 fails"));
out:
  return code;
}

static psplit_i_pipe pipe_of_two(void) {
  psplit_i_pipe pipe = {0};
  pipe.manifest.n_stages = N_STAGES;
  return pipe;
}

static void files_are_found_or_told_of(void **state) {
  (void)state;
  static const struct {
    left left;
    psplit_code code;
    const char *says[2];
  } cases[] = {
    {A_PROFILE, PSPLIT_OK, {"", ""}},
    {PART, PSPLIT_IO, {"could not write all of its profile in ", "more room"}},
    {NOTHING, PSPLIT_IO, {"ONNX Runtime wrote no profile to ", ""}},
    {NO_DIRECTORY, PSPLIT_IO, {"cannot look into ", "No such file or directory"}},
    {A_FAILURE, PSPLIT_INVALID, {"stage 1 fails", ""}},
  };
  const psplit_i_pipe pipe = pipe_of_two();
  const psplit_i_run_options options = {.n_micro_batches = 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    psplit_i_profile found[N_STAGES];
    memset(found, 0, sizeof found);
    psplit_diag diag = {0};
    left_behind = cases[i].left;
    n_run = 1;
    assert_int_equal(psplit_i_profile_stages(NULL, &pipe, &options, &diag, found), cases[i].code);
    for (int k = 0; k < 2; k++)
      if (!strstr(diag.message, cases[i].says[k]))
        fail_msg("no \"%s\" in: %s", cases[i].says[k], diag.message);
    if (cases[i].code == PSPLIT_OK)
      assert_memory_equal(found[1].events, "[events of 1]\n", found[1].n_events);
    for (int s = 0; s < N_STAGES; s++) psplit_i_profile_fini(&found[s]);
  }
}

static void times_are_sorted(void **state) {
  (void)state;
  const psplit_i_pipe pipe = pipe_of_two();
  const psplit_i_run_options options = {.n_micro_batches = N_RUNS};
  left_behind = A_PROFILE;
  for (n_run = 0; n_run <= N_RUNS; n_run += N_RUNS) {
    psplit_i_profile found[N_STAGES];
    memset(found, 0, sizeof found);
    psplit_diag diag = {0};
    assert_int_equal(psplit_i_profile_time_stages(NULL, &pipe, &options, &diag, found), PSPLIT_OK);
    for (int s = 0; s < N_STAGES; s++) {
      assert_int_equal(found[s].least_ns, n_run ? 10 * (s + 1) : 0);
      assert_int_equal(found[s].median_ns, n_run ? 30 * (s + 1) : 0);
      assert_true(n_run ? found[s].spread_frac > 2.99 && found[s].spread_frac < 3.01
                        : found[s].spread_frac <= 0);
    }
  }
  left_behind = A_FAILURE;
  n_run = N_RUNS;
  psplit_diag diag = {0};
  assert_int_equal(psplit_i_profile_time_stages(NULL, &pipe, &options, &diag, NULL),
                   PSPLIT_INVALID);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(files_are_found_or_told_of),
    cmocka_unit_test(times_are_sorted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
