/* A file to be written: bytes in memory and ranges of a model's file, in order. */
#ifndef PSPLIT_GRADIENT_MODEL_PIECES_H
#define PSPLIT_GRADIENT_MODEL_PIECES_H

#include <stdio.h>

#include "model.h"

typedef struct psplit_i_piece {
  const void *memory; /* NULL: a range of the model's file, or a head */
  uint64_t offset, bytes;
  uint8_t head[16]; /* a field's tag and length, where is_head */
  bool is_head;
} psplit_i_piece;

typedef struct psplit_i_pieces {
  PSPLIT_VEC(psplit_i_piece) items;
  uint64_t bytes;
  bool failed, lost; /* lost: a field that is not what the scan has seen */
} psplit_i_pieces;

void psplit_i_pieces_fini(psplit_i_pieces *pieces);
/* `memory` is borrowed until the file is written. */
void psplit_i_pieces_memory(psplit_i_pieces *pieces, const void *memory, size_t n);
void psplit_i_pieces_text(psplit_i_pieces *pieces, const psplit_i_text *text);
/* One field of the model or of its graph as it is in the file; in pieces, where an If was
 * inlined. */
void psplit_i_pieces_span(psplit_i_pieces *pieces, const psplit_model *model,
                          const psplit_i_span *span);
void psplit_i_pieces_all(psplit_i_pieces *pieces, const psplit_i_pieces *others);

/* All fields of a model, with `added` (may be NULL) at the end of its graph. *head is filled, and
 * borrowed like what is `added`. */
void psplit_i_pieces_model(psplit_i_pieces *pieces, const psplit_model *model,
                           const psplit_i_text *added, psplit_i_text *head);

/* Writes the file, as base/out_file.h says: it appears complete or not at all. Errors: IO, LIMIT
 * (over 2 GiB, which protobuf cannot read), UNSUPPORTED, NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_pieces_write(const psplit_i_pieces *pieces,
                                                  const psplit_model *model, const char *path,
                                                  psplit_diag *diag);
/* The same to a file that is open for writing, and stays open; `name` is for messages. */
PSPLIT_MUST_USE psplit_code psplit_i_pieces_put(const psplit_i_pieces *pieces,
                                                const psplit_model *model, FILE *file,
                                                const char *name, psplit_diag *diag);

#endif
