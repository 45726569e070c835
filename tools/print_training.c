#include "print_training.h"

#include <inttypes.h>

#include "cli.h"

static const char *name_of(psplit_schedule_kind kind) {
  return kind == PSPLIT_SCHEDULE_FILL_DRAIN    ? "fill-drain"
         : kind == PSPLIT_SCHEDULE_1F1B        ? "1F1B"
         : kind == PSPLIT_SCHEDULE_ZERO_BUBBLE ? "ZB-H1"
                                               : "interleaved 1F1B";
}

void print_training_step(const psplit_train_step *t, FILE *out) {
  fprintf(out, "step %" PRIu64 "/%" PRIu64 "  loss %.6g  gradient %.4g  rate %.4g  %.3g s", t->step,
          t->n_steps, t->loss, t->gradient_norm, t->learning_rate, t->seconds);
  if (t->skipped) fprintf(out, "  skipped");
  if (t->evaluated) fprintf(out, "  evaluation %.6g", t->eval_loss);
  fprintf(out, "\n");
}

void print_training_table(const psplit_train_report *r, FILE *out) {
  char text[7][CLI_TEXT];
  bool apart = false; /* gradients of weights */
  for (uint32_t d = 0; d < r->n_devices; d++) apart |= r->devices[d].weight_gradients_ns > 0;
  fprintf(out, "\n%-6s %11s %11s ", "device", "forward", "backward");
  if (apart) fprintf(out, "%11s ", "weights' g.");
  fprintf(out, "%11s %9s %11s %11s %11s\n", "update", "stashes", "in them", "weights", "memory");
  for (uint32_t d = 0; d < r->n_devices; d++) {
    const psplit_train_device *row = &r->devices[d];
    fprintf(out, "%6" PRIu32 " %11s %11s ", d, cli_time(row->forward_ns, text[0]),
            cli_time(row->backward_ns, text[1]));
    if (apart) fprintf(out, "%11s ", cli_time(row->weight_gradients_ns, text[6]));
    fprintf(out, "%11s %4" PRIu32 " of %-2" PRIu32 "%11s %11s %11s\n",
            cli_time(row->update_ns, text[2]), row->peak_stashes, row->scheduled_stashes,
            cli_bytes(row->stash_bytes, text[3]), cli_bytes(row->weight_bytes, text[4]),
            cli_bytes(row->peak_resident_bytes, text[5]));
  }
  fprintf(out,
          "\n%" PRIu64
          " step%s in %.3g s: %.4g a second\nidle %.1f %% of the devices' time within "
          "steps, simulated %.1f %%\n",
          r->n_steps, r->n_steps == 1 ? "" : "s", r->seconds, r->steps_per_s, 100 * r->bubble_frac,
          100 * r->simulated_bubble_frac);
  fprintf(out, "by %s", name_of(r->schedule));
  if (r->planned_schedule == r->schedule)
    fprintf(out, ", which the stages were planned for\n");
  else
    fprintf(out, "; the stages were planned for %s\n", name_of(r->planned_schedule));
  if (r->n_skipped) fprintf(out, "%" PRIu64 " updates were skipped\n", r->n_skipped);
}
