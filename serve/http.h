/* The HTTP server: routes and limits. libmicrohttpd implements the protocol. */
#ifndef PSPLIT_SERVE_HTTP_H
#define PSPLIT_SERVE_HTTP_H

#include "current.h"
#include "metrics.h"

typedef struct serve_http serve_http;

typedef struct serve_http_options {
  const char *listen; /* ADDRESS:PORT in numbers; [ADDRESS]:PORT for IPv6; port 0: any free port */
  const char *admin;  /* likewise, a loopback address whose clients may reload the split; or NULL */
  const char *model;  /* name of the model in paths */
  uint64_t max_body_bytes;
  uint64_t max_memory_bytes; /* of all bodies, where JSON counts 32 times its size */
  uint32_t max_connections, n_threads;
  uint32_t idle_s; /* time after which an idle connection is closed */
} serve_http_options;

/* Checks the syntax of the addresses, before the stages are opened. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code serve_http_check(const serve_http_options *options, psplit_diag *diag);
/* Starts the server. The arguments must outlive *out. Errors: USAGE (the address), IO (it is in
 * use), NOMEM. */
PSPLIT_MUST_USE psplit_code serve_http_start(const serve_http_options *options,
                                             serve_current *current, psplit_diag *diag,
                                             serve_http **out);
/* The ports that the server listens at; 0: it does not. */
uint16_t serve_http_port(const serve_http *http);
uint16_t serve_http_admin_port(const serve_http *http);
/* Refuses new connections, and reports that the server is not ready. */
void serve_http_quiesce(serve_http *http);
/* Call this after the service has stopped. Waits at most most_s seconds until all responses are
 * sent. */
void serve_http_stop(serve_http *http, double most_s); /* NULL is fine */

#endif
