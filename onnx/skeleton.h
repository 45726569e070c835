/* The bounded wire scan: from the bytes of a model file to its skeleton.
 *
 * One pass over the protobuf wire format, driven by the schema, before protobuf-c reads anything.
 * It rejects input on which protobuf-c would crash, merge in quadratic time, truncate, or use
 * excessive memory, and leaves large tensor payloads in the file: the skeleton has a PayloadView in
 * their place. Length prefixes around a payload keep their width and get the new length, so the
 * skeleton is itself a valid ModelProto. */
#ifndef PSPLIT_ONNX_SKELETON_H
#define PSPLIT_ONNX_SKELETON_H

#include <psplit/activity.h>

#include "base.h"
#include "fields.h"

enum {
  PSPLIT_I_MAX_DEPTH = 100,  /* nested messages, the protobuf libraries' own default */
  PSPLIT_I_VIEW_BYTES = 1024 /* payloads above this stay in the file */
};

/* One field of a message, tag and length included. Its skeleton bytes equal its file bytes unless
 * `has_view`: then a payload in it stayed in the file, or (in files over 32 GiB) a length prefix of
 * over five bytes was shortened. file_bytes 0: its bytes are not contiguous in the file, and
 * payloads are located by views. */
typedef struct psplit_i_span {
  uint64_t file_offset, file_bytes;
  uint32_t skeleton_offset, skeleton_bytes;
  uint32_t field; /* field number */
  bool has_view;
} psplit_i_span;

typedef PSPLIT_VEC(psplit_i_span) psplit_i_spans;

typedef struct psplit_i_skeleton {
  uint8_t *bytes;
  size_t n_bytes;
  size_t capacity;
  psplit_i_spans model_fields; /* direct fields of the ModelProto, in file order */
  psplit_i_spans graph_fields; /* direct fields of its graph, in file order */
  uint64_t unpacked_bytes;     /* estimate of what unpacking and indexing will allocate */
} psplit_i_skeleton;

/* Scans the first `file_bytes` bytes of `fd` (pread; the file position is not used).
 * max_unpacked_bytes  bound on `unpacked_bytes` and `n_bytes` together.
 * On failure *out_skeleton is empty. Errors: IO, MALFORMED (with the byte offset and message type),
 * LIMIT, UNSUPPORTED, NOMEM, CANCELLED. O(file bytes outside payloads). */
PSPLIT_MUST_USE psplit_code psplit_i_skeleton_scan(int fd, uint64_t file_bytes,
                                                   uint64_t max_unpacked_bytes,
                                                   const volatile int *cancel,
                                                   psplit_activity *activity, psplit_diag *diag,
                                                   psplit_i_skeleton *out_skeleton);

/* Fails with LIMIT for a structure over `max_bytes`. */
PSPLIT_MUST_USE psplit_code psplit_i_graph_over_limit(uint64_t max_bytes, psplit_diag *diag);

/* A zeroed skeleton is fine. */
void psplit_i_skeleton_fini(psplit_i_skeleton *skeleton);

#endif
