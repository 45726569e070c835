/* HTTP in front of a service: routes, limits, bodies. libmicrohttpd does the protocol. */
#ifndef PSPLIT_SERVE_HTTP_H
#define PSPLIT_SERVE_HTTP_H

#include "current.h"
#include "metrics.h"

typedef struct serve_http serve_http;

typedef struct serve_http_options {
  const char *listen; /* ADDRESS:PORT, numbers; [ADDRESS]:PORT for IPv6. Port 0: any */
  const char *admin;  /* the same, of the loopback, where the split can be reloaded too; or NULL */
  const char *model;  /* its name in paths */
  uint64_t max_body_bytes;
  uint64_t max_memory_bytes; /* that bodies under way may take, JSON 32 times its size */
  uint32_t max_connections, n_threads;
  uint32_t idle_s; /* a connection on which nothing moves so long is closed */
} serve_http_options;

/* Whether the addresses are such, before the stages are opened. Errors: USAGE. */
PSPLIT_MUST_USE psplit_code serve_http_check(const serve_http_options *options, psplit_diag *diag);
/* Begins to answer. All that is given outlives *out. Errors: USAGE (the address), IO (it is taken),
 * NOMEM. */
PSPLIT_MUST_USE psplit_code serve_http_start(const serve_http_options *options,
                                             serve_current *current, psplit_diag *diag,
                                             serve_http **out);
/* The ports that it listens at; 0: there is no such. */
uint16_t serve_http_port(const serve_http *http);
uint16_t serve_http_admin_port(const serve_http *http);
/* New connections are refused, and the server says that it is not ready. */
void serve_http_quiesce(serve_http *http);
/* Once the service has stopped: waits at most so long until all answers are sent. */
void serve_http_stop(serve_http *http, double most_s); /* NULL is fine */

#endif
