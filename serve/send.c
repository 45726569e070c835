#include "send.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"

enum MHD_Result serve_send_bytes(struct MHD_Connection *connection, unsigned status,
                                 const char *type, char *bytes, size_t n, size_t n_json,
                                 const char *allowed) {
  struct MHD_Response *response = MHD_create_response_from_buffer(n, bytes, MHD_RESPMEM_MUST_FREE);
  char length[32];
  if (!response) {
    free(bytes);
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
    MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
  snprintf(length, sizeof length, "%zu", n_json);
  if (n_json) MHD_add_response_header(response, SERVE_HEADER_LENGTH, length);
  if (allowed) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowed);
  const enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

enum MHD_Result serve_send_text(struct MHD_Connection *connection, unsigned status,
                                const char *type, char *text) {
  if (!text) return MHD_NO; /* out of memory: the connection ends */
  return serve_send_bytes(connection, status, type, text, strlen(text), 0, NULL);
}

enum MHD_Result serve_send_error(struct MHD_Connection *connection, unsigned status,
                                 const char *message) {
  return serve_send_text(connection, status, SERVE_JSON_TYPE, serve_error_text(message));
}
