/* Requests of the HTTP server, for http.c: callbacks of libmicrohttpd and the state that they share
 * with it. */
#ifndef PSPLIT_SERVE_HTTP_CALL_H
#define PSPLIT_SERVE_HTTP_CALL_H

#include <microhttpd.h>

#include "http.h"

/* An address that the server listens at. */
typedef struct serve_entrance {
  serve_http *http;
  struct MHD_Daemon *daemon; /* NULL: the server does not listen there */
  int listener;              /* the socket that MHD_quiesce_daemon returned, or -1 */
  bool admin;                /* its clients may reload the split */
} serve_entrance;

struct serve_http {
  serve_http_options options;
  serve_current *current;
  serve_metrics metrics;
  serve_entrance clients, admin;
  atomic_bool quiet;             /* the server is shutting down */
  _Atomic uint64_t memory_bytes; /* of the bodies of all requests */
  atomic_uint n_calls;           /* requests that have not ended */
  size_t n_model;                /* length of options.model */
};

/* CLOCK_MONOTONIC. */
int64_t serve_now_ns(void);

/* An MHD_AccessHandlerCallback, whose `user` is the serve_entrance. */
enum MHD_Result serve_http_handle(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *io_n, void **io_call);
/* An MHD_RequestCompletedCallback: frees what the request holds. */
void serve_http_end_call(void *user, struct MHD_Connection *connection, void **io_call,
                         enum MHD_RequestTerminationCode code);

#endif
