/* One HTTP request: its body is read, then a service answers it or the server itself. */
#include "http_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "protocol.h"
#include "send.h"

static const char BINARY_TYPE[] = "application/octet-stream",
                  METRICS_TYPE[] = "text/plain; version=0.0.4";

enum { TOO_LARGE = 413 }; /* a constant whose name differs between versions of the library */

/* Why a request is refused before it is executed. */
typedef struct refusal {
  unsigned status; /* of HTTP; 0: it is not refused */
  const char *why;
  const char *allowed; /* methods of the header Allow, or NULL */
} refusal;

/* One HTTP request. */
typedef struct call {
  serve_http *http;
  struct MHD_Connection *connection;
  enum { READS, WAITS, ANSWERED } state;
  bool infers, reloads;
  serve_model *model; /* held: the split that executes the request */
  char *body;
  size_t n, capacity;
  uint64_t cost;      /* the request's part of http->memory_bytes */
  refusal refused;    /* if so, the rest of the body is discarded */
  uint64_t n_dropped; /* bytes of the body that were discarded */
  int64_t began_ns;
  serve_request request;
  const psplit_response *response; /* held; NULL: the answer is `status` with `text` */
  unsigned status;
  char *text; /* malloc'd */
} call;

/* The value of a header of the request, or NULL. */
static const char *header(const call *c, const char *name) {
  return MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}

static const refusal LARGE = {TOO_LARGE, "the body is larger than the server takes", NULL},
                     LARGE_JSON = {TOO_LARGE,
                                   "this is more JSON than the server takes: send binary data",
                                   NULL},
                     NO_ROOM = {MHD_HTTP_SERVICE_UNAVAILABLE, "too much is being read: try again",
                                NULL};

int64_t serve_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static enum MHD_Result send_refusal(struct MHD_Connection *connection, const refusal *refused) {
  char *text = serve_error_text(refused->why);
  if (!text) return MHD_NO;
  return serve_send_bytes(connection, refused->status, SERVE_JSON_TYPE, text, strlen(text), 0,
                          refused->allowed);
}

static unsigned status_of(psplit_code code, bool accepted) {
  switch (code) {
    case PSPLIT_USAGE:
    case PSPLIT_UNSUPPORTED: return MHD_HTTP_BAD_REQUEST;
    case PSPLIT_INVALID: return accepted ? MHD_HTTP_INTERNAL_SERVER_ERROR : MHD_HTTP_BAD_REQUEST;
    case PSPLIT_LIMIT: return accepted ? MHD_HTTP_GATEWAY_TIMEOUT : MHD_HTTP_SERVICE_UNAVAILABLE;
    case PSPLIT_IO:
    case PSPLIT_NOMEM: return MHD_HTTP_SERVICE_UNAVAILABLE;
    default: return MHD_HTTP_INTERNAL_SERVER_ERROR;
  }
}

static void set_failure(call *c, psplit_code code, bool accepted, const char *message) {
  c->status = status_of(code, accepted);
  c->text = serve_error_text(message);
}

/* A psplit_respond: passes the response to the thread of the connection. */
static void respond(void *user, const psplit_response *response) {
  call *c = user;
  if (response->code == PSPLIT_OK) {
    psplit_response_keep(response);
    c->response = response;
    atomic_fetch_add(&c->http->metrics.n_good, 1);
  } else {
    atomic_fetch_add(&c->http->metrics.n_failed, 1);
    set_failure(c, response->code, true, response->message);
  }
  MHD_resume_connection(c->connection);
}

/* Size of the JSON part of the body. Returns false if the header is not a number, or exceeds the
 * body. */
static bool json_length(call *c, size_t *out) {
  const char *text = header(c, SERVE_HEADER_LENGTH);
  *out = c->n;
  if (!text) return true;
  char *end;
  const unsigned long long n = strtoull(text, &end, 10);
  if (*text < '0' || *end || n > c->n)
    return false; /* strtoull also accepts a sign and leading space */
  *out = (size_t)n;
  return true;
}

/* Reserves memory of the pool that all bodies share. If it fails, the client can retry later. */
static bool reserve(call *c, uint64_t bytes) {
  serve_http *h = c->http;
  if (atomic_fetch_add(&h->memory_bytes, bytes) + bytes > h->options.max_memory_bytes) {
    atomic_fetch_sub(&h->memory_bytes, bytes);
    return false;
  }
  c->cost += bytes;
  return true;
}

static psplit_code parse(call *c, psplit_diag *diag) {
  enum { JSON_COST = 32 }; /* memory per byte of JSON: a value of two bytes takes about 64 */
  size_t n_json;
  if (!json_length(c, &n_json))
    return psplit_diag_fail(diag, PSPLIT_USAGE, "%s is no length within the body",
                            SERVE_HEADER_LENGTH);
  if (JSON_COST * (uint64_t)n_json + c->cost > c->http->options.max_memory_bytes) {
    c->refused = LARGE_JSON; /* a retry would fail as well */
    return psplit_diag_fail(diag, PSPLIT_USAGE, "%s", c->refused.why);
  }
  if (!reserve(c, JSON_COST * (uint64_t)n_json))
    return psplit_diag_fail(diag, PSPLIT_NOMEM, "%s", NO_ROOM.why);
  return serve_request_parse(c->body, c->n, n_json, diag, &c->request);
}

/* Submits the request to the current split, or to its successor if it is replaced meanwhile. */
static psplit_code submit(call *c, const psplit_request *request, psplit_diag *diag) {
  serve_current *current = c->http->current;
  for (;;) {
    c->model = serve_current_hold(current);
    const psplit_code code =
      psplit_service_submit(serve_model_service(c->model), request, diag, NULL);
    if (code != PSPLIT_IO || serve_current_is(current, c->model)) return code;
    serve_model_release(c->model);
    *diag = (psplit_diag){0};
  }
}

/* Starts inference, once the body is complete. */
static void infer(call *c) {
  psplit_diag diag = {0};
  psplit_request request;
  c->began_ns = serve_now_ns(); /* how fast the body came is the client's */
  psplit_code code = parse(c, &diag);
  psplit_request_init(&request);
  request.inputs = c->request.inputs;
  request.n_inputs = c->request.n_inputs;
  request.respond = respond;
  request.user = c;
  c->state = WAITS;
  MHD_suspend_connection(c->connection); /* before the response can arrive */
  if (code == PSPLIT_OK) code = submit(c, &request, &diag);
  if (code == PSPLIT_OK) return;
  serve_metrics *m = &c->http->metrics;
  const bool no_room = code == PSPLIT_LIMIT || code == PSPLIT_NOMEM;
  atomic_fetch_add(no_room ? &m->n_no_room : &m->n_bad, 1);
  set_failure(c, code, false, diag.message);
  if (c->refused.status) c->status = c->refused.status;
  MHD_resume_connection(c->connection);
}

/* A serve_reloaded. */
static void reloaded(void *user, psplit_code code, const psplit_diag *diag) {
  call *c = user;
  c->status = code == PSPLIT_OK ? MHD_HTTP_OK : MHD_HTTP_INTERNAL_SERVER_ERROR;
  c->text = code == PSPLIT_OK ? strdup("{}") : serve_error_text(diag->message);
  MHD_resume_connection(c->connection);
}

static void begin_reload(call *c) {
  c->state = WAITS;
  MHD_suspend_connection(c->connection);
  if (serve_current_reload(c->http->current, reloaded, c)) return;
  c->status = MHD_HTTP_SERVICE_UNAVAILABLE;
  c->text = serve_error_text("the server ends");
  MHD_resume_connection(c->connection);
}

static enum MHD_Result answer(call *c) {
  psplit_diag diag = {0};
  serve_reply reply;
  c->state = ANSWERED;
  if (c->infers) serve_metrics_add(&c->http->metrics, serve_now_ns() - c->began_ns);
  if (!c->response) {
    char *text = c->text;
    c->text = NULL;
    return serve_send_text(c->connection, c->status, SERVE_JSON_TYPE, text);
  }
  const psplit_code code =
    serve_reply_make(c->http->options.model, &c->request, c->response, &diag, &reply);
  if (code != PSPLIT_OK)
    return serve_send_error(c->connection, status_of(code, false), diag.message);
  const bool binary = reply.n != reply.n_json;
  return serve_send_bytes(c->connection, MHD_HTTP_OK, binary ? BINARY_TYPE : SERVE_JSON_TYPE,
                          reply.bytes, reply.n, binary ? reply.n_json : 0, NULL);
}

/* The path of a request target, which has scheme and host if it is in absolute form (RFC 9112,
 * 3.2.2). */
static const char *path_of(const char *url) {
  static const char *const SCHEMES[] = {"http://", "https://"};
  for (size_t i = 0; i < sizeof SCHEMES / sizeof *SCHEMES; i++) {
    const size_t n = strlen(SCHEMES[i]);
    if (strncasecmp(url, SCHEMES[i], n) != 0) continue;
    const char *path = strchr(url + n, '/');
    return path ? path : "/";
  }
  return url;
}

/* The rest of a path after the name of the model; NULL: the path is not one of the model. */
static const char *behind_model(const serve_http *h, const char *url) {
  static const char PREFIX[] = "/v2/models/", VERSION[] = "/versions/1";
  if (strncmp(url, PREFIX, sizeof PREFIX - 1) != 0) return NULL;
  url += sizeof PREFIX - 1;
  if (strncmp(url, h->options.model, h->n_model) != 0) return NULL;
  url += h->n_model;
  if (strncmp(url, VERSION, sizeof VERSION - 1) == 0) url += sizeof VERSION - 1;
  return *url == '/' || !*url ? url : NULL;
}

static bool is_ready(serve_http *h) {
  return !atomic_load(&h->quiet) && serve_current_is_ready(h->current);
}

static enum MHD_Result send_health(struct MHD_Connection *connection, bool good) {
  return serve_send_text(connection, good ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                         SERVE_JSON_TYPE, strdup(good ? "{\"ready\":true}" : "{\"ready\":false}"));
}

static enum MHD_Result send_metadata(serve_http *h, struct MHD_Connection *connection) {
  serve_model *model = serve_current_hold(h->current);
  char *text = serve_metadata_text(h->options.model, serve_model_info(model));
  serve_model_release(model);
  return serve_send_text(connection, MHD_HTTP_OK, SERVE_JSON_TYPE, text);
}

static enum MHD_Result get(serve_http *h, struct MHD_Connection *connection, const char *url) {
  static const char SERVER[] =
    "{\"name\":\"onnx-pipeline-serve\",\"version\":\"" PSPLIT_SERVE_VERSION
    "\",\"extensions\":[\"binary_tensor_data\"]}";
  const char *rest = behind_model(h, url);
  if (strcmp(url, "/v2/health/live") == 0) return send_health(connection, true);
  if (strcmp(url, "/v2/health/ready") == 0 || (rest && strcmp(rest, "/ready") == 0))
    return send_health(connection, is_ready(h));
  if (strcmp(url, "/v2") == 0 || strcmp(url, "/v2/") == 0)
    return serve_send_text(connection, MHD_HTTP_OK, SERVE_JSON_TYPE, strdup(SERVER));
  if (strcmp(url, "/metrics") == 0)
    return serve_send_text(connection, MHD_HTTP_OK, METRICS_TYPE,
                           serve_metrics_text(&h->metrics, h->current));
  if (rest && !*rest) return send_metadata(h, connection);
  return serve_send_error(connection, MHD_HTTP_NOT_FOUND, "not found");
}

/* Whether the path is that of a load request, of the protocol's model repository extension. */
static bool is_load(const serve_http *h, const char *url) {
  static const char PREFIX[] = "/v2/repository/models/";
  const size_t n = sizeof PREFIX - 1;
  return strncmp(url, PREFIX, n) == 0 && strncmp(url + n, h->options.model, h->n_model) == 0 &&
         strcmp(url + n + h->n_model, "/load") == 0;
}

/* An MHD_KeyValueIterator: counts headers of the length of the body. */
static enum MHD_Result count_length(void *user, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
  int *n = user;
  (void)kind;
  (void)value;
  *n += strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
  return MHD_YES;
}

/* Whether the length of the body is told twice: a proxy might take the other one, and see another
 * request in what is left of it (RFC 9112, 6.3). */
static bool has_two_lengths(const call *c) {
  int n = header(c, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
  MHD_get_connection_values(c->connection, MHD_HEADER_KIND, count_length, &n);
  return n > 1;
}

/* Classifies a request by its headers, before its body is read. */
static refusal look(call *c, const serve_entrance *at, const char *method, const char *url) {
  const serve_http *h = c->http;
  const char *rest = behind_model(h, url);
  const bool posts = strcmp(method, MHD_HTTP_METHOD_POST) == 0;
  c->infers = rest && strcmp(rest, "/infer") == 0;
  c->reloads = at->admin && is_load(h, url);
  if (has_two_lengths(c))
    return (refusal){MHD_HTTP_BAD_REQUEST, "the length of the body is told twice", NULL};
  if (posts && !c->infers && !c->reloads) return (refusal){MHD_HTTP_NOT_FOUND, "not found", NULL};
  if (!posts &&
      (c->infers || c->reloads ||
       (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)))
    return (refusal){MHD_HTTP_METHOD_NOT_ALLOWED, "this method does nothing here",
                     c->infers || c->reloads ? "POST" : "GET, HEAD"};
  const char *encoding = header(c, MHD_HTTP_HEADER_CONTENT_ENCODING);
  if (c->infers && encoding && strcasecmp(encoding, "identity") != 0)
    return (refusal){MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "bodies are read as they are: compress none",
                     NULL};
  const char *length = header(c, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return length && strtoull(length, NULL, 10) > h->options.max_body_bytes ? LARGE : (refusal){0};
}

/* Appends to the body, or returns why that is refused. */
static refusal add(call *c, const char *data, size_t n) {
  const uint64_t most = c->http->options.max_body_bytes;
  if (n > most - c->n) return LARGE;
  if (c->capacity - c->n < n + 1) {
    const size_t capacity = 2 * c->capacity + n + 1;
    if (capacity > c->http->options.max_memory_bytes) return LARGE;
    if (!reserve(c, capacity - c->capacity)) return NO_ROOM;
    char *grown = realloc(c->body, capacity);
    if (!grown) return NO_ROOM;
    c->body = grown;
    c->capacity = capacity;
  }
  memcpy(c->body + c->n, data, n);
  c->n += n;
  return (refusal){0};
}

/* Takes a part of the body. As HTTP requires, a refusal is sent after the body, which is read to
 * its end. Returns false if a refused body exceeds the limit. */
static bool take_part(call *c, const char *data, size_t n) {
  if (!c->infers) return true; /* the body of a GET is ignored */
  if (c->refused.status) {
    c->n_dropped += n;
    return c->n_dropped <= c->http->options.max_body_bytes;
  }
  c->refused = add(c, data, n);
  if (!c->refused.status) return true;
  serve_metrics *m = &c->http->metrics;
  atomic_fetch_add(c->refused.status == TOO_LARGE ? &m->n_bad : &m->n_no_room, 1);
  atomic_fetch_sub(&c->http->memory_bytes, c->cost);
  free(c->body);
  c->body = NULL;
  c->cost = 0;
  return true;
}

enum MHD_Result serve_http_handle(void *user, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *io_n, void **io_call) {
  const serve_entrance *at = user;
  serve_http *h = at->http;
  call *c = *io_call;
  (void)version;
  url = path_of(url);
  if (!c) {
    c = *io_call = calloc(1, sizeof *c);
    if (!c) return MHD_NO;
    atomic_fetch_add(&h->n_calls, 1);
    *c = (call){.http = h, .connection = connection};
    const refusal refused = look(c, at, method, url);
    if (refused.status) atomic_fetch_add(&h->metrics.n_bad, 1);
    return refused.status ? send_refusal(connection, &refused) : MHD_YES;
  }
  if (*io_n) {
    const bool good = take_part(c, data, *io_n);
    *io_n = 0;
    return good ? MHD_YES : MHD_NO;
  }
  if (c->state == WAITS) return answer(c);
  if (c->refused.status) return send_refusal(connection, &c->refused);
  if (!c->infers && !c->reloads) return get(h, connection, url);
  if (c->infers)
    infer(c);
  else
    begin_reload(c);
  return MHD_YES;
}

void serve_http_end_call(void *user, struct MHD_Connection *connection, void **io_call,
                         enum MHD_RequestTerminationCode code) {
  call *c = *io_call;
  (void)user;
  (void)connection;
  (void)code;
  if (!c) return;
  atomic_fetch_sub(&c->http->memory_bytes, c->cost);
  atomic_fetch_sub(&c->http->n_calls, 1);
  serve_request_fini(&c->request);
  psplit_response_release(c->response);
  serve_model_release(c->model); /* destroys a replaced split after its last request */
  free(c->text);
  free(c->body);
  free(c);
  *io_call = NULL;
}
