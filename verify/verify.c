/* The proof that a directory is the model, from its manifest on. */
#include <inttypes.h>

#include "activity.h"
#include "training.h"
#include "verify.h"

/* Where the manifest says that Ifs were taken for one branch, the model with that done stands for
 * the model from here on, once it is shown to be that and nothing else. */
static psplit_code inline_ifs(psplit_i_proof *p, const psplit_verify_options *options) {
  psplit_code code = PSPLIT_OK;
  psplit_diag why = {0};
  const uint32_t n = p->manifest.n_inlined;
  if (p->model->inlined.n)
    return psplit_i_fail(p->diag, PSPLIT_USAGE, "a proof needs the model as its file has it");
  if (!n) return PSPLIT_OK;
  psplit_inline_if *choices = psplit_i_arena_array(&p->arena, n, sizeof *choices);
  if (!choices) return psplit_i_nomem(p->diag);
  for (uint32_t r = 0; r < n; r++)
    choices[r] =
      (psplit_inline_if){p->manifest.inlined[r].node, p->manifest.inlined[r].then_branch};
  code = psplit_i_model_reopen(p->model, choices, n, options->read, &why, &p->inlined);
  if (code == PSPLIT_USAGE)
    return PSPLIT_I_DIFFERS(p, "the inlining that the manifest describes is invalid: %s",
                            why.message);
  if (code != PSPLIT_OK) return psplit_i_fail_as(p->diag, &why);
  PSPLIT_TRY(psplit_i_check_inlined(p, p->inlined));
  p->model = p->inlined;
  p->graph = psplit_i_model_graph(p->inlined);
out:
  return code;
}

/* Without what is fed as weights are. */
static uint32_t count_weights(const psplit_i_training_table *table) {
  uint32_t n = 0;
  for (uint32_t w = 0; w < table->n_weights; w++) n += !table->weights[w].next;
  return n;
}

static void report(const psplit_i_proof *p, psplit_verify_report *out) {
  *out = (psplit_verify_report){.n_stages = p->manifest.n_stages,
                                .n_nodes = p->graph->n_nodes,
                                .n_transfers = p->manifest.n_transfers,
                                .weight_bytes = p->weight_bytes,
                                .trains = p->manifest.training != NULL};
  if (p->manifest.training) out->n_trained = count_weights(p->manifest.training);
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) out->n_duplicates += p->n_seen[n] - 1;
  for (uint32_t r = 0; r < p->manifest.n_inlined; r++)
    out->n_assumed += p->manifest.inlined[r].assumed;
}

/* The proof's model, options and manifest; then `prove`. */
static psplit_code verify(const char *directory, const psplit_model *model,
                          const psplit_verify_options *given, const psplit_changed_stage *changed,
                          const char *file, psplit_diag *diag, psplit_verify_report *out_report) {
  psplit_code code;
  psplit_read_options read;
  psplit_verify_options options;
  psplit_i_proof p;
  psplit_read_options_init(&read);
  psplit_verify_options_init(&options);
  psplit_i_proof_init(&p, model, diag);
  p.changed = changed;
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_verify_options, given, &options, diag));
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_read_options, options.read, &read, diag));
  read.cancel = p.cancel = options.cancel ? options.cancel : read.cancel;
  options.read = &read;
  /* It counts weights, not the stage files that are opened one after the other. */
  p.activity = options.activity;
  read.activity = NULL;
  uint64_t bytes = 0;
  for (size_t f = 0; f < model->files.n; f++)
    bytes = psplit_i_sat_add_u64(bytes, model->files.items[f].bytes);
  psplit_i_activity_begin(p.activity, PSPLIT_ACTIVITY_BYTES, bytes);
  if (directory)
    PSPLIT_TRY(
      psplit_i_manifest_read(directory, options.max_text_bytes, &p.arena, p.diag, &p.manifest));
  PSPLIT_TRY(inline_ifs(&p, &options));
  if (p.manifest.training && (file || changed))
    PSPLIT_FAIL(
      psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "%s: the stages are for training", directory));
  if (file)
    PSPLIT_TRY(psplit_i_prove_file(&p, file, &options));
  else if (p.manifest.training)
    PSPLIT_TRY(psplit_i_prove_training(&p, directory, &options));
  else
    PSPLIT_TRY(psplit_i_prove(&p, directory, &options));
  if (out_report) report(&p, out_report);
out:
  if (code == PSPLIT_MISMATCH && p.manifest.n_stages && !file) psplit_i_tell_whole(&p);
  psplit_i_proof_fini(&p);
  return code;
}

psplit_code psplit_verify(const char *directory, const psplit_model *model,
                          const psplit_verify_options *options, psplit_diag *diag,
                          psplit_verify_report *out_report) {
  return verify(directory, model, options, NULL, NULL, diag, out_report);
}

psplit_code psplit_verify_stages(const char *directory, const psplit_model *model,
                                 const psplit_verify_options *options,
                                 const psplit_changed_stage *changed, psplit_diag *diag) {
  return verify(directory, model, options, changed, NULL, diag, NULL);
}

psplit_code psplit_verify_file(const char *path, const char *directory, const psplit_model *model,
                               const psplit_verify_options *options, psplit_diag *diag,
                               psplit_verify_report *out_report) {
  return verify(directory, model, options, NULL, path, diag, out_report);
}
