/* Open Inference Protocol, version 2 (KServe): conversion between bytes and tensors. Requests and
 * replies are JSON, with tensors in it or, by the binary data extension, after it. Independent of
 * the network. */
#ifndef PSPLIT_SERVE_PROTOCOL_H
#define PSPLIT_SERVE_PROTOCOL_H

#include <psplit/run_service.h>

#include "json_tree.h"

/* A requested output. */
typedef struct serve_wanted {
  const char *name;
  bool binary;
} serve_wanted;

typedef struct serve_request {
  const psplit_i_json_value *id; /* a string or an integer, returned in the reply; NULL: none */
  psplit_named_tensor *inputs;
  uint32_t n_inputs;
  serve_wanted *wanted; /* NULL: all outputs, as `binary` says */
  size_t n_wanted;
  bool binary;
  psplit_i_arena arena; /* all names are in it */
  void **owned;         /* [n_inputs] data that is not the body's */
} serve_request;

/* The first n_json bytes of `body` are JSON, the rest is binary data; `body` must outlive *out.
 * psplit_service_submit checks it against the model. Errors: USAGE, INVALID, NOMEM. */
PSPLIT_MUST_USE psplit_code serve_request_parse(const char *body, size_t n_body, size_t n_json,
                                                psplit_diag *diag, serve_request *out);
void serve_request_fini(serve_request *request); /* a zeroed one is fine */

typedef struct serve_reply {
  char *bytes;      /* malloc'd */
  size_t n, n_json; /* n_json < n: followed by binary data */
} serve_reply;

/* Errors: USAGE (an unknown output, or one that JSON cannot represent), NOMEM. */
PSPLIT_MUST_USE psplit_code serve_reply_make(const char *model, const serve_request *request,
                                             const psplit_response *response, psplit_diag *diag,
                                             serve_reply *out);
/* {"error": message}. NULL when out of memory. */
char *serve_error_text(const char *message);
/* Metadata: inputs and outputs of the model. NULL when out of memory. */
char *serve_metadata_text(const char *model, const psplit_pipeline_info *info);

#endif
