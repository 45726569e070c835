/* onnx-pipeline-generate: tokens in, tokens out, on the stages of a split decoder. */
#include <inttypes.h>
#include <psplit/generate.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answers.h"
#include "cli.h"
#include "generate_settings.h"
#if PSPLIT_HAS_MPI
#include <psplit/generate_mpi.h>
#endif

/* A run of the program. */
typedef struct work {
  generate_settings settings;
  /* The rest is written by the generator's thread, and by main once that has ended. */
  pthread_mutex_t mutex;
  answers answers;
  uint64_t n_submitted;
  bool unwritten; /* standard output cannot be written any more */
} work;

#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  work *w = user;
  psplit_diag told = *diag;
  if (pthread_mutex_trylock(&w->mutex) == 0) { /* else someone hangs who has it */
    if (told.code != PSPLIT_CANCELLED && w->n_submitted)
      complete_tell(&w->answers.complete, w->n_submitted, &told);
    pthread_mutex_unlock(&w->mutex);
  }
  cli_fail(&told);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(cli_end_status(diag->code));
#endif
  _exit(cli_end_status(diag->code));
}

/* --- what comes out --- */

/* What cannot be written ends the run: prompts may come for ever. */
static void flush(work *w) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  w->unwritten = true;
  cli_cancel_own();
}

/* Tokens made and, where none ends a sequence early, to be made, for the thread that shows them. */
static atomic_uint_least64_t tokens_made, tokens_all;

/* A cli_counter. */
static uint64_t count_tokens(void *user, uint64_t *out_all) {
  (void)user;
  *out_all = atomic_load(&tokens_all);
  return atomic_load(&tokens_made);
}

static void on_token(void *user, uint64_t id, uint64_t index, int64_t token) {
  work *w = user;
  (void)index;
  atomic_fetch_add(&tokens_made, 1);
  if (!w->settings.stream) return;
  cli_make_room();
  printf("%" PRIu64 " %" PRId64 "\n", id, token);
  flush(w);
}

static void print_line(const psplit_generation *g) {
  cli_make_room();
  for (uint64_t i = 0; i < g->n_tokens; i++) printf("%s%" PRId64, i ? " " : "", g->tokens[i]);
  putchar('\n');
}

/* Keeps what has ended, and prints what is next in the order of prompts. */
static void on_end(void *user, const psplit_generation *g) {
  work *w = user;
  pthread_mutex_lock(&w->mutex);
  answers_keep(&w->answers, g);
  for (const psplit_generation *next; (next = answers_next(&w->answers));)
    if (!w->settings.json && !w->settings.stream) print_line(next);
  if (!w->settings.json) {
    flush(w);
    answers_forget(&w->answers);
  }
  pthread_mutex_unlock(&w->mutex);
}

/* Nobody waits for prompts that nothing would take. */
static void on_stages_ended(void *user) {
  (void)user;
  cli_cancel_own();
}

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void print_summary(const psplit_generator_stats *stats, const psplit_run_report *report) {
  char text[CLI_TEXT];
  fprintf(stderr,
          "%" PRIu64 " sequence%s, %" PRIu64 " prompt token%s, %" PRIu64
          " token%s in %.3g s: %.4g a second; state of at most %s, idle %.1f %%\n",
          stats->n_ended, plural(stats->n_ended), stats->n_prompt_tokens,
          plural(stats->n_prompt_tokens), stats->n_tokens, plural(stats->n_tokens), stats->seconds,
          stats->seconds > 0 ? (double)stats->n_tokens / stats->seconds : 0.0,
          cli_bytes(stats->state_bytes, text), report ? 100 * report->bubble_frac : 0.0);
}

/* --- work --- */

static psplit_code submit(work *w, psplit_generator *generator, const prompt_ids *ids,
                          psplit_diag *diag) {
  psplit_prompt prompt;
  psplit_prompt_init(&prompt);
  prompt.tokens = ids->tokens;
  prompt.n_tokens = ids->n;
  prompt.max_new_tokens = ids->max_new ? ids->max_new : w->settings.max_new;
  prompt.inputs = ids->inputs;
  prompt.n_inputs = ids->n_inputs;
  prompt.token = on_token;
  prompt.end = on_end;
  prompt.user = w;
  const psplit_code code = psplit_generator_submit(generator, &prompt, diag, NULL);
  pthread_mutex_lock(&w->mutex);
  w->n_submitted += code == PSPLIT_OK;
  if (!w->settings.end_tokens) atomic_store(&tokens_all, w->n_submitted * w->settings.max_new);
  pthread_mutex_unlock(&w->mutex);
  return code;
}

/* Hands in all prompts: those of the command line, then those of the file, as they come. */
static psplit_code submit_all(work *w, psplit_generator *generator, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < w->settings.given.n && code == PSPLIT_OK; i++)
    code = submit(w, generator, &w->settings.given.list[i], diag);
  prompts_file file = {.fd = -1};
  if (code == PSPLIT_OK && w->settings.prompts)
    code = prompts_open(w->settings.prompts, diag, &file);
  while (code == PSPLIT_OK && file.fd >= 0 && !*w->settings.run.cancel) {
    prompt_ids next;
    bool end;
    code = prompts_next(&file, w->settings.run.cancel, diag, &next, &end);
    if (code != PSPLIT_OK || end) break;
    code = submit(w, generator, &next, diag);
    prompt_ids_fini(&next);
  }
  prompts_close(&file);
  /* A signal between two prompts ends them as one does that comes while they are waited for. */
  if (code == PSPLIT_OK && cli_ended_by())
    code = psplit_diag_fail(diag, PSPLIT_CANCELLED, "interrupted");
  return code;
}

static psplit_code start(work *w, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                         psplit_diag *diag, psplit_generator **out) {
#if PSPLIT_HAS_MPI
  if (w->settings.mpi)
    return psplit_mpi_generator_start(ort, pipeline, &w->settings.run, &w->settings.own, diag, out);
#endif
  return psplit_generator_start(ort, pipeline, &w->settings.run, &w->settings.own, diag, out);
}

/* Prompts of the command line are all known: one that is too long ends the run before anything is
 * made. */
static psplit_code check_given(const work *w, psplit_diag *diag) {
  for (size_t i = 0; w->settings.own.context && i < w->settings.given.n; i++)
    if (w->settings.given.list[i].n >= w->settings.own.context)
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "a prompt of %" PRIu64
                              " tokens leaves no room in a context of %" PRIu64,
                              (uint64_t)w->settings.given.list[i].n, w->settings.own.context);
  return PSPLIT_OK;
}

/* Rank 0, or all stages. */
static psplit_code lead(work *w, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                        psplit_diag *diag) {
  psplit_generator *generator = NULL;
  psplit_generator_stats stats = {.struct_size = sizeof stats};
  psplit_diag later = {0};
  psplit_code code = check_given(w, diag);
  if (code != PSPLIT_OK) return code;
  cli_doing("opening the stages");
  code = start(w, ort, pipeline, diag, &generator);
  if (code != PSPLIT_OK) return code;
  cli_doing("making tokens");
  cli_count_by(count_tokens, NULL, "tokens");
  code = submit_all(w, generator, diag);
  const psplit_code end = psplit_generator_finish(generator, &later);
  /* What stopped the stages is why no more prompts were taken. */
  if (end != PSPLIT_OK) {
    *diag = later;
    code = end;
  }
  const psplit_run *run = psplit_generator_get_run(generator);
  const psplit_run_report *report = run ? psplit_run_get_report(run) : NULL;
  psplit_generator_get_stats(generator, &stats);
  cli_idle();
  if (w->settings.json) answers_print_json(&w->answers, &stats, report);
  if (!w->settings.json && !w->settings.quiet && (code == PSPLIT_OK || stats.n_steps))
    print_summary(&stats, report);
  answers_tell_failures(&w->answers);
  if (w->unwritten && !cli_ended_by()) {
    *diag = (psplit_diag){0}; /* that it was stopped follows from this */
    code = psplit_diag_fail(diag, PSPLIT_IO, "standard output cannot be written");
  } else if (end != PSPLIT_OK && end != PSPLIT_CANCELLED) {
    complete_tell(&w->answers.complete, w->n_submitted, diag);
  }
  if (code == PSPLIT_OK && w->answers.nomem) code = cli_nomem(diag);
  psplit_generator_destroy(generator);
  return code;
}

/* A split; none where `directory` is NULL. */
static psplit_code open_split(const work *w, const char *directory, psplit_diag *diag,
                              psplit_pipeline **out) {
  psplit_pipeline_options reading;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = w->settings.ort.max_text_bytes;
  return directory ? psplit_pipeline_open(directory, &reading, diag, out) : PSPLIT_OK;
}

static psplit_code run(work *w, psplit_diag *diag, uint32_t rank) {
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  cli_doing("reading %s", w->settings.directory);
  psplit_code code = open_split(w, w->settings.directory, diag, &pipeline);
  if (code == PSPLIT_OK) code = open_split(w, w->settings.encoder, diag, &w->settings.own.encoder);
  if (code == PSPLIT_OK)
    code = open_split(w, w->settings.prompt_split, diag, &w->settings.own.prompt);
  if (code == PSPLIT_OK)
    code = ort_settings_apply(&w->settings.ort, psplit_pipeline_get_info(pipeline), diag);
  if (code == PSPLIT_OK) code = ort_library_open(&w->settings.library, diag, &ort);
  if (code == PSPLIT_OK) {
    w->settings.run.sessions = w->settings.ort.stages;
    w->settings.run.n_sessions = psplit_pipeline_get_info(pipeline)->n_stages;
#if PSPLIT_HAS_MPI
    if (rank) {
      code = psplit_mpi_generator_run(ort, pipeline, &w->settings.run, &w->settings.own, diag);
    } else
#endif
      code = lead(w, ort, pipeline, diag);
  }
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(w->settings.own.prompt);
  psplit_pipeline_close(w->settings.own.encoder);
  psplit_pipeline_close(pipeline);
  (void)rank;
  return code;
}

int main(int argc, char **argv) {
  enum { EXIT_FAILED_SEQUENCES = 1 };
  work w = {.unwritten = false};
  generate_settings *s = &w.settings;
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
  pthread_mutex_init(&w.mutex, NULL);
  generate_settings_init(s);
  s->run.give_up = give_up;
  s->run.give_up_user = &w;
  s->own.ended = on_stages_ended;
#if PSPLIT_HAS_MPI
  s->mpi = psplit_mpi_launched();
#endif
  int status = generate_settings_parse(argc, argv, s);
  if (status < 0) {
#if PSPLIT_HAS_MPI
    if (s->mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    s->run.cancel = cli_ends(CLI_ENDS_SOON);
    signal(SIGPIPE, SIG_IGN);
    if (code == PSPLIT_OK) code = run(&w, &diag, rank);
    status = code == PSPLIT_OK && w.answers.n_failed ? EXIT_FAILED_SEQUENCES : cli_end_status(code);
    if (code != PSPLIT_OK) cli_fail(&diag);
    status = cli_finish(status);
  }
  answers_fini(&w.answers);
  generate_settings_fini(s);
  pthread_mutex_destroy(&w.mutex);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
