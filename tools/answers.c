#include "answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* The first of them that failed, on standard error. */
static void tell_failure(answers *all, uint64_t id, const psplit_generation *g) {
  enum { MOST = 10 };
  /* What stopped all of them is one error line. */
  if (g->end != PSPLIT_GENERATION_FAILED || all->n_told == MOST) return;
  all->n_told++;
  cli_warn("sequence %" PRIu64 ": %" PRIu64 " token%s, then: %s", id, g->n_tokens,
           g->n_tokens == 1 ? "" : "s", g->message);
}

static void free_answer(answer *a) {
  free((int64_t *)(uintptr_t)a->what.tokens);
  free((char *)(uintptr_t)a->what.message);
}

/* Room for answers up to that of sequence `id`. */
static bool reach(answers *all, uint64_t id) {
  while (all->n <= id) {
    const size_t n = (size_t)(all->n - all->n_gone);
    if (n == all->capacity) {
      const size_t capacity = n ? 2 * n : 16;
      answer *grown = reallocarray(all->list, capacity, sizeof *grown);
      if (!grown) return false;
      all->list = grown;
      all->capacity = capacity;
    }
    all->list[n] = (answer){false, {0}};
    all->n++;
  }
  return true;
}

void answers_keep(answers *all, const psplit_generation *g) {
  int64_t *tokens = malloc((g->n_tokens + 1) * sizeof *tokens);
  char *message = strdup(g->message);
  all->nomem |= !tokens || !message || !reach(all, g->id);
  if (all->nomem) {
    free(tokens);
    free(message);
    return;
  }
  answer *a = &all->list[g->id - all->n_gone];
  if (g->n_tokens) memcpy(tokens, g->tokens, g->n_tokens * sizeof *tokens);
  *a = (answer){true, *g};
  a->what.tokens = tokens;
  a->what.message = message;
  all->n_failed += g->end == PSPLIT_GENERATION_FAILED;
  if (g->end < PSPLIT_GENERATION_FAILED) all->nomem |= !complete_add(&all->complete, g->id);
}

const psplit_generation *answers_next(answers *all) {
  if (all->n_printed == all->n || !all->list[all->n_printed - all->n_gone].ended) return NULL;
  return &all->list[all->n_printed++ - all->n_gone].what;
}

/* Each is moved once or less. */
void answers_forget(answers *all) {
  const uint64_t n = all->n_printed - all->n_gone, n_left = all->n - all->n_printed;
  if (n < 16 || n < n_left) return;
  for (uint64_t i = 0; i < n; i++) {
    tell_failure(all, all->n_gone + i, &all->list[i].what);
    free_answer(&all->list[i]);
  }
  memmove(all->list, all->list + n, n_left * sizeof *all->list);
  all->n_gone = all->n_printed;
}

static const char *const ENDS[] = {"end token", "length", "context", "failed", "stopped"};

void answers_print_json(const answers *all, const psplit_generator_stats *stats,
                        const psplit_run_report *report) {
  printf("{\"sequences\": [");
  for (uint64_t i = 0; i < all->n; i++) { /* none is gone */
    const psplit_generation *g = &all->list[i].what;
    const uint64_t n_more = g->n_tokens > 1 ? g->n_tokens - 1 : 0;
    printf("%s\n  {\"end\": \"%s\", \"prompt_tokens\": %" PRIu64 ", \"tokens\": [", i ? "," : "",
           ENDS[g->end], g->n_prompt);
    for (uint64_t t = 0; t < g->n_tokens; t++) printf("%s%" PRId64, t ? ", " : "", g->tokens[t]);
    printf("], \"waited_ns\": %" PRId64 ", \"first_token_ns\": %" PRId64
           ", \"between_tokens_ns\": %" PRId64,
           g->waited_ns, g->first_ns,
           n_more ? (g->total_ns - g->first_ns) / (int64_t)n_more : (int64_t)0);
    if (g->code != PSPLIT_OK) {
      printf(", \"error\": ");
      psplit_json_print(stdout, g->message, strlen(g->message));
    }
    putchar('}');
  }
  printf("],\n \"prompt_tokens\": %" PRIu64 ", \"tokens\": %" PRIu64 ", \"steps\": %" PRIu64
         ", \"encoded\": %" PRIu64
         ", \"seconds\": %.6f, \"tokens_per_second\": %.6g,\n \"states\": %" PRIu64
         ", \"state_bytes\": %" PRIu64,
         stats->n_prompt_tokens, stats->n_tokens, stats->n_steps, stats->n_encoded, stats->seconds,
         stats->seconds > 0 ? (double)stats->n_tokens / stats->seconds : 0.0, stats->n_states,
         stats->state_bytes);
  if (report) {
    printf(", \"bubble_frac\": %.6f,\n \"stages\": [", report->bubble_frac);
    for (uint32_t i = 0; i < report->n_stages; i++)
      printf("%s{\"busy_ns\": %" PRId64 ", \"steps_per_second\": %.6g}", i ? ", " : "",
             report->stages[i].busy_ns,
             report->stages[i].busy_ns > 0 ? 1e9 / (double)report->stages[i].busy_ns : 0.0);
    printf("]");
  }
  printf("}\n");
}

void answers_tell_failures(answers *all) {
  for (uint64_t i = all->n_gone; i < all->n; i++)
    tell_failure(all, i, &all->list[i - all->n_gone].what);
  if (all->n_failed)
    cli_warn("%" PRIu64 " of %" PRIu64 " sequence%s failed", all->n_failed, all->n,
             all->n == 1 ? "" : "s");
}

void answers_fini(answers *all) {
  for (uint64_t i = all->n_gone; i < all->n; i++) free_answer(&all->list[i - all->n_gone]);
  free(all->list);
  complete_fini(&all->complete);
}
