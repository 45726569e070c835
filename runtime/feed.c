#include "feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* The range that is asked for, or how random numbers are made; false where there is neither. */
static bool find_made(const psplit_i_feed_options *options, const char *name, psplit_i_made *out) {
  for (size_t i = 0; i < options->given.n_ranges; i++) {
    const psplit_feed_range *range = &options->given.ranges[i];
    if (strcmp(range->input, name) != 0) continue;
    *out = (psplit_i_made){PSPLIT_I_MADE_RANGE, range->low, range->high, .asked = true};
    return true;
  }
  *out = psplit_i_made_by_name(name, &options->sizes);
  return options->given.random && !options->given.give;
}

static psplit_code make(psplit_i_feed *feed, const psplit_i_feed_options *options,
                        const psplit_i_made *made, uint32_t n_micro_batches, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  while (feed->n_ready < PSPLIT_I_DISTINCT && feed->n_ready < n_micro_batches) {
    psplit_i_tensor **tensor = &feed->ready[feed->n_ready];
    PSPLIT_TRY(psplit_i_tensor_create(feed->ort, feed->wanted.data_type, feed->dims,
                                      feed->wanted.n_dims, diag, tensor));
    feed->n_ready++;
    PSPLIT_TRY(
      psplit_i_made_fill(made, *tensor, options->given.seed, feed->input, feed->n_ready - 1, diag));
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

static bool lists(const psplit_i_open_sizes *open, const char *input, const char *symbol) {
  for (uint32_t i = 0; i < open->n && i < PSPLIT_I_MOST_OPEN_SIZES; i++)
    if (strcmp(open->symbols[i], symbol) == 0 && (*symbol || strcmp(open->inputs[i], input) == 0))
      return true;
  return false;
}

void psplit_i_feed_look(psplit_i_feed_options *options, const psplit_i_feed_input *input) {
  const psplit_i_session_port *port = input->port;
  psplit_i_open_sizes *open = &options->open;
  psplit_i_feed sized = {0};
  psplit_i_made made;
  psplit_diag ignored = {0};
  const char *path = NULL;
  const char *unknown = find_dims(port, input->name, options, &sized);
  const size_t n = sized.wanted.n_dims == PSPLIT_NONE ? port->n_dims : sized.wanted.n_dims;
  const bool is_made = find_made(options, input->name, &made);
  psplit_i_sequence_sizes_look(&options->sizes, input->name, sized.dims, n);
  if (!unknown || !is_made || (input->optional && !made.asked)) return;
  if (find_file(options, input->name, &ignored, &path) != PSPLIT_OK || path) return;
  for (size_t d = 0; d < n; d++) {
    if (sized.dims[d] >= 0 || lists(open, input->name, port->symbols[d])) continue;
    if (open->n < PSPLIT_I_MOST_OPEN_SIZES) {
      open->inputs[open->n] = input->name;
      open->symbols[open->n] = port->symbols[d];
    }
    open->unnamed |= !*port->symbols[d];
    open->n++;
  }
}

/* Of what is no tensor sequences alone have files, which are read whole. */
static psplit_code check_no_tensor(const psplit_i_session_port *port, const char *name,
                                   const char *path, const psplit_i_feed_options *options,
                                   psplit_diag *diag) {
  if (options->records || options->given.give)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s is not a tensor: streams and programs can only supply tensors",
                         name);
  if (!port->is_sequence)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s is neither a tensor nor a sequence of tensors, so no file can "
                         "supply it; a program that runs the stages one after the other can",
                         name);
  if (path && strcmp(path, "-") != 0) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_USAGE,
                       "there is no data for input %s, a sequence, which is never generated: give "
                       "a .pb file with a SequenceProto",
                       name);
}

/* Takes what was read where it fits. */
static psplit_code take(const psplit_i_feed *feed, const char *path, psplit_i_tensor **inout,
                        psplit_diag *diag) {
  const psplit_code code = *inout ? psplit_i_feed_fits(feed, path, *inout, diag) : PSPLIT_OK;
  if (code == PSPLIT_OK) return code;
  psplit_i_tensor_release(*inout);
  *inout = NULL;
  return code;
}

psplit_code psplit_i_feed_read(const psplit_i_feed *feed, const char *path, psplit_diag *diag,
                               psplit_i_tensor **out) {
  const psplit_code code =
    psplit_i_array_read(feed->ort, path, feed->input, &feed->wanted, diag, out);
  if (code == PSPLIT_INVALID) psplit_i_diag_context(diag, "input %s", feed->input);
  return code == PSPLIT_OK ? take(feed, path, out, diag) : code;
}

/* By a file, whose tensor is one for all micro-batches, one for each, or the next of a stream. */
static psplit_code open_path(psplit_i_feed *feed, const char *path,
                             const psplit_i_feed_options *options, psplit_diag *diag) {
  if (strstr(path, "{}")) {
    feed->path = path;
    feed->counts = options->records != NULL;
    return PSPLIT_OK;
  }
  if (options->records && psplit_i_records_are_in(path)) {
    if (options->first)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "%s, for input %s, cannot be read from micro-batch %" PRIu32
                           " on: micro-batches of a stream have no numbers",
                           path, feed->input, options->first);
    return psplit_i_records_open(options->records, path, diag, &feed->records);
  }
  if (strcmp(path, "-") == 0)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(STREAM),
                               "standard input, for input %s, is a stream", feed->input);
  const psplit_code code = psplit_i_feed_read(feed, path, diag, &feed->ready[0]);
  if (code == PSPLIT_OK) feed->n_ready = 1;
  return code;
}

static const char *called(const char *symbol) { return *symbol ? symbol : "an unnamed dimension"; }

static psplit_code size_unknown(const char *name, const char *symbol, psplit_diag *diag) {
  const psplit_i_advice helps = {.hint = PSPLIT_HINT_INPUT_SHAPE,
                                 .arguments = {name, *symbol ? symbol : NULL}};
  return psplit_i_fail_about(diag, PSPLIT_USAGE, helps, "the size of %s in input %s is not known",
                             called(symbol), name);
}

/* All at once: who adds one size after another starts a run for each. */
static psplit_code sizes_unknown(const psplit_i_open_sizes *open, psplit_diag *diag) {
  const uint32_t n = open->n < PSPLIT_I_MOST_OPEN_SIZES ? open->n : PSPLIT_I_MOST_OPEN_SIZES;
  psplit_i_advice helps = {.hint = PSPLIT_HINT_INPUT_SHAPE, .arguments = {open->inputs[0]}};
  psplit_i_text list = {0};
  uint32_t n_arguments = 1;
  for (uint32_t i = 0; i < n; i++) {
    const bool last_of_input = i + 1 == n || strcmp(open->inputs[i], open->inputs[i + 1]) != 0;
    psplit_i_text_addf(&list, "%s%.100s", i ? ", " : "", called(open->symbols[i]));
    if (last_of_input) psplit_i_text_addf(&list, " in input %.100s", open->inputs[i]);
    if (strcmp(open->inputs[0], open->inputs[i]) != 0) helps.arguments[0] = "";
    if (!open->unnamed) helps.arguments[n_arguments++] = open->symbols[i];
  }
  if (open->n > n) {
    psplit_i_text_addf(&list, ", and %" PRIu32 " more", open->n - n);
    helps.arguments[0] = "";
    if (!open->unnamed) helps.arguments[n_arguments] = "...";
  }
  const psplit_code code = list.failed ? psplit_i_nomem(diag)
                                       : psplit_i_fail_about(diag, PSPLIT_USAGE, helps,
                                                             "sizes are not known: %s", list.bytes);
  psplit_i_text_fini(&list);
  return code;
}

psplit_code psplit_i_feed_open(const psplit_i_feed_input *input,
                               const psplit_i_feed_options *options, uint32_t n_micro_batches,
                               psplit_diag *diag, psplit_i_feed *out, bool *out_used) {
  const psplit_i_session_port *port = input->port;
  psplit_i_feed feed = {.ort = input->ort, .input = input->name};
  const char *path;
  psplit_i_made made;
  psplit_code code;
  *out_used = true;
  PSPLIT_TRY(find_file(options, input->name, diag, &path));
  const bool is_made = find_made(options, input->name, &made);
  if (!path && !made.asked && input->optional) {
    *out_used = false;
    return PSPLIT_OK;
  }
  if (!port)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "input %s has a default that ONNX Runtime does not let one override",
                         input->name);
  if (!port->is_tensor) PSPLIT_TRY(check_no_tensor(port, input->name, path, options, diag));
  feed.port = *port;
  feed.wanted.is_sequence = !port->is_tensor;
  feed.wanted.data_type = port->data_type;
  const char *unknown = find_dims(port, input->name, options, &feed);
  feed.wanted.dims = feed.dims;
  feed.wanted.safe_casts = options->given.safe_casts;
  feed.wanted.max_unpacked_bytes = options->given.max_unpacked_bytes;
  if (path) {
    code = open_path(&feed, path, options, diag);
  } else if (options->given.give && !made.asked) {
    feed.give = options->given.give;
    feed.give_user = options->given.give_user;
  } else if (!is_made) {
    code = psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS_WITH(INPUT, input->name),
                               "there is no data for input %s", input->name);
  } else if (unknown) {
    code = options->open.n > 1 ? sizes_unknown(&options->open, diag)
                               : size_unknown(input->name, unknown, diag);
  } else {
    /* As many as a run from 0 on has: which one a micro-batch gets hangs on that. */
    const uint64_t n = (uint64_t)options->first + n_micro_batches;
    code = make(&feed, options, &made, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX, diag);
    feed.is_any = made.how == PSPLIT_I_MADE_RANDOM && psplit_i_made_is_small(port->data_type);
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

void psplit_i_feeds_say_made(const psplit_i_feed *feeds, uint32_t n, psplit_diag *diag) {
  enum { MOST = 4 };
  psplit_i_text names = {0};
  uint32_t n_any = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!feeds[i].is_any || n_any++ >= MOST) continue;
    psplit_i_text_addf(&names, "%s%.60s", n_any > 1 ? ", " : "", feeds[i].input);
  }
  if (n_any && !names.failed)
    psplit_i_diag_add(diag,
                      "the numbers of input%s %s%s were made, from 0 to %d, and may not suit the "
                      "model: give a range or a file",
                      n_any > 1 ? "s" : "", names.bytes, n_any > MOST ? ", ..." : "",
                      PSPLIT_I_MADE_BELOW - 1);
  psplit_i_text_fini(&names);
}

/* A copy of what the caller gives. */
static psplit_code ask(const psplit_i_feed *feed, uint32_t micro_batch, psplit_diag *diag,
                       psplit_i_tensor **out) {
  psplit_tensor_view given = {0};
  psplit_i_tensor_view made;
  uint64_t n_elements, n_bytes;
  psplit_code code;
  PSPLIT_TRY(feed->give(feed->give_user, micro_batch, feed->input, diag, &given));
  if (given.data_type != feed->wanted.data_type || given.n_dims > PSPLIT_I_MAX_RANK ||
      !psplit_i_element_bits(given.data_type) ||
      !psplit_i_tensor_size(given.data_type, given.dims, given.n_dims, &n_elements, &n_bytes) ||
      n_bytes != given.n_bytes || (n_bytes && !given.data))
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_INVALID,
                              "input %s of micro-batch %" PRIu32 ": it takes data type %" PRId32
                              ", and as many bytes as its shape has",
                              feed->input, micro_batch, feed->wanted.data_type));
  PSPLIT_TRY(
    psplit_i_tensor_make(feed->ort, given.data_type, given.dims, given.n_dims, diag, out, &made));
  if (n_bytes) memcpy(made.data, given.data, (size_t)n_bytes);
  code = take(feed, "what the program gives", out, diag);
out:
  return code;
}

psplit_code psplit_i_feed_get(const psplit_i_feed *feed, uint32_t micro_batch, psplit_diag *diag,
                              psplit_i_tensor **out) {
  if (feed->records) {
    const psplit_code read =
      psplit_i_records_next(feed->records, feed->ort, &feed->wanted, diag, out);
    if (read == PSPLIT_INVALID) psplit_i_diag_context(diag, "input %s", feed->input);
    return read == PSPLIT_OK ? take(feed, psplit_i_records_path(feed->records), out, diag) : read;
  }
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
  else if (feed->counts && micro_batch && access(path.bytes, F_OK) != 0 && errno == ENOENT)
    *out = NULL;
  else
    code = psplit_i_feed_read(feed, path.bytes, diag, out);
  psplit_i_text_fini(&path);
  return code;
}

void psplit_i_feed_close(psplit_i_feed *feed) {
  for (uint32_t i = 0; i < feed->n_ready; i++) psplit_i_tensor_release(feed->ready[i]);
  feed->n_ready = 0;
}
