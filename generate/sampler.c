#include "sampler.h"

#include <math.h>
#include <stdlib.h>

#include "casts.h"
#include "counter_random.h"

/* A token that may be drawn. */
typedef struct candidate {
  double logit;
  uint64_t token;
} candidate;

static int likelier_first(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
  return x->token < y->token ? -1 : x->token > y->token;
}

/* A heap whose root is the least likely of those that are kept. */
static void sift_down(candidate *heap, size_t n) {
  for (size_t at = 0;;) {
    size_t worst = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++)
      if (likelier_first(&heap[child], &heap[worst]) > 0) worst = child;
    if (worst == at) return;
    const candidate swapped = heap[at];
    heap[at] = heap[worst];
    heap[worst] = swapped;
    at = worst;
  }
}

static void sift_up(candidate *heap, size_t at) {
  while (at && likelier_first(&heap[at], &heap[(at - 1) / 2]) > 0) {
    const candidate swapped = heap[at];
    heap[at] = heap[(at - 1) / 2];
    heap[(at - 1) / 2] = swapped;
    at = (at - 1) / 2;
  }
}

/* The n most likely tokens, likelier ones first. */
static size_t take_likeliest(const psplit_i_tensor_view *view, uint64_t first, uint64_t n_tokens,
                             size_t most, candidate *out) {
  size_t n = 0;
  for (uint64_t t = 0; t < n_tokens; t++) {
    const candidate c = {psplit_i_tensor_number(view, first + t), t};
    if (c.logit == -INFINITY) continue; /* masked */
    if (n < most) {
      out[n] = c;
      sift_up(out, n++);
    } else if (likelier_first(&c, &out[0]) < 0) {
      out[0] = c;
      sift_down(out, n);
    }
  }
  qsort(out, n, sizeof *out, likelier_first);
  return n;
}

/* Draws one of n candidates by softmax(logit / temperature), of the fewest first ones whose
 * probabilities sum up to top_p. */
static uint64_t draw(const candidate *all, size_t n, const psplit_i_sampling *how, double chance) {
  double sum = 0, least, at = 0;
  for (size_t i = 0; i < n; i++) sum += exp((all[i].logit - all[0].logit) / how->temperature);
  least = how->top_p < 1 ? how->top_p * sum : sum;
  size_t n_left = 0;
  for (double part = 0; n_left < n && part < least; n_left++)
    part += exp((all[n_left].logit - all[0].logit) / how->temperature);
  sum = 0;
  for (size_t i = 0; i < n_left; i++) sum += exp((all[i].logit - all[0].logit) / how->temperature);
  for (size_t i = 0; i < n_left; i++) {
    at += exp((all[i].logit - all[0].logit) / how->temperature);
    if (chance * sum < at) return all[i].token;
  }
  return all[n_left ? n_left - 1 : 0].token;
}

static psplit_code likeliest(const psplit_i_tensor_view *view, uint64_t first, uint64_t n_tokens,
                             psplit_diag *diag, uint64_t *out) {
  uint64_t best = PSPLIT_NONE;
  double most = -INFINITY;
  for (uint64_t t = 0; t < n_tokens; t++) {
    const double logit = psplit_i_tensor_number(view, first + t);
    if (isnan(logit))
      return psplit_i_fail(diag, PSPLIT_INVALID, "the logits are not numbers (NaN)");
    if (logit <= most) continue;
    most = logit;
    best = t;
  }
  if (best == PSPLIT_NONE) return psplit_i_fail(diag, PSPLIT_INVALID, "the logits allow no token");
  *out = best;
  return PSPLIT_OK;
}

psplit_code psplit_i_sample(const psplit_i_tensor *logits, const psplit_i_sampling *how,
                            uint64_t sequence, uint64_t position, psplit_diag *diag,
                            int64_t *out_token) {
  psplit_i_tensor_view view;
  uint64_t token = 0;
  psplit_code code = psplit_i_tensor_look(logits, diag, &view);
  if (code != PSPLIT_OK) return code;
  const uint64_t n_tokens = view.n_dims ? (uint64_t)view.dims[view.n_dims - 1] : 0;
  if (!psplit_i_element_is_float(view.data_type) || !n_tokens || !view.n_elements)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "the logits are no floats, a row for each position");
  const uint64_t first = view.n_elements - n_tokens;
  code = likeliest(&view, first, n_tokens, diag, &token);
  if (code != PSPLIT_OK) return code;
  *out_token = (int64_t)token;
  if (!(how->temperature > 0)) return PSPLIT_OK;
  const size_t most = (size_t)(how->top_k && how->top_k < n_tokens ? how->top_k : n_tokens);
  candidate *all = calloc(most, sizeof *all);
  if (!all) return psplit_i_nomem(diag);
  const size_t n = take_likeliest(&view, first, n_tokens, most, all);
  const psplit_i_random_stream stream = {.seed = how->seed,
                                         .use = PSPLIT_I_RANDOM_SAMPLE,
                                         .major = (uint32_t)sequence,
                                         .minor = (uint32_t)(sequence >> 32)};
  *out_token = (int64_t)draw(all, n, how, psplit_i_random_uniform(&stream, position));
  free(all);
  return PSPLIT_OK;
}
