/* Sources of the model's inputs: files, the caller, or generated numbers. */
#ifndef PSPLIT_RUNTIME_FEED_H
#define PSPLIT_RUNTIME_FEED_H

#include <psplit/run.h>

#include "made_input.h"
#include "records.h"

/* Sizes of inputs that are made which nothing gives, each symbol once. */
enum { PSPLIT_I_MOST_OPEN_SIZES = 6 };
typedef struct psplit_i_open_sizes {
  const char *inputs[PSPLIT_I_MOST_OPEN_SIZES];
  const char *symbols[PSPLIT_I_MOST_OPEN_SIZES]; /* "": it has none */
  uint32_t n;                                    /* may be more than are listed */
  bool unnamed;                                  /* sizes of dimensions alone do not do */
} psplit_i_open_sizes;

/* psplit_feed_options, and what a run adds. */
typedef struct psplit_i_feed_options {
  psplit_feed_options given;
  /* For a stream: "-" and files that are no regular ones hold one tensor after another, and {}
   * counts up to the first file that is not there. */
  psplit_i_record_files *records;
  psplit_i_sequence_sizes sizes; /* of the model's inputs, for those that are made */
  psplit_i_open_sizes open;      /* of these, for an error that names all */
  uint32_t first;                /* micro-batch that will be asked for */
} psplit_i_feed_options;

/* An input of the model. Random inputs repeat after PSPLIT_I_DISTINCT micro-batches: all are made
 * before the clock starts. */
enum { PSPLIT_I_DISTINCT = 4 };
typedef struct psplit_i_feed {
  const psplit_i_ort *ort;
  const char *input, *path;  /* path: read anew for each micro-batch; else NULL */
  psplit_i_records *records; /* where tensors come one after the other */
  psplit_give_input give;    /* asked for each micro-batch */
  void *give_user;
  bool counts; /* the first file that is not there is the end, behind file 0 */
  bool is_any; /* whole numbers that nobody asked for: they need not be indices */
  psplit_i_array_wanted wanted;
  psplit_i_session_port port; /* what it is fed to */
  int64_t dims[PSPLIT_I_MAX_RANK];
  psplit_i_tensor *ready[PSPLIT_I_DISTINCT];
  uint32_t n_ready;
} psplit_i_feed;

/* An input of the model to be fed. */
typedef struct psplit_i_feed_input {
  const psplit_i_ort *ort;
  const psplit_i_session_port *port; /* as the session has it; NULL: only as a constant */
  const char *name;                  /* in the model; lives as long as the feed */
  bool optional;                     /* the model has a default */
} psplit_i_feed_input;

/* Prepares it for at most n_micro_batches from options->first on. Where it is optional and no file
 * gives it, *out_used is false. *out is the caller's to close. Errors: USAGE (nothing given, a size
 * is not known, or what comes through a pipe is not wanted from its beginning), UNSUPPORTED (no
 * tensor, or a default that cannot be overridden), and those of psplit_i_array_read. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_open(const psplit_i_feed_input *input,
                                               const psplit_i_feed_options *options,
                                               uint32_t n_micro_batches, psplit_diag *diag,
                                               psplit_i_feed *out, bool *out_used);
/* The tensor for a micro-batch, which the caller releases; NULL at the end of a stream. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_get(const psplit_i_feed *feed, uint32_t micro_batch,
                                              psplit_diag *diag, psplit_i_tensor **out);
/* The tensor of a file in place of the feed's own. Errors: those of psplit_i_array_read, and of
 * psplit_i_feed_fits. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_read(const psplit_i_feed *feed, const char *path,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* Errors: INVALID (it has another shape than the input), those of psplit_i_tensor_look. `from` says
 * in a message where the tensor is from. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_fits(const psplit_i_feed *feed, const char *from,
                                               const psplit_i_tensor *tensor, psplit_diag *diag);
void psplit_i_feed_close(psplit_i_feed *feed); /* a zeroed one is fine */
/* After a failure of what they were fed to: names one whose made numbers may be the reason. */
void psplit_i_feeds_say_made(const psplit_i_feed *feeds, uint32_t n, psplit_diag *diag);

/* Looks for what a declared input says of sequences, options->sizes, and whether its own size is
 * open. `input` as a session or pipeline.json has it; options->open keeps its names. */
void psplit_i_feed_look(psplit_i_feed_options *options, const psplit_i_feed_input *input);

#endif
