/* Messages between a service and the processes of its stages, over stream sockets of one host: a
 * header, then text, then tensors. Received messages are not trusted: a message of an unexpected
 * kind or with inconsistent sizes is rejected with a reason before anything is stored. */
#ifndef PSPLIT_RUNTIME_FRAMES_H
#define PSPLIT_RUNTIME_FRAMES_H

#include "tensor.h"

typedef enum psplit_i_frame_kind {
  PSPLIT_I_FRAME_OPEN = 1, /* text: the options of what to open (process.c) */
  PSPLIT_I_FRAME_OPENED,
  PSPLIT_I_FRAME_RUN,     /* tensors: the inputs of a micro-batch */
  PSPLIT_I_FRAME_OUTPUTS, /* tensors: its outputs */
  /* text: the reason and the arguments of the hint, each with its NUL; instead of OPENED or
   * OUTPUTS */
  PSPLIT_I_FRAME_FAILURE,
  PSPLIT_I_FRAME_N_KINDS
} psplit_i_frame_kind;

enum { PSPLIT_I_FRAME_TEXT_BYTES = 1 << 24 }; /* limit on text */

typedef struct psplit_i_frame {
  uint32_t magic, kind;
  uint64_t number; /* number of the run; 0: none */
  uint64_t n_text; /* bytes */
  int32_t code;    /* psplit_code of a failure */
  uint32_t n_tensors;
  uint32_t subject, hint; /* psplit_subject and psplit_hint of a failure */
} psplit_i_frame;

/* Sends `frame`, whose magic number is set here, with text[n_text] and tensors[n_tensors]. Outputs
 * that are not dense tensors are announced, but not sent. Errors: IO (the peer is gone), NOMEM,
 * UNSUPPORTED (an input that is not a dense tensor). */
PSPLIT_MUST_USE psplit_code psplit_i_frame_send(int fd, const psplit_i_frame *frame,
                                                const char *text, psplit_i_tensor *const *tensors,
                                                psplit_diag *diag);

/* Waits for a header, which must be of kind `wanted` for run `number` with the given number of
 * tensors, or a failure. Errors: IO (the peer is gone), INVALID (anything else). */
PSPLIT_MUST_USE psplit_code psplit_i_frame_receive(int fd, psplit_i_frame_kind wanted,
                                                   uint64_t number, uint32_t n_tensors,
                                                   psplit_diag *diag, psplit_i_frame *out);
/* Receives the text of a header that has just been received: n_text bytes and a NUL, malloc'd. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_text(int fd, const psplit_i_frame *frame,
                                                psplit_diag *diag, char **out_text);
/* Sends the failure of run `number` (0: none), and its hint. Errors: IO, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_send_failure(int fd, uint64_t number,
                                                        const psplit_diag *why, psplit_diag *diag);
/* Reads a received failure and its text into *out, and returns its code. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_failure(const psplit_i_frame *frame, const char *text,
                                                   psplit_diag *out);
/* Receives the tensors out[frame->n_tensors], all NULL before, which the caller releases; outputs
 * that were not sent stay NULL. Errors: IO, INVALID (inconsistent sizes), those of
 * psplit_i_tensor_create. */
PSPLIT_MUST_USE psplit_code psplit_i_frame_tensors(int fd, const psplit_i_frame *frame,
                                                   const psplit_i_ort *ort, psplit_diag *diag,
                                                   psplit_i_tensor **out);

#endif
