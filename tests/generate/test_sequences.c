/* Sequences in the making: what each step is given, what ends them, and that nothing stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "made_tensors.h"
#include "sequences.h"

enum { FLOAT = 1, INT64 = 7, MOST_INPUTS = 6, MOST_TOKENS = 64 };

/* A decoder of one model: tokens, a mask, what stays the same, a state. */
static const char *const INPUTS[] = {"ids", "mask", "style", "past"};
static const psplit_i_manifest_dim ROW[] = {{.value = 1}, {.value = -1}};
static const psplit_i_manifest_value VALUES[] = {{"ids", "int64", {2, ROW}},
                                                 {"mask", "int64", {2, ROW}},
                                                 {"style", "float32", {2, ROW}},
                                                 {"past", "float32", {2, ROW}}};
static psplit_i_role ROLES[] = {PSPLIT_I_ROLE_IDS, PSPLIT_I_ROLE_MASK, PSPLIT_I_ROLE_OTHER,
                                PSPLIT_I_ROLE_STATE};
enum { IDS, MASK, STYLE, PAST };
static psplit_i_phase PHASE[] = {{.n_needed = 4}};
static const psplit_i_pipe PIPE = {
  .manifest = {.n_inputs = 4, .n_needed = 4, .inputs = INPUTS, .input_values = VALUES},
  .n_phases = 1,
  .phases = PHASE};
static const psplit_i_decoder DECODER = {.phases = {.encode = PSPLIT_NONE}, .roles = ROLES};
static const psplit_i_feed_options NO_FEED;
static const int64_t END_TOKENS[] = {8, 9};

static psplit_i_sequences_options options_of(const psplit_i_pipe *pipe,
                                             const psplit_i_decoder *decoder) {
  return (psplit_i_sequences_options){.pipe = pipe,
                                      .decoder = decoder,
                                      .feed = &NO_FEED,
                                      .n_slots = 1,
                                      .max_waiting = 4,
                                      .end_tokens = END_TOKENS,
                                      .n_end_tokens = 2};
}

static psplit_i_sequences *created(const psplit_i_sequences_options *options,
                                   psplit_i_source *source) {
  psplit_diag diag = {0};
  psplit_i_sequences *made_of;
  if (psplit_i_sequences_create(options, &diag, &made_of) != PSPLIT_OK)
    fail_msg("%s", diag.message);
  psplit_i_sequences_connect(made_of, source);
  return made_of;
}

/* What was told of one sequence. */
typedef struct told {
  uint64_t n_tokens, n_told;
  int64_t tokens[MOST_TOKENS];
  int n_ends;
  psplit_generation_end end;
  psplit_code code;
  char message[256];
} told;

static void token(void *user, uint64_t id, uint64_t index, int64_t value) {
  told *t = user;
  (void)id;
  assert_int_equal(index, t->n_told);
  t->tokens[t->n_told++] = value;
}

static void end(void *user, const psplit_generation *generation) {
  told *t = user;
  t->n_ends++;
  t->end = generation->end;
  t->code = generation->code;
  t->n_tokens = generation->n_tokens;
  snprintf(t->message, sizeof t->message, "%s", generation->message);
  assert_true(generation->waited_ns >= 0 && generation->first_ns >= 0 &&
              generation->total_ns >= generation->first_ns);
  if (generation->n_tokens == t->n_told)
    assert_memory_equal(generation->tokens, t->tokens, t->n_told * sizeof *t->tokens);
}

static psplit_prompt prompt_of(const int64_t *tokens, uint64_t n, uint64_t most, told *user) {
  psplit_prompt prompt;
  psplit_prompt_init(&prompt);
  prompt.tokens = tokens;
  prompt.n_tokens = n;
  prompt.max_new_tokens = most;
  prompt.token = user ? token : NULL;
  prompt.end = user ? end : NULL;
  prompt.user = user;
  return prompt;
}

static void submit(psplit_i_sequences *ss, const psplit_prompt *prompt) {
  psplit_diag diag = {0};
  if (psplit_i_sequences_submit(ss, prompt, &diag, NULL) != PSPLIT_OK) fail_msg("%s", diag.message);
}

/* A step, and what it was given. */
typedef struct step {
  psplit_i_step step;
  psplit_i_tensor *inputs[MOST_INPUTS];
  psplit_diag failure;
} step;

static bool take(psplit_i_source *source, step *out) {
  static const atomic_bool GOES_ON;
  int64_t deadline_ns = 1;
  *out = (step){0};
  const bool taken =
    source->next(source->user, &GOES_ON, out->inputs, &deadline_ns, &out->step, &out->failure);
  assert_int_equal(deadline_ns, 0);
  return taken;
}

static void give_back(step *taken) { psplit_i_tensors_release(taken->inputs, MOST_INPUTS); }

/* The next step makes `value`, at the output of the pipe that is `output`. */
static void answer(psplit_i_source *source, uint32_t output, int64_t value) {
  const psplit_diag well = {0};
  const double number = (double)value;
  psplit_i_tensor *outputs[4] = {NULL};
  outputs[output] = made_tensor(INT64, (const int64_t[]){1}, 1, &number);
  source->done(source->user, outputs, &well);
  psplit_i_tensors_release(outputs, 4);
}

static void has_numbers(const psplit_i_tensor *tensor, const int64_t *numbers, uint64_t n) {
  psplit_diag diag = {0};
  psplit_i_tensor_view view;
  assert_non_null(tensor);
  assert_int_equal(psplit_i_tensor_look(tensor, &diag, &view), PSPLIT_OK);
  assert_int_equal(view.n_elements, n);
  assert_memory_equal(view.data, numbers, n * sizeof *numbers);
}

static const int64_t PROMPT[] = {1, 2, 3};

/* One sequence of a model; tokens are made until it ends. */
static const struct making {
  const char *title;
  uint64_t most, context;
  int64_t first; /* tokens that come: this one, the next, ... */
  uint64_t n;
  psplit_generation_end end;
} makings[] = {
  {"as many as are asked for", 2, 0, 20, 2, PSPLIT_GENERATION_LENGTH},
  {"until one of the end tokens", 9, 0, 6, 3, PSPLIT_GENERATION_END_TOKEN},
  {"until the context is full", 9, 5, 20, 2, PSPLIT_GENERATION_CONTEXT},
  {"more than there was room for", 50, 0, 20, 50, PSPLIT_GENERATION_LENGTH},
};

static void make(const struct making *m, bool tells) {
  psplit_i_source source = {0};
  psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
  psplit_generator_stats stats;
  told told_of = {0};
  step taken;
  options.context = m->context;
  psplit_i_sequences *ss = created(&options, &source);
  const psplit_prompt prompt = prompt_of(PROMPT, 3, m->most, tells ? &told_of : NULL);
  submit(ss, &prompt);
  for (uint64_t n = 0; n < m->n; n++) {
    const int64_t last = m->first + (int64_t)n - 1;
    assert_true(take(&source, &taken));
    assert_int_equal(taken.failure.code, PSPLIT_OK);
    assert_int_equal(taken.step.position, n ? n + 2 : 0);
    has_numbers(taken.inputs[IDS], n ? &last : PROMPT, n ? 1 : 3);
    assert_int_equal(taken.inputs[STYLE] != NULL, n == 0); /* it comes once */
    assert_null(taken.inputs[PAST]);
    psplit_i_sequences_get_stats(ss, &stats);
    assert_true(stats.seconds >= 0); /* also while the first step is under way */
    give_back(&taken);
    answer(&source, 0, last + 1);
  }
  if (tells && (told_of.n_ends != 1 || told_of.end != m->end || told_of.n_tokens != m->n ||
                told_of.n_told != m->n))
    fail_msg("%s: %d, end %d, %d tokens", m->title, told_of.n_ends, told_of.end,
             (int)told_of.n_tokens);
  psplit_i_sequences_get_stats(ss, &stats);
  assert_int_equal(stats.n_ended, 1);
  assert_int_equal(stats.n_failed, 0);
  assert_int_equal(stats.n_prompt_tokens, 3);
  assert_int_equal(stats.n_tokens, m->n);
  assert_int_equal(stats.n_steps, m->n);
  assert_true(stats.seconds > 0);
  psplit_i_sequences_close(ss);
  assert_false(take(&source, &taken));
  psplit_i_sequences_destroy(ss);
  assert_int_equal(made.n_live, 0);
}

static void ends(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof makings / sizeof *makings; i++) {
    make(&makings[i], true);
    make(&makings[i], false);
  }
}

/* What comes is no token; what stands for a stage that failed. */
static void failures(void **state) {
  (void)state;
  const int64_t one[] = {1}, two[] = {2};
  for (int kind = 0; kind < 5; kind++) {
    psplit_i_source source = {0};
    const psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
    psplit_i_sequences *ss = created(&options, &source);
    told told_of = {0};
    step taken;
    psplit_diag failure = {0};
    psplit_i_tensor *outputs[1] = {kind == 1   ? made_tensor(FLOAT, one, 1, NULL)
                                   : kind == 2 ? made_tensor(INT64, two, 1, NULL)
                                   : kind > 2  ? made_tensor(INT64, one, 1, NULL)
                                               : NULL};
    const psplit_prompt prompt = prompt_of(PROMPT, 3, 2, &told_of);
    submit(ss, &prompt);
    assert_true(take(&source, &taken));
    give_back(&taken);
    if (kind == 3) failure = (psplit_diag){.code = PSPLIT_IO, .message = "a stage fell"};
    made.look_fails = kind == 4;
    source.done(source.user, outputs, &failure);
    made.look_fails = false;
    assert_int_equal(told_of.end, PSPLIT_GENERATION_FAILED);
    assert_int_equal(told_of.code, kind == 3   ? PSPLIT_IO
                                   : kind == 4 ? PSPLIT_PLUGIN
                                               : PSPLIT_INTERNAL);
    assert_string_equal(told_of.message, kind == 3   ? "a stage fell"
                                         : kind == 4 ? "no look is taken"
                                                     : "no token has come");
    psplit_i_tensors_release(outputs, 1);
    psplit_i_sequences_destroy(ss);
    assert_int_equal(made.n_live, 0);
  }
}

static void refused(void **state) {
  (void)state;
  static const int64_t NEGATIVE[] = {1, -2}, HUGE_ONE[] = {(INT64_C(1) << 53) + 1};
  static const psplit_feed_file nameless = {NULL, "a.npz"}, unknown = {"other", "a.npy"},
                                kept = {"past", "a.npy"}, made_of_tokens = {"ids", "a.npy"};
  static const psplit_feed_file twice[] = {{"style", "a.npy"}, {"style", "b.npy"}};
  static const struct {
    const int64_t *tokens;
    uint64_t n, most;
    const psplit_feed_file *inputs;
    size_t n_inputs;
    const char *message;
  } prompts[] = {
    {PROMPT, 0, 1, NULL, 0, "at least one token"},
    {NULL, 1, 1, NULL, 0, "at least one token"},
    {PROMPT, 1, 0, NULL, 0, "at least one token"},
    {NEGATIVE, 2, 1, NULL, 0, "token -2 of a prompt is negative"},
    {HUGE_ONE, 1, 1, NULL, 0, "token 9007199254740993 of a prompt is above 9007199254740992"},
    {PROMPT, 3, 1, NULL, 0, "a prompt of 3 tokens leaves no room in a context of 3"},
    {PROMPT, 2, 1, &nameless, 1, "gives input without a name"},
    {PROMPT, 2, 1, &unknown, 1, "gives input other, which"},
    {PROMPT, 2, 1, &kept, 1, "gives input past, which"},
    {PROMPT, 2, 1, &made_of_tokens, 1, "gives input ids, which"},
    {PROMPT, 2, 1, twice, 2, "gives input style twice"},
  };
  psplit_i_source source = {0};
  psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
  options.context = 3;
  psplit_i_sequences *ss = created(&options, &source);
  psplit_prompt prompt;
  for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
    psplit_diag diag = {0};
    prompt = prompt_of(prompts[i].tokens, prompts[i].n, prompts[i].most, NULL);
    prompt.inputs = prompts[i].inputs;
    prompt.n_inputs = prompts[i].n_inputs;
    const long live = live_blocks();
    assert_int_equal(psplit_i_sequences_submit(ss, &prompt, &diag, NULL), PSPLIT_USAGE);
    if (!strstr(diag.message, prompts[i].message)) fail_msg("%s", diag.message);
    assert_int_equal(live_blocks(), live);
  }
  psplit_diag diag = {0};
  prompt = prompt_of(PROMPT, 2, 1, NULL);
  prompt.struct_size = 1;
  assert_int_equal(psplit_i_sequences_submit(ss, &prompt, &diag, NULL), PSPLIT_USAGE);
  psplit_i_sequences_destroy(ss);
}

/* Files of a prompt stand in for what all sequences are given. */
static void files(void **state) {
  (void)state;
  const psplit_feed_file file = {"style", "style.npy"};
  for (int fails = 0; fails < 2; fails++) {
    psplit_i_source source = {0};
    const psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
    psplit_i_sequences *ss = created(&options, &source);
    step taken;
    psplit_prompt prompt = prompt_of(PROMPT, 3, 2, NULL);
    prompt.inputs = &file;
    prompt.n_inputs = 1;
    submit(ss, &prompt);
    made.file_fails = fails;
    assert_true(take(&source, &taken));
    made.file_fails = false;
    assert_string_equal(made.read, "style.npy");
    assert_int_equal(taken.failure.code, fails ? PSPLIT_IO : PSPLIT_OK);
    if (fails)
      assert_string_equal(taken.failure.message, "sequence 0: no file style.npy");
    else
      assert_non_null(taken.inputs[STYLE]);
    give_back(&taken);
    source.done(source.user, (psplit_i_tensor *[]){NULL}, &taken.failure);
    psplit_i_sequences_destroy(ss);
    assert_int_equal(made.n_live, 0);
  }
}

/* What neither the caller nor the prompt gives; a file for all; a mask whose name says nothing. */
static void who_gives(void **state) {
  (void)state;
  static const char *const names[] = {"ids", "window_mask", "style", "past"};
  static const psplit_feed_file for_all[] = {{NULL, "all.npz"}, {"attention_mask", "m.npy"}};
  psplit_i_pipe pipe = PIPE;
  pipe.manifest.inputs = names;
  for (int kind = 0; kind < 4; kind++) {
    psplit_i_source source = {0};
    psplit_i_feed_options feed = {.given = {.random = kind == 2}};
    psplit_i_sequences_options options = options_of(kind == 3 ? &pipe : &PIPE, &DECODER);
    step taken;
    options.feed = &feed;
    options.prompt_inputs = kind > 0;
    feed.given.files = for_all;
    feed.given.n_files = kind == 0 ? 2 : 0;
    psplit_i_sequences *ss = created(&options, &source);
    const psplit_prompt prompt = prompt_of(PROMPT, 3, 2, NULL);
    submit(ss, &prompt);
    assert_true(take(&source, &taken));
    const bool missing = kind == 1 || kind == 3;
    assert_int_equal(taken.failure.code, missing ? PSPLIT_USAGE : PSPLIT_OK);
    if (missing)
      assert_non_null(
        strstr(taken.failure.message, kind == 1 ? "gives input style" : "gives input window_mask"));
    give_back(&taken);
    source.done(source.user, (psplit_i_tensor *[]){NULL}, &taken.failure);
    psplit_i_sequences_destroy(ss);
  }
  assert_int_equal(made.n_live, 0);
}

/* Whoever waits for a slot goes before who is at work; what is left is told why it stops. */
static void order(void **state) {
  (void)state;
  psplit_i_source source = {0};
  psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
  psplit_generator_stats stats;
  told told_of[4] = {{0}};
  step taken;
  options.n_slots = 2;
  psplit_i_sequences *ss = created(&options, &source);
  for (int i = 0; i < 4; i++) {
    const psplit_prompt prompt = prompt_of(PROMPT, 3, 5, &told_of[i]);
    submit(ss, &prompt);
  }
  const uint64_t wanted[] = {0, 1, 0, 1, 2, 0};
  for (int i = 0; i < 6; i++) {
    assert_true(take(&source, &taken));
    assert_int_equal(taken.step.sequence, wanted[i]);
    give_back(&taken);
    if (i) answer(&source, 0, i == 3 ? 9 : 20); /* one step stays under way; 1 ends */
    if (i == 3) assert_int_equal(told_of[0].n_ends + told_of[1].n_ends, 1);
    if (i == 3 && told_of[0].n_ends) break;
  }
  const psplit_diag why = {.code = PSPLIT_IO, .message = "all is over"};
  psplit_i_sequences_stop_all(ss, &why);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(told_of[i].n_ends, 1);
    if (told_of[i].end == PSPLIT_GENERATION_END_TOKEN) continue;
    assert_int_equal(told_of[i].end, PSPLIT_GENERATION_STOPPED);
    assert_string_equal(told_of[i].message, "all is over");
  }
  psplit_i_sequences_get_stats(ss, &stats);
  assert_int_equal(stats.n_ended, 4);
  assert_int_equal(stats.n_failed, 3);
  psplit_diag diag = {0};
  const psplit_prompt prompt = prompt_of(PROMPT, 3, 5, NULL);
  assert_int_equal(psplit_i_sequences_submit(ss, &prompt, &diag, NULL), PSPLIT_IO);
  assert_string_equal(diag.message, "the generator has ended");
  atomic_bool stopped = true;
  int64_t deadline_ns;
  assert_false(source.next(source.user, &stopped, taken.inputs, &deadline_ns, &taken.step, &diag));
  psplit_i_sequences_destroy(ss);
  psplit_i_sequences_destroy(NULL);
  assert_int_equal(made.n_live, 0);
}

/* An encoder, a first step of its own, later steps: the same input of both comes with each once. */
static void phases(void **state) {
  (void)state;
  static const char *const names[] = {"features", "ids", "style", "hidden", "ids", "style"};
  static psplit_i_role roles[] = {PSPLIT_I_ROLE_OTHER,   PSPLIT_I_ROLE_IDS, PSPLIT_I_ROLE_OTHER,
                                  PSPLIT_I_ROLE_ENCODED, PSPLIT_I_ROLE_IDS, PSPLIT_I_ROLE_OTHER};
  static uint32_t encoded[] = {0, 0, 0, 0, 0, 0};
  static psplit_i_phase three[] = {
    {.n_needed = 1}, {.first_input = 1, .n_needed = 3}, {.first_input = 4, .n_needed = 2}};
  psplit_i_manifest_value values[6];
  for (int i = 0; i < 6; i++)
    values[i] = (psplit_i_manifest_value){
      names[i], roles[i] == PSPLIT_I_ROLE_IDS ? "int64" : "float32", {2, ROW}};
  const psplit_i_pipe pipe = {
    .manifest = {.n_inputs = 6, .n_needed = 6, .inputs = names, .input_values = values},
    .n_phases = 3,
    .phases = three};
  const psplit_i_decoder decoder = {.phases = {0, 1, 2},
                                    .roles = roles,
                                    .encoded = encoded,
                                    .prompt = {.output = 1},
                                    .token = {.output = 2}};
  const psplit_diag well = {0};
  for (int comes = 0; comes < 2; comes++) {
    psplit_i_source source = {0};
    const psplit_i_sequences_options options = options_of(&pipe, &decoder);
    psplit_i_sequences *ss = created(&options, &source);
    told told_of = {0};
    step taken;
    psplit_i_tensor *outputs[3] = {NULL};
    psplit_generator_stats stats;
    const psplit_prompt prompt = prompt_of(PROMPT, 3, 3, &told_of);
    submit(ss, &prompt);
    assert_true(take(&source, &taken));
    assert_int_equal(taken.step.phase, 0);
    assert_true(taken.inputs[0] && !taken.inputs[1] && !taken.inputs[3]);
    give_back(&taken);
    if (comes) outputs[0] = made_tensor(FLOAT, (const int64_t[]){2}, 1, NULL);
    source.done(source.user, outputs, &well);
    for (uint64_t n = 0; comes && n < 3; n++) {
      assert_true(take(&source, &taken));
      assert_int_equal(taken.step.phase, n ? 2 : 1);
      if (n == 0) assert_true(taken.inputs[3] == outputs[0] && taken.inputs[2] && taken.inputs[1]);
      if (n == 1) assert_true(taken.inputs[4] && taken.inputs[5]);
      if (n == 2) assert_true(taken.inputs[4] && !taken.inputs[5]);
      give_back(&taken);
      answer(&source, n ? 2 : 1, 20);
    }
    assert_int_equal(told_of.n_ends, 1);
    assert_int_equal(told_of.end, comes ? PSPLIT_GENERATION_LENGTH : PSPLIT_GENERATION_FAILED);
    assert_string_equal(told_of.message, comes ? "" : "the encoder's results have not arrived");
    psplit_i_sequences_get_stats(ss, &stats);
    assert_int_equal(stats.n_encoded, 1);
    assert_int_equal(stats.n_steps, comes ? 3 : 0);
    psplit_i_tensors_release(outputs, 3);
    psplit_i_sequences_destroy(ss);
    assert_int_equal(made.n_live, 0);
  }
}

/* A prompt for which there is no room waits; that nothing is accepted any more wakes it. */
static void *submit_one_more(void *user) {
  psplit_diag diag = {0};
  const psplit_prompt prompt = prompt_of(PROMPT, 3, 1, NULL);
  const psplit_code code = psplit_i_sequences_submit(user, &prompt, &diag, NULL);
  return code == PSPLIT_IO ? user : NULL;
}

static void closed_while_waiting(void **state) {
  (void)state;
  psplit_i_source source = {0};
  psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
  pthread_t thread;
  void *refused_it = NULL;
  options.max_waiting = 1;
  psplit_i_sequences *ss = created(&options, &source);
  const psplit_prompt prompt = prompt_of(PROMPT, 3, 1, NULL);
  submit(ss, &prompt);
  assert_int_equal(pthread_create(&thread, NULL, submit_one_more, ss), 0);
  psplit_i_sequences_close(ss);
  assert_int_equal(pthread_join(thread, &refused_it), 0);
  assert_ptr_equal(refused_it, ss);
  const psplit_diag why = {.code = PSPLIT_IO};
  psplit_i_sequences_stop_all(ss, &why);
  psplit_i_sequences_destroy(ss);
}

/* All there is to it, with a file and a token for which there is no room yet. */
static psplit_code whole(psplit_diag *diag) {
  static int64_t tokens[20];
  const psplit_feed_file file = {"style", "style.npy"};
  psplit_i_source source = {0};
  const psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
  psplit_i_sequences *ss = NULL;
  psplit_code code = psplit_i_sequences_create(&options, diag, &ss);
  if (code != PSPLIT_OK) return code;
  psplit_i_sequences_connect(ss, &source);
  told told_of = {0};
  psplit_prompt prompt = prompt_of(tokens, 20, 40, &told_of);
  prompt.inputs = &file;
  prompt.n_inputs = 1;
  code = psplit_i_sequences_submit(ss, &prompt, diag, NULL);
  while (code == PSPLIT_OK && !told_of.n_ends) {
    step taken;
    assert_true(take(&source, &taken));
    give_back(&taken);
    psplit_i_tensor *outputs[1] = {NULL};
    if (taken.failure.code == PSPLIT_OK &&
        psplit_i_tensor_create(NULL, INT64, (const int64_t[]){1}, 1, &taken.failure, &outputs[0]) !=
          PSPLIT_OK)
      outputs[0] = NULL;
    source.done(source.user, outputs, &taken.failure);
    psplit_i_tensors_release(outputs, 1);
  }
  psplit_i_sequences_destroy(ss);
  return code == PSPLIT_OK ? told_of.code : code;
}

static void out_of_memory(void **state) {
  (void)state;
  long nth = 0;
  for (bool failed = true; failed; nth++) {
    psplit_diag diag = {0};
    const long live = live_blocks();
    fail_allocation_after(nth);
    const psplit_code code = whole(&diag);
    failed = stop_failing();
    if (code != (failed ? PSPLIT_NOMEM : PSPLIT_OK) || live_blocks() != live || made.n_live)
      fail_msg("allocation %ld: %s, %ld blocks stay", nth, psplit_code_name(code),
               live_blocks() - live);
  }
  assert_true(nth > 20);
  psplit_diag diag = {0};
  psplit_i_sequences *ss = NULL;
  const psplit_i_sequences_options options = options_of(&PIPE, &DECODER);
  made.file_fails = true;
  assert_int_equal(psplit_i_sequences_create(&options, &diag, &ss), PSPLIT_IO);
  made.file_fails = false;
  assert_null(ss);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(ends),          cmocka_unit_test(failures),
    cmocka_unit_test(refused),       cmocka_unit_test(files),
    cmocka_unit_test(who_gives),     cmocka_unit_test(order),
    cmocka_unit_test(phases),        cmocka_unit_test(closed_while_waiting),
    cmocka_unit_test(out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
