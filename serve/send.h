/* Answers on a connection. */
#ifndef PSPLIT_SERVE_SEND_H
#define PSPLIT_SERVE_SEND_H

#include <microhttpd.h>

#define SERVE_JSON_TYPE "application/json"
#define SERVE_HEADER_LENGTH "Inference-Header-Content-Length"

/* `bytes` are malloc'd and taken over. `n_json`: of those with binary data, else 0; `allowed`:
 * which methods are, where the one was not, else NULL. */
enum MHD_Result serve_send_bytes(struct MHD_Connection *connection, unsigned status,
                                 const char *type, char *bytes, size_t n, size_t n_json,
                                 const char *allowed);
/* The same of a text; NULL: there was no memory for it, and the connection ends. */
enum MHD_Result serve_send_text(struct MHD_Connection *connection, unsigned status,
                                const char *type, char *text);
/* An error as the protocol says it. */
enum MHD_Result serve_send_error(struct MHD_Connection *connection, unsigned status,
                                 const char *message);

#endif
