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
#include "shared_options.h"

#include <getopt.h>

#include "feed_options.h"
#include "ort_library.h"
#include "ort_options.h"
#include "prompts.h"
#ifdef PSPLIT_HAS_MPI
#include <psplit/generate_mpi.h>
#else
#define PSPLIT_HAS_MPI 0
#endif

enum {
  OPT_PROMPT = 256,
  OPT_PROMPTS,
  OPT_END,
  OPT_CONTEXT,
  OPT_SEQUENCES,
  OPT_STREAM,
  OPT_TEMPERATURE,
  OPT_TOP_K,
  OPT_TOP_P,
  OPT_IDS,
  OPT_LOGITS,
  OPT_STATE,
  OPT_ENCODER,
  OPT_PROMPT_SPLIT,
  OPT_DEPTH,
  OPT_TRANSPORT,
  OPT_TIMEOUT,
  OPT_JSON,
  OPT_MAX_TEXT,
};

static const cli_option OPTIONS[] = {
  {0, NULL, NULL, "Tokens:"},
  {OPT_PROMPT, "prompt-ids", "N,N,...", "a prompt, as token ids (repeatable)"},
  {OPT_PROMPTS, "prompts", "FILE",
   "prompts, one per line: token ids, or JSON with \"prompt_ids\" and input files (-: stdin)"},
  {'n', "max-new-tokens", "N",
   "maximum number of tokens to generate for each prompt; default: 128"},
  {OPT_END, "end", "N[,N...]", "token ids that end a sequence (repeatable); default: none"},
  {OPT_CONTEXT, "context", "N",
   "maximum length of a sequence with its prompt, above 1; default: none"},
  {OPT_STREAM, "stream", NULL, "print SEQUENCE TOKEN as each token is generated"},
  {0, NULL, NULL, "Sampling:"},
  {OPT_TEMPERATURE, "temperature", "T", "sample from softmax(logits / T); default: 0, greedy"},
  {OPT_TOP_K, "top-k", "K", "sample from the K most likely tokens; default: all"},
  {OPT_TOP_P, "top-p", "P",
   "sample from the smallest set of tokens with total probability P; default: 1, all"},
  {OPT_SEED, "seed", "N", "seed of sampling and of random inputs; default: 1"},
  {0, NULL, NULL, "Model:"},
  {OPT_IDS, "ids", "INPUT", "name of the input for token ids; default: input_ids"},
  {OPT_LOGITS, "logits", "OUTPUT",
   "name of the output with the logits; default: logits, or the only one that is not state"},
  {OPT_STATE, "state", "OUTPUT=INPUT",
   "OUTPUT of one step is INPUT of the next, besides present... and past... (repeatable)"},
  {OPT_PROMPT_SPLIT, "prompt-split", "DIR",
   "split of a separate model for the first step, with the same stages as DIR"},
  {OPT_ENCODER, "encoder", "DIR", "split of the encoder, which runs once for each sequence"},
  {OPT_INPUT, "input", "NAME=FILE|ones|zeros|LO..HI",
   "data for another input, also of the encoder, read once for each sequence; {} is its number"},
  {OPT_RANDOM, "random", NULL, "fill inputs that have no file with random numbers"},
  FEED_SIZE_OPTIONS,
  {0, NULL, NULL, "Execution:"},
  {OPT_SEQUENCES, "sequences", "N",
   "number of concurrent sequences; default: one more than there are stages"},
  ORT_LIBRARY_OPTIONS,
  {OPT_DEPTH, "depth", "N", "steps that may be queued between two stages; default: 2"},
  SHARED_TIMEOUT(OPT_TIMEOUT, "time limit for opening a stage, and for each of its steps"),
#if PSPLIT_HAS_MPI
  SHARED_TRANSPORT(OPT_TRANSPORT, "stage"),
#endif
  {0, NULL, NULL, "ONNX Runtime sessions, of each stage or of STAGE:"},
  ORT_OPTIONS,
  ORT_LEVEL_OPTION,
  {0, NULL, NULL, "General:"},
  {OPT_JSON, "json", NULL, "print one JSON object with all sequences and times"},
  CLI_MAX_TEXT(OPT_MAX_TEXT),
  {'q', "quiet", NULL, "no summary"},
  CLI_LOGGING_OPTIONS,
  CLI_LAST_OPTIONS,
};

static const cli PROGRAM = {
  "onnx-pipeline-generate", "DIR [OPTION]...",
  "Generates tokens with the decoder whose stages are in DIR, which onnx-pipeline-split wrote.\n"
  "Each stage keeps the state (KV cache) of all sequences, and several sequences are in flight at\n"
  "once. Prompts and results are token ids: there is no tokenizer.\n\n"
  "Example: onnx-pipeline-generate out --prompt-ids 1,15043,3186 --max-new-tokens 64 --end 2",
  OPTIONS, sizeof OPTIONS / sizeof *OPTIONS};

typedef struct settings {
  const char *directory, *encoder, *prompt_split;
  ort_library library;
  bool json, quiet, mpi, stream;
  prompts_list given;  /* --prompt-ids */
  const char *prompts; /* --prompts */
  int64_t *end_tokens;
  psplit_state_pair *states;
  uint64_t max_new;
  feed_settings feed;
  ort_settings ort;
  psplit_run_options run;
  psplit_generator_options own;
  /* By the generator's thread, and by main once that has ended. */
  pthread_mutex_t mutex;
  answers answers;
  uint64_t n_submitted;
  bool unwritten; /* standard output is full, or nobody reads it */
} settings;

#if PSPLIT_HAS_MPI
static uint32_t ranks; /* 0: MPI was not started */
#endif

/* --- options --- */

static bool add_state(settings *s, const char *text) {
  const char *at = strrchr(text, '=');
  if (!at || at == text || !at[1]) {
    cli_usage(&PROGRAM, "--state takes OUTPUT=INPUT, not \"%s\"", text);
    return false;
  }
  char *name = cli_need(strndup(text, (size_t)(at - text)));
  s->own.states = s->states = cli_need(cli_grow(s->states, s->own.n_states, sizeof *s->states));
  s->states[s->own.n_states++] = (psplit_state_pair){name, at + 1};
  return true;
}

static bool add_tokens(const char *option, const char *text, int64_t **out, size_t *out_n) {
  if (prompts_parse(text, out, out_n) && *out_n) return true;
  cli_usage(&PROGRAM, "--%s takes comma-separated token ids, not \"%s\"", option, text);
  return false;
}

/* One that is said again adds to what was said. */
static bool add_ends(settings *s, const char *text) {
  psplit_generator_options *o = &s->own;
  int64_t *tokens;
  size_t n;
  if (!add_tokens("end", text, &tokens, &n)) return false;
  o->end_tokens = s->end_tokens =
    cli_need(reallocarray(s->end_tokens, o->n_end_tokens + n, sizeof *tokens));
  memcpy(s->end_tokens + o->n_end_tokens, tokens, n * sizeof *tokens);
  o->n_end_tokens += n;
  free(tokens);
  return true;
}

static bool add_prompt(settings *s, const char *text) {
  int64_t *tokens;
  size_t n;
  if (!add_tokens("prompt-ids", text, &tokens, &n)) return false;
  if (!prompts_add(&s->given, tokens, n)) cli_need(NULL);
  return true;
}

/* One option; false after an error line. */
static bool take(settings *s, int id, const char *argument) {
  psplit_generator_options *o = &s->own;
  switch (id) {
    case OPT_PROMPT: return add_prompt(s, argument);
    case OPT_PROMPTS: s->prompts = argument; return o->prompt_inputs = true;
    case 'n': return cli_count(&PROGRAM, "max-new-tokens", argument, 1, INT64_MAX, &s->max_new);
    case OPT_END: return add_ends(s, argument);
    case OPT_CONTEXT: return cli_count(&PROGRAM, "context", argument, 2, INT64_MAX, &o->context);
    case OPT_SEQUENCES:
      return cli_count32(&PROGRAM, "sequences", argument, 1, 65536, &o->n_in_flight);
    case OPT_STREAM: return s->stream = true;
    case OPT_TEMPERATURE:
      return cli_real(&PROGRAM, "temperature", argument, 0, 1e6, &o->temperature);
    case OPT_TOP_K: return cli_count32(&PROGRAM, "top-k", argument, 1, UINT32_MAX, &o->top_k);
    case OPT_TOP_P: return cli_real(&PROGRAM, "top-p", argument, 1e-9, 1, &o->top_p);
    case OPT_IDS: o->ids = argument; return true;
    case OPT_LOGITS: o->logits = argument; return true;
    case OPT_STATE: return add_state(s, argument);
    case OPT_ENCODER: s->encoder = argument; return true;
    case OPT_PROMPT_SPLIT: s->prompt_split = argument; return true;
    case OPT_RANDOM: return s->feed.options.random = true;
    case OPT_ONNXRUNTIME:
    case OPT_CUSTOM_OPS: return ort_library_option(&PROGRAM, &s->library, id, argument);
    case OPT_DEPTH: return cli_count32(&PROGRAM, "depth", argument, 1, 1000, &s->run.depth);
    case OPT_TIMEOUT:
      if (!cli_real(&PROGRAM, "timeout", argument, 0.1, 1e9, &s->run.timeout_s)) return false;
      s->run.stall_timeout_s = s->run.timeout_s;
      return true;
#if PSPLIT_HAS_MPI
    case OPT_TRANSPORT: return shared_transport(&PROGRAM, argument, &s->mpi);
#endif
    case OPT_JSON: return s->json = true;
    case OPT_MAX_TEXT: return cli_max_text(&PROGRAM, argument, &s->ort.max_text_bytes);
    case 'q': return s->quiet = true;
    default:
      return feed_option(&PROGRAM, &s->feed, id, argument) ||
             ort_option(&PROGRAM, &s->ort, id, argument);
  }
}

/* -1: go on; else the exit status. */
static int parse(int argc, char **argv, settings *s) {
  const char *argument;
  for (int id; (id = cli_next(&PROGRAM, argc, argv, &argument)) != CLI_END;) {
    if (!take(s, id, argument)) return 2;
  }
  if (optind + 1 != argc) return cli_usage(&PROGRAM, "one directory is needed");
  if (!s->given.n && !s->prompts)
    return cli_usage(&PROGRAM, "no prompt: give --prompt-ids or --prompts");
  if (s->json && s->stream) return cli_usage(&PROGRAM, "--json and --stream cannot be combined");
  s->own.seed = s->feed.options.seed;
  s->run.feed = &s->feed.options;
  s->directory = argv[optind];
  return -1;
}

/* Ends the process, and so the threads that are left. */
static void give_up(void *user, const psplit_diag *diag) {
  settings *s = user;
  psplit_diag told = *diag;
  if (pthread_mutex_trylock(&s->mutex) == 0) { /* else someone hangs who has it */
    if (told.code != PSPLIT_CANCELLED && s->n_submitted)
      complete_tell(&s->answers.complete, s->n_submitted, &told);
    pthread_mutex_unlock(&s->mutex);
  }
  cli_fail(&told);
#if PSPLIT_HAS_MPI
  if (ranks) psplit_mpi_abort(cli_end_status(diag->code));
#endif
  _exit(cli_end_status(diag->code));
}

/* --- what comes out --- */

/* What cannot be written ends the run: prompts may come for ever. */
static void flush(settings *s) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return;
  s->unwritten = true;
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
  settings *s = user;
  (void)index;
  atomic_fetch_add(&tokens_made, 1);
  if (!s->stream) return;
  cli_make_room();
  printf("%" PRIu64 " %" PRId64 "\n", id, token);
  flush(s);
}

static void print_line(const psplit_generation *g) {
  cli_make_room();
  for (uint64_t i = 0; i < g->n_tokens; i++) printf("%s%" PRId64, i ? " " : "", g->tokens[i]);
  putchar('\n');
}

/* Keeps what has ended, and prints what is next in the order of prompts. */
static void on_end(void *user, const psplit_generation *g) {
  settings *s = user;
  pthread_mutex_lock(&s->mutex);
  answers_keep(&s->answers, g);
  for (const psplit_generation *next; (next = answers_next(&s->answers));)
    if (!s->json && !s->stream) print_line(next);
  if (!s->json) {
    flush(s);
    answers_forget(&s->answers);
  }
  pthread_mutex_unlock(&s->mutex);
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

static psplit_code submit(settings *s, psplit_generator *generator, const prompt_ids *ids,
                          psplit_diag *diag) {
  psplit_prompt prompt;
  psplit_prompt_init(&prompt);
  prompt.tokens = ids->tokens;
  prompt.n_tokens = ids->n;
  prompt.max_new_tokens = ids->max_new ? ids->max_new : s->max_new;
  prompt.inputs = ids->inputs;
  prompt.n_inputs = ids->n_inputs;
  prompt.token = on_token;
  prompt.end = on_end;
  prompt.user = s;
  const psplit_code code = psplit_generator_submit(generator, &prompt, diag, NULL);
  pthread_mutex_lock(&s->mutex);
  s->n_submitted += code == PSPLIT_OK;
  if (!s->end_tokens) atomic_store(&tokens_all, s->n_submitted * s->max_new);
  pthread_mutex_unlock(&s->mutex);
  return code;
}

/* Hands in all prompts: those of the command line, then those of the file, as they come. */
static psplit_code submit_all(settings *s, psplit_generator *generator, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (size_t i = 0; i < s->given.n && code == PSPLIT_OK; i++)
    code = submit(s, generator, &s->given.list[i], diag);
  prompts_file file = {.fd = -1};
  if (code == PSPLIT_OK && s->prompts) code = prompts_open(s->prompts, diag, &file);
  while (code == PSPLIT_OK && file.fd >= 0 && !*s->run.cancel) {
    prompt_ids next;
    bool end;
    code = prompts_next(&file, s->run.cancel, diag, &next, &end);
    if (code != PSPLIT_OK || end) break;
    code = submit(s, generator, &next, diag);
    prompt_ids_fini(&next);
  }
  prompts_close(&file);
  /* A signal between two prompts ends them as one does that comes while they are waited for. */
  if (code == PSPLIT_OK && cli_ended_by())
    code = psplit_diag_fail(diag, PSPLIT_CANCELLED, "interrupted");
  return code;
}

static psplit_code start(settings *s, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                         psplit_diag *diag, psplit_generator **out) {
#if PSPLIT_HAS_MPI
  if (s->mpi) return psplit_mpi_generator_start(ort, pipeline, &s->run, &s->own, diag, out);
#endif
  return psplit_generator_start(ort, pipeline, &s->run, &s->own, diag, out);
}

/* Prompts of the command line are all known: one that is too long ends the run before anything is
 * made. */
static psplit_code check_given(const settings *s, psplit_diag *diag) {
  for (size_t i = 0; s->own.context && i < s->given.n; i++)
    if (s->given.list[i].n >= s->own.context)
      return psplit_diag_fail(diag, PSPLIT_USAGE,
                              "a prompt of %" PRIu64
                              " tokens leaves no room in a context of %" PRIu64,
                              (uint64_t)s->given.list[i].n, s->own.context);
  return PSPLIT_OK;
}

/* Rank 0, or all stages. */
static psplit_code lead(settings *s, const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                        psplit_diag *diag) {
  psplit_generator *generator = NULL;
  psplit_generator_stats stats = {.struct_size = sizeof stats};
  psplit_diag later = {0};
  psplit_code code = check_given(s, diag);
  if (code != PSPLIT_OK) return code;
  cli_doing("opening the stages");
  code = start(s, ort, pipeline, diag, &generator);
  if (code != PSPLIT_OK) return code;
  cli_doing("making tokens");
  cli_count_by(count_tokens, NULL, "tokens");
  code = submit_all(s, generator, diag);
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
  if (s->json) answers_print_json(&s->answers, &stats, report);
  if (!s->json && !s->quiet && (code == PSPLIT_OK || stats.n_steps)) print_summary(&stats, report);
  answers_tell_failures(&s->answers);
  if (s->unwritten && !cli_ended_by()) {
    *diag = (psplit_diag){0}; /* that it was stopped follows from this */
    code = psplit_diag_fail(diag, PSPLIT_IO, "standard output cannot be written");
  } else if (end != PSPLIT_OK && end != PSPLIT_CANCELLED) {
    complete_tell(&s->answers.complete, s->n_submitted, diag);
  }
  if (code == PSPLIT_OK && s->answers.nomem) code = cli_nomem(diag);
  psplit_generator_destroy(generator);
  return code;
}

/* A split; none where `directory` is NULL. */
static psplit_code open_split(const settings *s, const char *directory, psplit_diag *diag,
                              psplit_pipeline **out) {
  psplit_pipeline_options reading;
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = s->ort.max_text_bytes;
  return directory ? psplit_pipeline_open(directory, &reading, diag, out) : PSPLIT_OK;
}

static psplit_code run(settings *s, psplit_diag *diag, uint32_t rank) {
  psplit_pipeline *pipeline = NULL;
  psplit_onnxruntime *ort = NULL;
  cli_doing("reading %s", s->directory);
  psplit_code code = open_split(s, s->directory, diag, &pipeline);
  if (code == PSPLIT_OK) code = open_split(s, s->encoder, diag, &s->own.encoder);
  if (code == PSPLIT_OK) code = open_split(s, s->prompt_split, diag, &s->own.prompt);
  if (code == PSPLIT_OK)
    code = ort_settings_apply(&s->ort, psplit_pipeline_get_info(pipeline), diag);
  if (code == PSPLIT_OK) code = ort_library_open(&s->library, diag, &ort);
  if (code == PSPLIT_OK) {
    s->run.sessions = s->ort.stages;
    s->run.n_sessions = psplit_pipeline_get_info(pipeline)->n_stages;
#if PSPLIT_HAS_MPI
    if (rank) {
      code = psplit_mpi_generator_run(ort, pipeline, &s->run, &s->own, diag);
    } else
#endif
      code = lead(s, ort, pipeline, diag);
  }
  psplit_onnxruntime_close(ort);
  psplit_pipeline_close(s->own.prompt);
  psplit_pipeline_close(s->own.encoder);
  psplit_pipeline_close(pipeline);
  (void)rank;
  return code;
}

static void settings_fini(settings *s) {
  answers_fini(&s->answers);
  for (size_t i = 0; i < s->own.n_states; i++) free((char *)(uintptr_t)s->states[i].output);
  free(s->states);
  free(s->end_tokens);
  prompts_fini(&s->given);
  feed_fini(&s->feed);
  ort_settings_fini(&s->ort);
  pthread_mutex_destroy(&s->mutex);
}

int main(int argc, char **argv) {
  enum { EXIT_FAILED_SEQUENCES = 1, DEFAULT_NEW = 128 };
  settings s = {.max_new = DEFAULT_NEW, .ort = {.no_replicas = true}};
  psplit_diag diag = {0};
  psplit_code code = PSPLIT_OK;
  uint32_t rank = 0;
  pthread_mutex_init(&s.mutex, NULL);
  feed_init(&s.feed);
  psplit_run_options_init(&s.run);
  psplit_generator_options_init(&s.own);
  s.run.give_up = give_up;
  s.run.give_up_user = &s;
  s.own.ended = on_stages_ended;
#if PSPLIT_HAS_MPI
  s.mpi = psplit_mpi_launched();
#endif
  int status = parse(argc, argv, &s);
  if (status < 0) {
#if PSPLIT_HAS_MPI
    if (s.mpi) code = psplit_mpi_begin(&diag, &rank, &ranks);
#endif
    s.run.cancel = cli_ends(CLI_ENDS_SOON);
    signal(SIGPIPE, SIG_IGN);
    if (code == PSPLIT_OK) code = run(&s, &diag, rank);
    status = code == PSPLIT_OK && s.answers.n_failed ? EXIT_FAILED_SEQUENCES : cli_end_status(code);
    if (code != PSPLIT_OK) cli_fail(&diag);
    status = cli_finish(status);
  }
  settings_fini(&s);
#if PSPLIT_HAS_MPI
  if (ranks && code != PSPLIT_OK) psplit_mpi_abort(status);
  if (ranks) psplit_mpi_end();
#endif
  return status;
}
