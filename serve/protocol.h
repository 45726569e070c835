/* The Open Inference Protocol, version 2 (KServe), between bytes and tensors: requests and replies
 * as JSON, with tensors in it or, by its extension for binary data, behind it. Knows no network. */
#ifndef PSPLIT_SERVE_PROTOCOL_H
#define PSPLIT_SERVE_PROTOCOL_H

#include <psplit/run_service.h>

#include "json_tree.h"

/* What a request wants of an output. */
typedef struct serve_wanted {
  const char *name;
  bool binary;
} serve_wanted;

typedef struct serve_request {
  const psplit_i_json_value *id; /* a string or an integer, which goes back; NULL: none */
  psplit_named_tensor *inputs;
  uint32_t n_inputs;
  serve_wanted *wanted; /* NULL: all outputs, as `binary` says */
  size_t n_wanted;
  bool binary;
  psplit_i_arena arena; /* all names are in it */
  void **owned;         /* [n_inputs] data that is not the body's */
} serve_request;

/* Of `body`, the first n_json bytes are JSON, the rest is binary data; `body` outlives *out.
 * Whether that is what the model takes is for psplit_service_submit. Errors: USAGE, INVALID, NOMEM.
 */
PSPLIT_MUST_USE psplit_code serve_request_parse(const char *body, size_t n_body, size_t n_json,
                                                psplit_diag *diag, serve_request *out);
void serve_request_fini(serve_request *request); /* a zeroed one is fine */

typedef struct serve_reply {
  char *bytes;      /* malloc'd */
  size_t n, n_json; /* n_json < n: binary data comes behind */
} serve_reply;

/* Errors: USAGE (an output that the model has not, or that JSON cannot hold), NOMEM. */
PSPLIT_MUST_USE psplit_code serve_reply_make(const char *model, const serve_request *request,
                                             const psplit_response *response, psplit_diag *diag,
                                             serve_reply *out);
/* {"error": message}. NULL when out of memory. */
char *serve_error_text(const char *message);
/* What the model takes and gives. NULL when out of memory. */
char *serve_metadata_text(const char *model, const psplit_pipeline_info *info);

#endif
