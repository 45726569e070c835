/* The HTTP server: its addresses, and how it starts and ends. */
#include "http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "address.h"
#include "http_call.h"

static void say_nothing(void *user, const char *format, va_list arguments) {
  (void)user;
  (void)format;
  (void)arguments;
}

psplit_code serve_http_check(const serve_http_options *options, psplit_diag *diag) {
  struct addrinfo *clients = NULL, *admin = NULL;
  psplit_code code = serve_address_resolve(options->listen, false, diag, &clients);
  if (code == PSPLIT_OK && options->admin)
    code = serve_address_resolve(options->admin, true, diag, &admin);
  if (clients) freeaddrinfo(clients);
  if (admin) freeaddrinfo(admin);
  return code;
}

static psplit_code listen_at(serve_entrance *at, const char *where, psplit_diag *diag) {
  const serve_http_options *o = &at->http->options;
  struct addrinfo *address = NULL;
  psplit_code code = serve_address_resolve(where, at->admin, diag, &address);
  if (code != PSPLIT_OK) return code;
  /* With poll, since select is limited to descriptors below 1024. */
  const unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                         MHD_USE_ERROR_LOG | MHD_USE_ITC |
                         (address->ai_family == AF_INET6 ? MHD_USE_IPv6 : 0);
  errno = 0;
  at->daemon =
    MHD_start_daemon(flags, 0, NULL, NULL, serve_http_handle, at, MHD_OPTION_EXTERNAL_LOGGER,
                     say_nothing, NULL, MHD_OPTION_SOCK_ADDR, address->ai_addr,
                     MHD_OPTION_CONNECTION_LIMIT, o->max_connections, MHD_OPTION_CONNECTION_TIMEOUT,
                     o->idle_s, MHD_OPTION_THREAD_POOL_SIZE, at->admin ? 0 : o->n_threads,
                     MHD_OPTION_NOTIFY_COMPLETED, serve_http_end_call, NULL, MHD_OPTION_END);
  if (!at->daemon)
    code = psplit_diag_fail(diag, PSPLIT_IO, "cannot listen at %s: %s", where,
                            errno ? strerror(errno) : "unknown reason");
  freeaddrinfo(address);
  return code;
}

static void leave(serve_entrance *at) {
  if (at->daemon) MHD_stop_daemon(at->daemon);
  if (at->listener >= 0) close(at->listener);
}

psplit_code serve_http_start(const serve_http_options *options, serve_current *current,
                             psplit_diag *diag, serve_http **out) {
  serve_http *h = calloc(1, sizeof *h);
  if (!h) return psplit_diag_fail(diag, PSPLIT_NOMEM, "out of memory");
  h->options = *options;
  h->current = current;
  h->n_model = strlen(options->model);
  h->clients = (serve_entrance){.http = h, .listener = -1};
  h->admin = (serve_entrance){.http = h, .listener = -1, .admin = true};
  psplit_code code = listen_at(&h->clients, options->listen, diag);
  if (code == PSPLIT_OK && options->admin) code = listen_at(&h->admin, options->admin, diag);
  if (code == PSPLIT_OK) {
    *out = h;
  } else {
    leave(&h->clients);
    free(h);
  }
  return code;
}

static uint16_t port_of(const serve_entrance *at) {
  const union MHD_DaemonInfo *info =
    at->daemon ? MHD_get_daemon_info(at->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
  return info ? info->port : 0;
}

uint16_t serve_http_port(const serve_http *h) { return port_of(&h->clients); }
uint16_t serve_http_admin_port(const serve_http *h) { return port_of(&h->admin); }

void serve_http_quiesce(serve_http *h) {
  atomic_store(&h->quiet, true);
  h->clients.listener = MHD_quiesce_daemon(h->clients.daemon);
  if (h->admin.daemon) h->admin.listener = MHD_quiesce_daemon(h->admin.daemon);
}

void serve_http_stop(serve_http *h, double most_s) {
  if (!h) return;
  const int64_t until_ns = serve_now_ns() + (int64_t)(1e9 * most_s);
  while (atomic_load(&h->n_calls) && serve_now_ns() < until_ns)
    nanosleep(&(struct timespec){0, 20000000}, NULL);
  leave(&h->clients);
  leave(&h->admin);
  free(h);
}
