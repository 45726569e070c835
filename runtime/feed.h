/* Sources of the model's inputs: files, the caller, or generated numbers. */
#ifndef PSPLIT_RUNTIME_FEED_H
#define PSPLIT_RUNTIME_FEED_H

#include <psplit/run.h>

#include "made_input.h"
#include "records.h"

/* Sizes of generated inputs that are not given; each symbol is listed once. */
enum { PSPLIT_I_MOST_OPEN_SIZES = 6 };
typedef struct psplit_i_open_sizes {
  const char *inputs[PSPLIT_I_MOST_OPEN_SIZES];
  const char *symbols[PSPLIT_I_MOST_OPEN_SIZES]; /* "": the size has no symbol */
  uint32_t n;                                    /* may exceed the number listed */
  bool unnamed; /* sizes of named dimensions alone do not suffice */
} psplit_i_open_sizes;

/* psplit_feed_options, and additions for a run. */
typedef struct psplit_i_feed_options {
  psplit_feed_options given;
  /* For a stream: "-" and files that are not regular hold one tensor after another, and {} counts
   * up to the first file that does not exist. */
  psplit_i_record_files *records;
  psplit_i_sequence_sizes sizes; /* sizes of the model's inputs, for generated inputs */
  psplit_i_open_sizes open;      /* sizes not given, for an error that lists all of them */
  uint32_t first;                /* number of the first micro-batch */
} psplit_i_feed_options;

/* A source of one input of the model. Random inputs repeat after PSPLIT_I_DISTINCT micro-batches,
 * which are generated before the clock starts. */
enum { PSPLIT_I_DISTINCT = 4 };
typedef struct psplit_i_feed {
  const psplit_i_ort *ort;
  const char *input, *path;  /* path: read again for each micro-batch; else NULL */
  psplit_i_records *records; /* a file with one tensor after another */
  psplit_give_input give;    /* called for each micro-batch */
  void *give_user;
  bool counts; /* the first file that does not exist, except file 0, ends the stream */
  bool is_any; /* whole numbers in an arbitrary range: they may be invalid indices */
  psplit_i_array_wanted wanted;
  psplit_i_session_port port; /* the port that it feeds */
  int64_t dims[PSPLIT_I_MAX_RANK];
  psplit_i_tensor *ready[PSPLIT_I_DISTINCT];
  uint32_t n_ready;
} psplit_i_feed;

/* An input of the model that is to be fed. */
typedef struct psplit_i_feed_input {
  const psplit_i_ort *ort;
  /* as the session declares it; NULL: it exists only as a constant */
  const psplit_i_session_port *port;
  const char *name; /* name in the model, which outlives the feed */
  bool optional;    /* the model has a default */
} psplit_i_feed_input;

/* Prepares the source for at most n_micro_batches from options->first on. If the input is optional
 * and no file gives it, *out_used is false. The caller closes *out. Errors: USAGE (nothing is
 * given, a size is unknown, or a pipe is not read from its beginning), UNSUPPORTED (not a tensor,
 * or a default that cannot be overridden), and those of psplit_i_array_read. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_open(const psplit_i_feed_input *input,
                                               const psplit_i_feed_options *options,
                                               uint32_t n_micro_batches, psplit_diag *diag,
                                               psplit_i_feed *out, bool *out_used);
/* The tensor of a micro-batch, which the caller releases; NULL at the end of a stream. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_get(const psplit_i_feed *feed, uint32_t micro_batch,
                                              psplit_diag *diag, psplit_i_tensor **out);
/* The tensor of another file instead of the feed's own. Errors: those of psplit_i_array_read and
 * psplit_i_feed_fits. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_read(const psplit_i_feed *feed, const char *path,
                                               psplit_diag *diag, psplit_i_tensor **out);
/* Checks a tensor against the input. Errors: INVALID (another shape), and those of
 * psplit_i_tensor_look. `from` names the origin of the tensor in messages. */
PSPLIT_MUST_USE psplit_code psplit_i_feed_fits(const psplit_i_feed *feed, const char *from,
                                               const psplit_i_tensor *tensor, psplit_diag *diag);
void psplit_i_feed_close(psplit_i_feed *feed); /* a zeroed one is fine */
/* After a failure of a session, names a feed whose generated numbers may be the reason. */
void psplit_i_feeds_say_made(const psplit_i_feed *feeds, uint32_t n, psplit_diag *diag);

/* Extracts sizes of sequences, options->sizes, from a declared input, and whether its own size is
 * open. `input` is declared by a session or pipeline.json; options->open borrows its names. */
void psplit_i_feed_look(psplit_i_feed_options *options, const psplit_i_feed_input *input);

#endif
