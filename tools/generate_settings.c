#include "generate_settings.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "shared_options.h"

#include <getopt.h>

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

static bool add_state(generate_settings *s, const char *text) {
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

/* Adds the tokens of one --end to those of others. */
static bool add_ends(generate_settings *s, const char *text) {
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

static bool add_prompt(generate_settings *s, const char *text) {
  int64_t *tokens;
  size_t n;
  if (!add_tokens("prompt-ids", text, &tokens, &n)) return false;
  if (!prompts_add(&s->given, tokens, n)) cli_need(NULL);
  return true;
}

/* One option; false after an error line. */
static bool take(generate_settings *s, int id, const char *argument) {
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
      return shared_timeout(&PROGRAM, argument, &s->run.timeout_s, &s->run.stall_timeout_s);
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

int generate_settings_parse(int argc, char **argv, generate_settings *s) {
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

void generate_settings_init(generate_settings *s) {
  enum { DEFAULT_NEW = 128 };
  *s = (generate_settings){.max_new = DEFAULT_NEW, .ort = {.no_replicas = true}};
  feed_init(&s->feed);
  psplit_run_options_init(&s->run);
  psplit_generator_options_init(&s->own);
}

void generate_settings_fini(generate_settings *s) {
  for (size_t i = 0; i < s->own.n_states; i++) free((char *)(uintptr_t)s->states[i].output);
  free(s->states);
  free(s->end_tokens);
  prompts_fini(&s->given);
  feed_fini(&s->feed);
  ort_settings_fini(&s->ort);
}
