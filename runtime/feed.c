#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { F32 = 1, U8, I8, U16, I16, I32, I64, STRING, BOOL, F16, F64, U32, U64, C64, C128, BF16 };

static double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

psplit_code psplit_i_tensor_fill_random(psplit_i_tensor *tensor, uint64_t seed, const char *name,
                                        uint32_t micro_batch, psplit_diag *diag) {
  psplit_i_tensor_view view;
  psplit_code code = psplit_i_tensor_look(tensor, diag, &view);
  if (code != PSPLIT_OK) return code;
  const uint64_t stream =
    psplit_i_splitmix64(psplit_i_hash_bytes(name, strlen(name), seed), micro_batch);
  const uint32_t bits = psplit_i_element_bits(view.data_type);
  const int32_t type = view.data_type;
  const bool complex = type == C64 || type == C128;
  /* What is smaller than a byte, or has no type in C, is bytes here. */
  const uint64_t n = complex            ? 2 * view.n_elements
                     : bits && bits < 8 ? view.n_bytes
                                        : view.n_elements;
  for (uint64_t i = 0; i < n && code == PSPLIT_OK; i++) {
    const uint64_t r = psplit_i_splitmix64(stream, i), small = r % 100;
    const uint32_t sign = (uint32_t)(r & 1) << 15;
    switch (type) {
      case F32:
      case C64: ((float *)view.data)[i] = (float)((double)(r >> 40) * 0x1p-23 - 1); break;
      case F64:
      case C128: ((double *)view.data)[i] = 2 * unit(r) - 1; break;
      /* Of 16-bit floats: +-[0.125, 1). */
      case F16:
        ((uint16_t *)view.data)[i] = (uint16_t)(sign | (0x3000 + (r >> 32) % 0x0c00));
        break;
      case BF16:
        ((uint16_t *)view.data)[i] = (uint16_t)(sign | (0x3e00 + (r >> 32) % 0x0180));
        break;
      case BOOL: ((uint8_t *)view.data)[i] = (uint8_t)(r >> 63); break;
      case U16:
      case I16: ((uint16_t *)view.data)[i] = (uint16_t)small; break;
      case U32:
      case I32: ((uint32_t *)view.data)[i] = (uint32_t)small; break;
      case U64:
      case I64: ((uint64_t *)view.data)[i] = small; break;
      case U8:
      case I8: ((uint8_t *)view.data)[i] = (uint8_t)(r >> 56); break;
      case STRING: {
        char text[8];
        const int length = snprintf(text, sizeof text, "s%d", (int)small);
        code = psplit_i_tensor_set_string(tensor, (size_t)i, text, (size_t)length, diag);
        break;
      }
      default: /* 8-bit floats stay finite with the sign and the top of the exponent clear */
        ((uint8_t *)view.data)[i] = (uint8_t)(bits == 8 ? (r >> 56) & 0x3f : r >> 56);
    }
  }
  return code;
}

/* The sizes of an input, from --shape, the file's own, or --dim. Returns the symbol of the first
 * that is not known ("" where it has none), or NULL. */
static const char *find_dims(const psplit_i_session_port *port, const char *name,
                             const psplit_i_feed_options *options, psplit_i_feed *feed) {
  const char *unknown = NULL;
  for (size_t i = 0; i < options->given.n_shapes; i++) {
    const psplit_feed_shape *shape = &options->given.shapes[i];
    if (strcmp(shape->input, name) != 0) continue;
    memcpy(feed->dims, shape->dims, shape->n_dims * sizeof *feed->dims);
    feed->wanted.n_dims = shape->n_dims;
    return NULL;
  }
  for (size_t d = 0; d < port->n_dims; d++) {
    feed->dims[d] = port->dims[d];
    for (size_t i = 0; feed->dims[d] < 0 && i < options->given.n_dims; i++)
      if (strcmp(options->given.dims[i].name, port->symbols[d]) == 0)
        feed->dims[d] = options->given.dims[i].value;
    if (feed->dims[d] < 0 && !unknown) unknown = port->symbols[d];
  }
  feed->wanted.n_dims = unknown ? PSPLIT_NONE : (uint32_t)port->n_dims;
  return unknown;
}

static psplit_code make_random(psplit_i_feed *feed, const psplit_i_feed_options *options,
                               uint32_t n_micro_batches, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  while (feed->n_ready < PSPLIT_I_DISTINCT && feed->n_ready < n_micro_batches) {
    psplit_i_tensor **tensor = &feed->ready[feed->n_ready];
    PSPLIT_TRY(psplit_i_tensor_create(feed->ort, feed->wanted.data_type, feed->dims,
                                      feed->wanted.n_dims, diag, tensor));
    feed->n_ready++;
    PSPLIT_TRY(psplit_i_tensor_fill_random(*tensor, options->given.seed, feed->input,
                                           feed->n_ready - 1, diag));
  }
out:
  return code;
}

static psplit_code find_file(const psplit_i_feed_options *options, const char *name,
                             psplit_diag *diag, const char **out_path) {
  psplit_code code = PSPLIT_OK;
  *out_path = NULL;
  for (size_t i = 0; i < options->given.n_files && !*out_path; i++) {
    const psplit_feed_file *given = &options->given.files[i];
    bool has = given->input && strcmp(given->input, name) == 0;
    if (!given->input) PSPLIT_TRY(psplit_i_npz_has(given->path, name, diag, &has));
    if (has) *out_path = given->path;
  }
out:
  return code;
}

psplit_code psplit_i_feed_open(const psplit_i_ort *ort, const psplit_i_session_port *port,
                               const char *name, bool optional,
                               const psplit_i_feed_options *options, uint32_t n_micro_batches,
                               psplit_diag *diag, psplit_i_feed *out, bool *out_used) {
  psplit_i_feed feed = {.ort = ort, .input = name};
  const char *unknown, *path;
  psplit_code code;
  *out_used = true;
  PSPLIT_TRY(find_file(options, name, diag, &path));
  if (!path && optional) {
    *out_used = false;
    return PSPLIT_OK;
  }
  if (!port)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s has a default that ONNX Runtime does not let one override",
                         name);
  if (!port->is_tensor)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "input %s is not a dense tensor", name);
  feed.wanted.data_type = port->data_type;
  unknown = find_dims(port, name, options, &feed);
  feed.wanted.dims = feed.dims;
  feed.wanted.safe_casts = options->given.safe_casts;
  if (path && strstr(path, "{}")) {
    feed.path = path;
    feed.counts = options->records != NULL;
  } else if (path && options->records && psplit_i_records_are_in(path)) {
    PSPLIT_TRY(psplit_i_records_open(options->records, path, diag, &feed.records));
  } else if (path && strcmp(path, "-") == 0) {
    code = psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(STREAM),
                               "standard input, for input %s, is a stream", name);
  } else if (path) {
    PSPLIT_TRY(psplit_i_array_read(ort, path, name, &feed.wanted, diag, &feed.ready[0]));
    feed.n_ready = 1;
  } else if (options->given.give) {
    feed.give = options->given.give;
    feed.give_user = options->given.give_user;
  } else if (!options->given.random) {
    code = psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS_WITH(INPUT, name),
                               "nothing is given for input %s", name);
  } else if (unknown) {
    code = psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS_WITH(INPUT_SHAPE, name),
                               "the size of %s in input %s is not known",
                               *unknown ? unknown : "an unnamed dimension", name);
  } else {
    code = make_random(&feed, options, n_micro_batches, diag);
  }
out:
  if (code == PSPLIT_OK) {
    *out = feed;
    out->wanted.dims = out->dims;
  } else {
    psplit_i_feed_close(&feed);
  }
  return code;
}

/* A copy of what the caller gives. */
static psplit_code ask(const psplit_i_feed *feed, uint32_t micro_batch, psplit_diag *diag,
                       psplit_i_tensor **out) {
  psplit_tensor_view given = {0};
  psplit_i_tensor_view made;
  uint64_t n_elements, n_bytes;
  psplit_i_tensor *tensor = NULL;
  psplit_code code;
  PSPLIT_TRY(feed->give(feed->give_user, micro_batch, feed->input, diag, &given));
  if (given.data_type != feed->wanted.data_type || given.n_dims > PSPLIT_I_MAX_RANK ||
      !psplit_i_element_bits(given.data_type) ||
      !psplit_i_tensor_size(given.data_type, given.dims, given.n_dims, &n_elements, &n_bytes) ||
      n_bytes != given.n_bytes || (n_bytes && !given.data))
    PSPLIT_TRY(psplit_i_fail(diag, PSPLIT_INVALID,
                             "input %s of micro-batch %" PRIu32 ": it takes data type %" PRId32
                             ", and as many bytes as its shape has",
                             feed->input, micro_batch, feed->wanted.data_type));
  PSPLIT_TRY(
    psplit_i_tensor_create(feed->ort, given.data_type, given.dims, given.n_dims, diag, &tensor));
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &made));
  if (n_bytes) memcpy(made.data, given.data, (size_t)n_bytes);
  *out = tensor;
  tensor = NULL;
out:
  psplit_i_tensor_release(tensor);
  return code;
}

psplit_code psplit_i_feed_get(const psplit_i_feed *feed, uint32_t micro_batch, psplit_diag *diag,
                              psplit_i_tensor **out) {
  if (feed->records)
    return psplit_i_records_next(feed->records, feed->ort, &feed->wanted, diag, out);
  if (feed->give) return ask(feed, micro_batch, diag, out);
  if (!feed->path) {
    *out = psplit_i_tensor_hold(feed->ready[micro_batch % feed->n_ready]);
    return PSPLIT_OK;
  }
  const char *hole = strstr(feed->path, "{}");
  psplit_i_text path = {0};
  psplit_i_text_add(&path, feed->path, (size_t)(hole - feed->path));
  psplit_i_text_addf(&path, "%" PRIu32 "%s", micro_batch, hole + 2);
  psplit_code code = PSPLIT_OK;
  if (path.failed)
    code = psplit_i_nomem(diag);
  else if (feed->counts && access(path.bytes, F_OK) != 0 && errno == ENOENT)
    *out = NULL;
  else
    code = psplit_i_array_read(feed->ort, path.bytes, feed->input, &feed->wanted, diag, out);
  psplit_i_text_fini(&path);
  return code;
}

void psplit_i_feed_close(psplit_i_feed *feed) {
  for (uint32_t i = 0; i < feed->n_ready; i++) psplit_i_tensor_release(feed->ready[i]);
  feed->n_ready = 0;
}
