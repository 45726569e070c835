/* The HTML format: page/page.html with its parts put in. The data is JSON in a script element that
 * no browser runs; '<' inside it is escaped, so that no name can end the element. */
#include <string.h>

#include "json_put.h"
#include "json_read.h"
#include "view.h"

static void put_cuts(psplit_i_json *json, const psplit_snapshot *s) {
  json->compact = false;
  psplit_i_json_put_open(json, "order", '[');
  json->compact = true;
  for (uint32_t g = 0; g < s->n_groups; g++) psplit_i_json_uint(json, s->order[g]);
  psplit_i_json_close(json, ']');
  psplit_i_json_put_open(json, "cut_bytes", '[');
  for (uint32_t g = 0; g < s->n_groups; g++) psplit_i_json_uint(json, s->cut_bytes[g]);
  psplit_i_json_close(json, ']');
  psplit_i_json_put_open(json, "cut_ns", '[');
  for (uint32_t g = 0; g < s->n_groups; g++) psplit_i_json_int(json, s->cut_ns[g]);
  psplit_i_json_close(json, ']');
  json->compact = false;
}

static void put_scopes(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_put_open(json, "scopes", '[');
  json->compact = true;
  for (uint32_t g = 0; g < s->n_groups; g++) psplit_i_json_string(json, s->groups[g].scope);
  psplit_i_json_close(json, ']');
  json->compact = false;
}

/* What the plan's figures rest on, beside what its JSON tells. */
static void put_basis(psplit_i_json *json, const psplit_plan *plan) {
  psplit_i_json_put_open(json, "basis", '{');
  psplit_i_json_put_string(json, "cost_source", plan->cost_source);
  psplit_i_json_put_double(json, "measured_frac", plan->measured_frac);
  psplit_i_json_put_uint(json, "unknown_operators", plan->n_unknown_nodes);
  psplit_i_json_close(json, '}');
}

static void put_plan(psplit_i_json *json, const psplit_snapshot *s) {
  psplit_i_json_open(json, '{');
  psplit_i_json_key(json, "supernodes");
  psplit_i_view_json_groups(json, s);
  psplit_i_json_key(json, "repeats");
  psplit_i_view_json_repeats(json, s);
  psplit_i_json_key(json, "notes");
  psplit_i_view_json_notes(json, s);
  psplit_i_json_key(json, "edges");
  psplit_i_view_json_edges(json, s);
  put_cuts(json, s);
  put_scopes(json, s);
  if (s->counting) {
    psplit_i_json_key(json, "counting");
    psplit_i_view_json_counting(json, s);
  }
  if (s->plan) {
    psplit_i_json_key(json, "plan");
    psplit_i_view_json_plan(json, s);
    put_basis(json, s->plan);
    psplit_i_json_key(json, "stages");
    psplit_i_view_json_stages(json, s);
    psplit_i_json_key(json, "transfers");
    psplit_i_view_json_transfers(json, s);
  }
  psplit_i_json_close(json, '}');
}

static void put_all(const psplit_snapshot *const *snapshots, size_t n, uint32_t n_micro_batches,
                    psplit_i_text *out) {
  psplit_i_json json;
  psplit_i_json_init(&json, out);
  psplit_i_json_open(&json, '{');
  psplit_i_json_put_uint(&json, "micro_batches", n_micro_batches);
  psplit_i_json_key(&json, "chosen"); /* the plan to begin with: the last */
  psplit_i_json_uint(&json, n - 1);
  psplit_i_json_key(&json, "operators");
  psplit_i_view_json_nodes(&json, snapshots[0]);
  psplit_i_json_key(&json, "tensors");
  psplit_i_view_json_values(&json, snapshots[0]);
  psplit_i_json_put_open(&json, "plans", '[');
  for (size_t i = 0; i < n; i++) put_plan(&json, snapshots[i]);
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
}

static void put_data(psplit_i_text *out, const char *at, size_t n) {
  const char *end = at + n;
  while (at < end) {
    const char *less = memchr(at, '<', (size_t)(end - at));
    const char *stop = less ? less : end;
    psplit_i_text_add(out, at, (size_t)(stop - at));
    if (less) psplit_i_text_puts(out, "\\u003c");
    at = less ? less + 1 : end;
  }
}

static void put_asset(psplit_i_text *out, const psplit_i_asset *asset) {
  psplit_i_text_add(out, asset->bytes, asset->n);
}

/* All scripts in one function, so that they have names of their own. */
static void put_script(psplit_i_text *out) {
#define PUT(name) put_asset(out, &psplit_i_asset_##name);
  psplit_i_text_puts(out, "(() => {\n'use strict';\n");
  PSPLIT_I_PAGE_SCRIPTS(PUT)
  psplit_i_text_puts(out, "})();\n");
#undef PUT
}

/* One @@WORD@@ of the template. */
static void put_part(psplit_i_text *out, const char *word, size_t n,
                     const psplit_view_options *options, const psplit_i_text *data) {
  const char *title = options->title ? options->title : "model";
  if (n == 5 && memcmp(word, "TITLE", n) == 0) psplit_i_view_html(out, title);
  if (n == 5 && memcmp(word, "STYLE", n) == 0) put_asset(out, &psplit_i_asset_page_css);
  if (n == 4 && memcmp(word, "DATA", n) == 0) put_data(out, data->bytes, data->n);
  if (n == 5 && memcmp(word, "TRACE", n) == 0) {
    if (options->trace)
      put_data(out, options->trace, options->n_trace);
    else
      psplit_i_text_puts(out, "null");
  }
  if (n == 6 && memcmp(word, "SCRIPT", n) == 0) put_script(out);
}

static const char *find_mark(const char *at, const char *end) {
  for (; at + 1 < end; at++)
    if (at[0] == '@' && at[1] == '@') return at;
  return NULL;
}

/* A trace is JSON with an array `traceEvents`; of its spans the page takes those that it knows. */
static psplit_code check_trace(const psplit_view_options *options, psplit_diag *diag) {
  psplit_i_arena arena;
  psplit_i_arena_init(&arena, 0);
  psplit_i_json_reader reader = {
    .diag = diag, .arena = &arena, .file = options->trace_name ? options->trace_name : "the trace"};
  psplit_i_json_item root = psplit_i_json_load(&reader, options->trace, options->n_trace);
  const psplit_i_json_item events = psplit_i_json_need(&root, "traceEvents");
  (void)psplit_i_json_length(&events, 0, SIZE_MAX);
  psplit_i_json_release(&root);
  psplit_i_arena_fini(&arena);
  return reader.code;
}

psplit_code psplit_i_view_page(const psplit_snapshot *const *snapshots, size_t n,
                               const psplit_view_options *options, psplit_diag *diag,
                               psplit_i_text *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text data = {0};
  if (options->trace) PSPLIT_TRY(check_trace(options, diag));
  put_all(snapshots, n, options->n_micro_batches ? options->n_micro_batches : 8, &data);
  if (data.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  const char *at = (const char *)psplit_i_asset_page_html.bytes;
  const char *end = at + psplit_i_asset_page_html.n;
  while (at < end) {
    const char *mark = find_mark(at, end);
    const char *close = mark ? find_mark(mark + 2, end) : NULL;
    if (!close) break;
    psplit_i_text_add(out, at, (size_t)(mark - at));
    put_part(out, mark + 2, (size_t)(close - mark - 2), options, &data);
    at = close + 2;
  }
  psplit_i_text_add(out, at, (size_t)(end - at));
out:
  psplit_i_text_fini(&data);
  return code;
}
