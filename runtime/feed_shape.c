/* Checks the shapes of given inputs. */
#include <inttypes.h>

#include "feed.h"

static void add_dims(psplit_i_text *text, const int64_t *dims, const char *const *symbols,
                     size_t n) {
  psplit_i_text_puts(text, "[");
  for (size_t d = 0; d < n; d++) {
    if (d) psplit_i_text_puts(text, ",");
    if (dims[d] >= 0)
      psplit_i_text_addf(text, "%" PRId64, dims[d]);
    else
      psplit_i_text_puts(text, symbols && *symbols[d] ? symbols[d] : "?");
  }
  psplit_i_text_puts(text, "]");
}

static bool fits(const psplit_i_session_port *port, const psplit_i_tensor_view *given) {
  /* One number for one number: ONNX Runtime takes any shape where it is told of no dimension. */
  if (!port->n_dims || port->any_rank) return true;
  if (port->n_dims != given->n_dims) return false;
  for (size_t d = 0; d < port->n_dims; d++)
    if (port->dims[d] >= 0 && port->dims[d] != given->dims[d]) return false;
  return true;
}

psplit_code psplit_i_feed_fits(const psplit_i_feed *feed, const char *from,
                               const psplit_i_tensor *tensor, psplit_diag *diag) {
  const psplit_i_session_port *port = &feed->port;
  psplit_i_tensor_view given;
  psplit_code code;
  if (feed->wanted.is_sequence) return PSPLIT_OK;
  PSPLIT_TRY(psplit_i_tensor_look(tensor, diag, &given));
  if (fits(port, &given)) return PSPLIT_OK;
  psplit_i_text is = {0}, takes = {0};
  add_dims(&is, given.dims, NULL, given.n_dims);
  add_dims(&takes, port->dims, port->symbols, port->n_dims);
  psplit_i_text_add(&is, "", 1);
  psplit_i_text_add(&takes, "", 1);
  code = is.failed || takes.failed
           ? psplit_i_nomem(diag)
           : psplit_i_fail(diag, PSPLIT_INVALID, "input %s: %s has shape %s, the input is %s",
                           feed->input, from, (const char *)is.bytes, (const char *)takes.bytes);
  psplit_i_text_fini(&is);
  psplit_i_text_fini(&takes);
out:
  return code;
}
