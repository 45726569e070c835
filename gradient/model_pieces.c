#include "model_pieces.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "onnx.pb-c.h"
#include "onnx_fields.h"
#include "out_file.h"
#include "wire.h"

enum { COPY_BYTES = 1 << 20 };

void psplit_i_pieces_fini(psplit_i_pieces *pieces) { psplit_i_vec_fini(&pieces->items); }

static void push(psplit_i_pieces *pieces, psplit_i_piece piece) {
  if (!piece.bytes) return;
  if (!psplit_i_vec_push(&pieces->items, piece)) pieces->failed = true;
  pieces->bytes += piece.bytes;
}

void psplit_i_pieces_memory(psplit_i_pieces *pieces, const void *memory, size_t n) {
  push(pieces, (psplit_i_piece){.memory = memory, .bytes = n});
}

void psplit_i_pieces_text(psplit_i_pieces *pieces, const psplit_i_text *text) {
  if (text->failed) pieces->failed = true;
  psplit_i_pieces_memory(pieces, text->bytes, text->n);
}

static void put_head(psplit_i_pieces *pieces, uint32_t number, uint64_t bytes) {
  psplit_i_piece piece = {.is_head = true};
  const uint64_t tag = (uint64_t)number << 3 | PSPLIT_I_WIRE_BYTES;
  const unsigned n_tag = psplit_i_varint_width(tag), n_bytes = psplit_i_varint_width(bytes);
  psplit_i_varint_write(piece.head, n_tag, tag);
  psplit_i_varint_write(piece.head + n_tag, n_bytes, bytes);
  piece.bytes = n_tag + n_bytes;
  push(pieces, piece);
}

/* The field that a view stands for, its payload from the file. */
static void put_viewed(psplit_i_pieces *pieces, const psplit_i_field *f) {
  ProtobufCAllocator *plain = NULL;
  Onnx__PayloadView *view =
    onnx__payload_view__unpack(plain, (size_t)(f->end - f->content), f->content);
  if (!view) {
    pieces->failed = true;
    return;
  }
  put_head(pieces, view->field, view->bytes);
  push(pieces, (psplit_i_piece){.offset = view->offset, .bytes = view->bytes});
  onnx__payload_view__free_unpacked(view, plain);
}

/* A message as the skeleton has it, with what stayed in the file. Depth is bounded by the scan. */
static void put_scattered(psplit_i_pieces *pieces, const ProtobufCMessageDescriptor *descriptor,
                          const psplit_i_field *message) {
  const bool tensor = descriptor == &onnx__tensor_proto__descriptor;
  psplit_i_pieces inner = {0};
  psplit_i_field f;
  for (const uint8_t *at = message->content; at < message->end && !inner.lost;) {
    if (!psplit_i_next_field(&at, message->end, &f)) {
      inner.lost = true;
      break;
    }
    const ProtobufCFieldDescriptor *known =
      f.wire_type == PSPLIT_I_WIRE_BYTES
        ? protobuf_c_message_descriptor_get_field(descriptor, f.number)
        : NULL;
    if (tensor && f.number == PSPLIT_I_TENSOR_VIEW)
      put_viewed(&inner, &f);
    else if (known && known->type == PROTOBUF_C_TYPE_MESSAGE)
      put_scattered(&inner, known->descriptor, &f);
    else
      psplit_i_pieces_memory(&inner, f.start, (size_t)(f.end - f.start));
  }
  put_head(pieces, message->number, inner.bytes);
  psplit_i_pieces_all(pieces, &inner);
  psplit_i_pieces_fini(&inner);
}

/* A field of the graph whose bytes are not together in the file. */
static void put_graph_field(psplit_i_pieces *pieces, const psplit_model *model,
                            const psplit_i_span *span) {
  const uint8_t *at = model->skeleton.bytes + span->skeleton_offset;
  const ProtobufCFieldDescriptor *known =
    protobuf_c_message_descriptor_get_field(&onnx__graph_proto__descriptor, span->field);
  psplit_i_field f;
  if (known && known->type == PROTOBUF_C_TYPE_MESSAGE &&
      psplit_i_next_field(&at, at + span->skeleton_bytes, &f))
    put_scattered(pieces, known->descriptor, &f);
  else
    pieces->lost = true;
}

void psplit_i_pieces_span(psplit_i_pieces *pieces, const psplit_model *model,
                          const psplit_i_span *span) {
  if (!span->has_view)
    psplit_i_pieces_memory(pieces, model->skeleton.bytes + span->skeleton_offset,
                           span->skeleton_bytes);
  else if (span->file_bytes)
    push(pieces, (psplit_i_piece){.offset = span->file_offset, .bytes = span->file_bytes});
  else
    put_graph_field(pieces, model, span);
}

void psplit_i_pieces_all(psplit_i_pieces *pieces, const psplit_i_pieces *others) {
  for (size_t i = 0; i < others->items.n; i++) push(pieces, others->items.items[i]);
  pieces->failed |= others->failed;
  pieces->lost |= others->lost;
}

void psplit_i_pieces_model(psplit_i_pieces *pieces, const psplit_model *model,
                           const psplit_i_text *added, psplit_i_text *head) {
  const psplit_i_skeleton *skeleton = &model->skeleton;
  psplit_i_pieces graph = {0};
  for (size_t i = 0; i < skeleton->graph_fields.n; i++)
    psplit_i_pieces_span(&graph, model, &skeleton->graph_fields.items[i]);
  if (added) psplit_i_pieces_text(&graph, added);
  psplit_i_wire_tag(head, PSPLIT_I_MODEL_GRAPH, PSPLIT_I_WIRE_BYTES);
  psplit_i_wire_varint(head, graph.bytes);
  for (size_t i = 0; i < skeleton->model_fields.n; i++) {
    if (skeleton->model_fields.items[i].field == PSPLIT_I_MODEL_GRAPH) {
      psplit_i_pieces_text(pieces, head);
      psplit_i_pieces_all(pieces, &graph);
    } else {
      psplit_i_pieces_span(pieces, model, &skeleton->model_fields.items[i]);
    }
  }
  psplit_i_pieces_fini(&graph);
}

static psplit_code write_pieces(const psplit_i_pieces *pieces, const psplit_model *model,
                                FILE *file, const char *path, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  char *buffer = malloc(COPY_BYTES);
  if (!buffer) return psplit_i_nomem(diag);
  for (size_t i = 0; i < pieces->items.n; i++) {
    const psplit_i_piece *piece = &pieces->items.items[i];
    for (uint64_t done = 0; done < piece->bytes;) {
      const uint64_t left = piece->bytes - done;
      size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
      const char *bytes = buffer;
      const void *memory = piece->is_head ? piece->head : piece->memory;
      if (memory) {
        bytes = (const char *)memory + done;
        n = (size_t)left;
      } else {
        PSPLIT_TRY(psplit_i_model_read(model, 0, piece->offset + done, buffer, n, diag));
      }
      if (fwrite(bytes, 1, n, file) != n)
        PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "%s: cannot write: %s", path, strerror(errno)));
      done += n;
    }
  }
out:
  free(buffer);
  return code;
}

static psplit_code check(const psplit_i_pieces *pieces, const char *name, psplit_diag *diag) {
  if (pieces->failed) return psplit_i_nomem(diag);
  if (pieces->lost)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "a message changed since it was scanned");
  if (pieces->bytes > INT32_MAX)
    return psplit_i_fail(diag, PSPLIT_LIMIT, "%s would be over 2 GiB, which ONNX files cannot be",
                         name);
  return PSPLIT_OK;
}

psplit_code psplit_i_pieces_put(const psplit_i_pieces *pieces, const psplit_model *model,
                                FILE *file, const char *name, psplit_diag *diag) {
  psplit_code code;
  PSPLIT_TRY(check(pieces, name, diag));
  PSPLIT_TRY(write_pieces(pieces, model, file, name, diag));
  if (fflush(file) != 0)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "%s: cannot write: %s", name, strerror(errno)));
out:
  return code;
}

psplit_code psplit_i_pieces_write(const psplit_i_pieces *pieces, const psplit_model *model,
                                  const char *path, psplit_diag *diag) {
  psplit_code code;
  psplit_i_out_file place = {.fd = -1, .directory_fd = -1};
  FILE *file = NULL;
  const psplit_i_held_signal held = psplit_i_hold_size_signal();
  PSPLIT_TRY(check(pieces, path, diag));
  PSPLIT_TRY(psplit_i_out_begin(path, NULL, diag, &place));
  const int fd = fcntl(place.fd, F_DUPFD_CLOEXEC, 0);
  file = fd < 0 ? NULL : fdopen(fd, "wb");
  if (!file) {
    if (fd >= 0) close(fd);
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "%s: cannot open: %s", path, strerror(errno)));
  }
  PSPLIT_TRY(write_pieces(pieces, model, file, path, diag));
  const bool closed = fclose(file) == 0;
  file = NULL;
  if (!closed)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "%s: cannot write: %s", path, strerror(errno)));
  PSPLIT_TRY(psplit_i_out_commit(&place, diag));
out:
  if (file) fclose(file);
  psplit_i_out_abandon(&place);
  psplit_i_let_size_signal(&held);
  return code;
}
