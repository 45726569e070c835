/* use_generator DIR: a program that takes its time with each token: no sequence is lost for that,
 * and what it gets stays the same. Prints the tokens. */
#include <inttypes.h>
#include <psplit/generate.h>
#include <stdio.h>
#include <time.h>

typedef struct told {
  uint64_t n;
  bool ended, good;
} told;

static void on_token(void *user, uint64_t id, uint64_t index, int64_t token) {
  told *t = user;
  (void)id;
  nanosleep(&(struct timespec){0, 150000000}, NULL);
  t->good = t->good && index == t->n++;
  printf("%" PRId64 "\n", token);
}

static void on_end(void *user, const psplit_generation *g) {
  told *t = user;
  t->good = t->good && g->end == PSPLIT_GENERATION_LENGTH && g->n_tokens == t->n;
  t->ended = true;
}

int main(int argc, char **argv) {
  psplit_diag diag = {0};
  psplit_onnxruntime *ort = NULL;
  psplit_pipeline *pipeline = NULL;
  psplit_generator *generator = NULL;
  psplit_prompt prompt;
  told t = {.good = true};
  static const int64_t TOKENS[] = {1, 2, 3, 4, 5};
  psplit_prompt_init(&prompt);
  prompt.tokens = TOKENS;
  prompt.n_tokens = sizeof TOKENS / sizeof *TOKENS;
  prompt.max_new_tokens = 4;
  prompt.token = on_token;
  prompt.end = on_end;
  prompt.user = &t;
  psplit_code code = argc == 2 ? psplit_onnxruntime_open(NULL, &diag, &ort) : PSPLIT_USAGE;
  if (code == PSPLIT_OK) code = psplit_pipeline_open(argv[1], NULL, &diag, &pipeline);
  if (code == PSPLIT_OK)
    code = psplit_generator_start(ort, pipeline, NULL, NULL, &diag, &generator);
  if (code == PSPLIT_OK) code = psplit_generator_submit(generator, &prompt, &diag, NULL);
  if (code == PSPLIT_OK) code = psplit_generator_finish(generator, &diag);
  psplit_generator_destroy(generator);
  psplit_pipeline_close(pipeline);
  psplit_onnxruntime_close(ort);
  if (code != PSPLIT_OK) fprintf(stderr, "error: %s\n", diag.message);
  return code != PSPLIT_OK || !t.ended || !t.good;
}
