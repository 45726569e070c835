/* Queued and active sequences, and the scheduling of their steps. Any thread may submit; the feeder
 * requests steps, the collector reports their results (source.h). */
#ifndef PSPLIT_GENERATE_SEQUENCES_H
#define PSPLIT_GENERATE_SEQUENCES_H

#include "decoder.h"
#include "feed.h"
#include "source.h"

typedef struct psplit_i_sequences psplit_i_sequences;

typedef struct psplit_i_sequences_options {
  const psplit_i_ort *ort;
  const psplit_i_pipe *pipe;
  const psplit_i_decoder *decoder;
  const psplit_i_feed_options *feed; /* for constant inputs; must outlive the sequences */
  uint32_t n_slots;                  /* concurrent sequences */
  uint32_t max_waiting;
  uint64_t context; /* maximum length of a sequence; 0: unlimited */
  const int64_t *end_tokens;
  size_t n_end_tokens;
  bool prompt_inputs; /* inputs without a `feed` come with prompts */
} psplit_i_sequences_options;

/* Errors: NOMEM, those of psplit_i_feed_open. */
PSPLIT_MUST_USE psplit_code psplit_i_sequences_create(const psplit_i_sequences_options *options,
                                                      psplit_diag *diag, psplit_i_sequences **out);
void psplit_i_sequences_destroy(
  psplit_i_sequences *sequences); /* all must have ended; NULL is fine */

/* Sets `next`, `done` and `user`. */
void psplit_i_sequences_connect(psplit_i_sequences *sequences, psplit_i_source *source);

/* As psplit_generator_submit. */
PSPLIT_MUST_USE psplit_code psplit_i_sequences_submit(psplit_i_sequences *sequences,
                                                      const psplit_prompt *prompt,
                                                      psplit_diag *diag, uint64_t *out_id);
/* Accepts no more; the pipeline ends when all accepted ones have ended. */
void psplit_i_sequences_close(psplit_i_sequences *sequences);
/* After the pipeline has ended: stops all remaining sequences, with the reason `why`. */
void psplit_i_sequences_stop_all(psplit_i_sequences *sequences, const psplit_diag *why);
void psplit_i_sequences_get_stats(psplit_i_sequences *sequences, psplit_generator_stats *out);

#endif
