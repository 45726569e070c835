/* Messages between a service and the processes of its stages, over stream sockets of one host: a
 * header, then text, then tensors. Received messages are not trusted: a message of an unexpected
 * kind or with inconsistent sizes is rejected with a reason before anything is stored. */
#ifndef PSPLIT_RUNTIME_FRAMES_H
#define PSPLIT_RUNTIME_FRAMES_H

#include "tensor.h"

typedef enum psplit_i_frame_kind {
  PSPLIT_I_FRAME_OPEN = 1, /* text: what to open (process.c) */
  PSPLIT_I_FRAME_OPENED,
  PSPLIT_I_FRAME_RUN,     /* the tensors of a micro-batch */
  PSPLIT_I_FRAME_OUTPUTS, /* those it becomes */
  PSPLIT_I_FRAME_FAILURE, /* text: why there are none, and what the hint has as arguments, each
                           * with its NUL; in place of OPENED or OUTPUTS */
  PSPLIT_I_FRAME_N_KINDS
} psplit_i_frame_kind;

enum { PSPLIT_I_FRAME_TEXT_BYTES = 1 << 24 }; /* the longest */

typedef struct psplit_i_frame {
  uint32_t magic, kind;
  uint64_t number; /* of the run that it is about; 0: none */
  uint64_t n_text; /* bytes */
  int32_t code;    /* psplit_code of a failure */
  uint32_t n_tensors;
  uint32_t subject, hint; /* psplit_subject and psplit_hint of a failure */
} psplit_i_frame;

/* Sends what `frame` says but its magic number, with text[n_text] and tensors[n_tensors]; outputs
 * that are no dense tensors are told to be there, and left out. Errors: IO (the peer is gone),
 * NOMEM, UNSUPPORTED (an input that is not a dense tensor). */
PSPLIT_MUST_USE psplit_code psplit_i_frame_send(int fd, const psplit_i_frame *frame,
                                                const char *text, psplit_i_tensor *const *tensors,
                                                psplit_diag *diag);

/* Waits for a head. It is `wanted` about run `number`, with as many tensors, or a failure.
 * Errors: IO (the peer is gone), INVALID (it is something else). */
PSPLIT_MUST_USE psplit_code psplit_i_frame_receive(int fd, psplit_i_frame_kind wanted,
                                                   uint64_t number, uint32_t n_tensors,
                                                   psplit_diag *diag, psplit_i_frame *out);
/* Of a head that has just come: its text, n_text bytes, which are malloc'd, and a NUL. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_text(int fd, const psplit_i_frame *frame,
                                                psplit_diag *diag, char **out_text);
/* Sends why run `number` (0: none) has no answer, with what would help. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_send_failure(int fd, uint64_t number,
                                                        const psplit_diag *why, psplit_diag *diag);
/* Of a failure that has come with its text: what it says, in *out; its code. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_failure(const psplit_i_frame *frame, const char *text,
                                                   psplit_diag *out);
/* Its tensors, out[frame->n_tensors], all NULL before, which the caller releases; those of outputs
 * that were left out stay NULL. Errors: IO, INVALID (sizes that do
 * not agree), those of psplit_i_tensor_create. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_tensors(int fd, const psplit_i_frame *frame,
                                                   const psplit_i_ort *ort, psplit_diag *diag,
                                                   psplit_i_tensor **out);

#endif
