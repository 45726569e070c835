/* Profiles the stages of a pipeline, each with its own profile. They run as a pipeline, so that
 * each receives realistic tensors: random numbers in place of indices would not do. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile.h"
#include "stage.h"

/* One at a time; where threads cannot be ended, the files go first. */
typedef struct profiled {
  psplit_i_run_options run; /* the caller's */
  psplit_i_profile *profiles;
  uint32_t n_stages;
  pthread_mutex_t turn;
} profiled;

static void give_up(void *user, const psplit_diag *diag) {
  const profiled *p = user;
  for (uint32_t s = 0; s < p->n_stages; s++) psplit_i_profile_remove_files(&p->profiles[s]);
  p->run.give_up(p->run.give_up_user, diag);
}

/* `sessions`: NULL, or one for each stage. */
static psplit_code run_alone(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                             const psplit_i_run_options *options,
                             const psplit_i_session_options *sessions, psplit_diag *diag,
                             psplit_i_profile *profiles, psplit_i_timeline *timeline) {
  profiled p = {.run = *options, .profiles = profiles, .n_stages = pipe->manifest.n_stages};
  psplit_i_run_options run = *options;
  pthread_mutex_init(&p.turn, NULL);
  run.turn = &p.turn;
  if (sessions) run.stage_sessions = sessions;
  if (options->give_up) {
    run.give_up = give_up;
    run.give_up_user = &p;
  }
  const psplit_code code = psplit_i_run_threads(ort, pipe, &run, diag, timeline);
  pthread_mutex_destroy(&p.turn);
  return code;
}

/* ONNX Runtime wrote "profile_<time>.json" when the session was closed. A stage without a node has
 * a session, and so a file, too. */
static psplit_code take_events(psplit_i_profile *profile, psplit_diag *diag) {
  static const char BEGIN[] = "profile";
  psplit_code code = PSPLIT_OK;
  psplit_i_text path = {0};
  DIR *directory = opendir(profile->directory.bytes);
  if (!directory)
    PSPLIT_FAIL(psplit_i_fail(diag, errno == ENOMEM ? PSPLIT_NOMEM : PSPLIT_IO,
                              "cannot look into %s, where the profile is: %s",
                              profile->directory.bytes, strerror(errno)));
  for (struct dirent *each; directory && (each = readdir(directory));) {
    if (strncmp(each->d_name, BEGIN, sizeof BEGIN - 1) != 0) continue;
    psplit_i_text_addf(&path, "%s/%s", profile->directory.bytes, each->d_name);
    break;
  }
  if (directory) closedir(directory);
  if (path.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (!path.n)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "ONNX Runtime wrote no profile to %s",
                              profile->directory.bytes));
  PSPLIT_TRY(psplit_i_profile_take_events(path.bytes, diag, profile));
out:
  psplit_i_text_fini(&path);
  return code;
}

psplit_code psplit_i_profile_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                    const psplit_i_run_options *options, psplit_diag *diag,
                                    psplit_i_profile *out) {
  const uint32_t n = pipe->manifest.n_stages;
  psplit_code code = PSPLIT_OK;
  psplit_i_timeline timeline = {0};
  psplit_i_session_options *sessions = calloc((size_t)n + 1, sizeof *sessions);
  psplit_i_text *prefixes = calloc((size_t)n + 1, sizeof *prefixes);
  if (!sessions || !prefixes) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; s < n; s++) {
    PSPLIT_TRY(psplit_i_profile_make_room(&out[s], diag));
    psplit_i_text_addf(&prefixes[s], "%s/profile", out[s].directory.bytes);
    if (prefixes[s].failed) PSPLIT_FAIL(psplit_i_nomem(diag));
    sessions[s] = *psplit_i_stage_session(options, s);
    sessions[s].profile_prefix = prefixes[s].bytes;
    sessions[s].optimized_path = out[s].optimized.bytes;
  }
  PSPLIT_TRY(run_alone(ort, pipe, options, sessions, diag, out, &timeline));
  for (uint32_t s = 0; s < n; s++) PSPLIT_TRY(take_events(&out[s], diag));
out:
  psplit_i_timeline_fini(&timeline);
  for (uint32_t s = 0; prefixes && s < n; s++) psplit_i_text_fini(&prefixes[s]);
  free(prefixes);
  free(sessions);
  return code;
}

psplit_code psplit_i_profile_time_stages(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                         const psplit_i_run_options *options, psplit_diag *diag,
                                         psplit_i_profile *out) {
  psplit_code code;
  psplit_i_timeline timeline = {0};
  int64_t *ns = NULL;
  PSPLIT_TRY(run_alone(ort, pipe, options, NULL, diag, out, &timeline));
  const uint32_t n = psplit_i_timeline_n(&timeline);
  ns = calloc((size_t)n + 1, sizeof *ns);
  if (!ns) PSPLIT_FAIL(psplit_i_nomem(diag));
  for (uint32_t s = 0; n && s < timeline.n_stages; s++) {
    psplit_i_timeline_times(&timeline, s, ns);
    psplit_i_profile_take_times(ns, n, &out[s]);
  }
out:
  free(ns);
  psplit_i_timeline_fini(&timeline);
  return code;
}
