#include "limits.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const LOSSES[] = {"nonsmooth", "smooth", "strongly-convex", "nonconvex", NULL};
static const char *const KINDS[] = {"fill-drain", "1F1B", "interleaved 1F1B", "a stream"};

static bool parse_pair(const cli *program, char *pair, bool counts_weights, limits_options *out) {
  char *value = strchr(pair, '=');
  int loss;
  if (!value) {
    cli_usage(program, "--limits: \"%s\" has no value; loss=, dim=, accuracy= or condition=", pair);
    return false;
  }
  *value++ = '\0';
  if (strcmp(pair, "loss") == 0) {
    if (!cli_word(program, "limits loss", value, LOSSES, &loss)) return false;
    out->loss = (psplit_loss_class)loss;
    out->has_loss = true;
    return true;
  }
  if (strcmp(pair, "dim") == 0 && counts_weights && strcmp(value, "auto") == 0)
    return out->automatic_dimension = true;
  if (strcmp(pair, "dim") == 0)
    return cli_real(program, "limits dim", value, 1, 1e18, &out->dimension);
  if (strcmp(pair, "accuracy") == 0)
    return cli_real(program, "limits accuracy", value, 1e-12, 1, &out->accuracy);
  if (strcmp(pair, "condition") == 0)
    return cli_real(program, "limits condition", value, 1, 1e18, &out->condition);
  cli_usage(program, "--limits: no key \"%s\"; there are loss, dim, accuracy, condition", pair);
  return false;
}

bool limits_parse(const cli *program, const char *text, bool counts_weights, limits_options *out) {
  char copy[256];
  *out = (limits_options){.wanted = true, .accuracy = 0.01, .condition = 100};
  if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) {
    cli_usage(program, "--limits: a list of %zu bytes", strlen(text));
    return false;
  }
  char *rest = strchr(copy, ',');
  if (rest) *rest++ = '\0';
  if (!cli_count32(program, "limits", copy, 1, 4096, &out->n_micro_batches)) return false;
  while (rest) {
    char *pair = rest;
    rest = strchr(rest, ',');
    if (rest) *rest++ = '\0';
    if (!parse_pair(program, pair, counts_weights, out)) return false;
  }
  if (!out->has_loss || out->dimension > 0 || out->automatic_dimension) return true;
  cli_usage(program, "--limits: loss=%s needs dim=N, the number of trainable weights",
            LOSSES[out->loss]);
  return false;
}

typedef struct found {
  psplit_step_limit step;
  int64_t makespan;
  uint64_t peak_bytes;
  uint32_t peak_stage, n90;
  psplit_training_limit training;
} found;

static psplit_code find(const limits_report *r, psplit_diag *diag, found *out) {
  psplit_schedule *schedule;
  psplit_code code = psplit_limits_step(r->input, NULL, diag, &out->step);
  if (code == PSPLIT_OK) code = psplit_limits_micro_batches(r->input, 0.9, 1024, diag, &out->n90);
  if (code == PSPLIT_OK) code = psplit_schedule_simulate(r->input, diag, &schedule);
  if (code != PSPLIT_OK) return code;
  out->makespan = schedule->makespan_ns;
  psplit_schedule_destroy(schedule);
  if (out->n90 > 0 && r->input->activation_bytes) {
    psplit_schedule_input then = *r->input;
    then.n_micro_batches = out->n90;
    code = psplit_schedule_simulate(&then, diag, &schedule);
    if (code != PSPLIT_OK) return code;
    for (uint32_t s = 0; s < schedule->n_stages; s++)
      if (schedule->peak_bytes[s] > out->peak_bytes) {
        out->peak_bytes = schedule->peak_bytes[s];
        out->peak_stage = s;
      }
    psplit_schedule_destroy(schedule);
  }
  if (!r->options->has_loss) return PSPLIT_OK;
  const psplit_training_input training = {.loss = r->options->loss,
                                          .depth = r->input->n_stages,
                                          .n_samples = r->options->n_micro_batches,
                                          .dimension = r->options->dimension,
                                          .accuracy = r->options->accuracy,
                                          .condition = r->options->condition};
  return psplit_limits_training(&training, diag, &out->training);
}

/* Three digits, however large. */
static const char *count(double n, char *text) {
  snprintf(text, CLI_TEXT, n < 1e6 ? "%.0f" : "%.3g", n);
  return text;
}

static void print_training(const limits_report *r, const found *f) {
  static const char *const unit[] = {"of L R", "of B R^2", "of alpha R^2", "of sqrt(B F)"};
  const psplit_training_limit *t = &f->training;
  char a[CLI_TEXT], b[CLI_TEXT], c[CLI_TEXT];
  fprintf(r->out, "training with a %s loss of %s weights to %g %s, samples one micro-batch each\n",
          LOSSES[r->options->loss], count(r->options->dimension, a), r->options->accuracy,
          unit[r->options->loss]);
  if (t->least_gradients > 0)
    fprintf(
      r->out,
      "  on the hardest such loss, methods that take one gradient after another need at least %s; "
      "%s needs at most %s\n",
      count(t->least_gradients, a), t->method, count(t->enough_gradients, b));
  else
    fprintf(r->out,
            "  the least number of gradients is proved without its constant; %s needs at most %s\n",
            t->method, count(t->enough_gradients, a));
  if (r->options->loss != PSPLIT_LOSS_NONSMOOTH) {
    fputs("  no other method gains more than a constant in a pipeline of any depth\n", r->out);
    return;
  }
  fprintf(r->out, "  random smoothing (PPRS) needs at most %s steps of %s perturbations\n",
          count(t->smoothed_gradients, a), count(t->perturbations, b));
  if (t->smoothing_pays_from == 0)
    fputs(
      "  by the proved bounds, it does not pay off at any depth: too many weights for this "
      "accuracy\n",
      r->out);
  else
    fprintf(
      r->out,
      "  by the proved bounds, it takes %.3gx the time and %s; it pays off from %s stages on\n",
      t->smoothed_time / t->enough_time,
      t->smoothed_time < t->enough_time ? "pays off" : "does not pay off here",
      count(t->smoothing_pays_from, c));
}

static void print_text(const limits_report *r, const found *f) {
  const double scale = r->ticks_per_unit;
  const psplit_step_limit *s = &f->step;
  char a[CLI_TEXT];
  fprintf(r->out, "limits of %" PRIu32 " stages and %" PRIu32 " micro-batches\n",
          r->input->n_stages, r->input->n_micro_batches);
  fprintf(r->out, "  no schedule takes less than %.6g%s", (double)s->step_ns / scale, r->unit);
  if (s->device == PSPLIT_NONE)
    fprintf(r->out, " (one micro-batch through all stages)");
  else
    fprintf(r->out, " (stage %" PRIu32 ")", s->device);
  fprintf(r->out, "; %s takes %.6g%s\n", KINDS[r->input->kind], (double)f->makespan / scale,
          r->unit);
  fprintf(r->out,
          "  speed-up over one device at most %.3fx of %" PRIu32
          ", %.3fx for any number of "
          "micro-batches; bubble at least %.1f %%\n",
          s->speed_up, r->input->n_stages, s->speed_up_limit, 100 * s->bubble_frac);
  fprintf(r->out, "  90 %% of that takes at least %" PRIu32 " micro-batches; %s reaches it ",
          s->micro_batches_90, KINDS[r->input->kind]);
  if (f->n90 == 0)
    fprintf(r->out, "only with more than 1024\n");
  else if (f->peak_bytes > 0)
    fprintf(r->out, "with %" PRIu32 ", and then holds %s on stage %" PRIu32 "\n", f->n90,
            cli_bytes(f->peak_bytes, a), f->peak_stage);
  else
    fprintf(r->out, "with %" PRIu32 "\n", f->n90);
  if (r->options->has_loss) print_training(r, f);
}

static void print_json(const limits_report *r, const found *f) {
  const psplit_step_limit *s = &f->step;
  const psplit_training_limit *t = &f->training;
  fprintf(r->out, "{\"micro_batches\": %" PRIu32 ", \"step\": %.15g, \"simulated\": %.15g, ",
          r->input->n_micro_batches, (double)s->step_ns / r->ticks_per_unit,
          (double)f->makespan / r->ticks_per_unit);
  fprintf(r->out,
          "\"speed_up\": %.9g, \"speed_up_limit\": %.9g, \"bubble_frac\": %.9g, "
          "\"micro_batches_90\": %" PRIu32 ", \"simulated_micro_batches_90\": %" PRIu32,
          s->speed_up, s->speed_up_limit, s->bubble_frac, s->micro_batches_90, f->n90);
  if (r->options->has_loss) {
    fprintf(r->out,
            ", \"training\": {\"loss\": \"%s\", \"method\": \"%s\", \"least_gradients\": %.15g, "
            "\"enough_gradients\": %.15g, \"gradient_time\": %.15g",
            LOSSES[r->options->loss], t->method, t->least_gradients, t->enough_gradients,
            t->gradient_time);
    if (r->options->loss == PSPLIT_LOSS_NONSMOOTH)
      fprintf(
        r->out,
        ", \"smoothed_steps\": %.15g, \"perturbations\": %.15g, \"smoothed_time_frac\": %.9g, "
        "\"smoothing_pays_from\": %.15g",
        t->smoothed_gradients, t->perturbations, t->smoothed_time / t->enough_time,
        t->smoothing_pays_from);
    fputc('}', r->out);
  }
  fputc('}', r->out);
}

psplit_code limits_print(const limits_report *report, bool json, psplit_diag *diag) {
  found f = {0};
  const psplit_code code = find(report, diag, &f);
  if (code != PSPLIT_OK) return code;
  if (json)
    print_json(report, &f);
  else
    print_text(report, &f);
  return PSPLIT_OK;
}

static double n_trained(const psplit_training *training) {
  const psplit_gradient *gradient = psplit_training_gradient(training);
  double n = 0;
  for (uint32_t i = 0; i < psplit_gradient_n_trainables(gradient); i++)
    n += (double)psplit_gradient_trainable(gradient, i).n_elements;
  return n > 1 ? n : 1;
}

psplit_code limits_print_plan(const limits_options *given, const psplit_training *training,
                              const psplit_plan *plan, FILE *out, psplit_diag *diag) {
  const size_t n = plan->n_stages;
  limits_options options = *given;
  int64_t *forward = calloc(n, sizeof *forward), *backward = calloc(n, sizeof *backward);
  uint64_t *bytes = calloc(n, sizeof *bytes);
  psplit_code code = forward && backward && bytes ? PSPLIT_OK : cli_nomem(diag);
  if (code == PSPLIT_OK && training)
    code = psplit_training_pieces(training, plan, diag, forward, backward, bytes);
  for (size_t s = 0; code == PSPLIT_OK && !training && s < n; s++)
    forward[s] = plan->stages[s].load_ns;
  if (training && options.automatic_dimension) options.dimension = n_trained(training);
  const psplit_schedule_input input = {
    .kind = training ? psplit_training_schedule_of(plan) : PSPLIT_SCHEDULE_STREAM,
    .n_stages = plan->n_stages,
    .n_chunks = 1,
    .n_micro_batches = options.n_micro_batches,
    .forward_ns = forward,
    .backward_ns = training ? backward : NULL,
    .activation_bytes = training ? bytes : NULL};
  const limits_report report = {&options, &input, 1e9, " s", out};
  if (code == PSPLIT_OK) fputs("\n", out);
  if (code == PSPLIT_OK) code = limits_print(&report, false, diag);
  free(forward);
  free(backward);
  free(bytes);
  return code;
}
