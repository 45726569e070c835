/* What the page counts other splits from, as JSON; docs/inspect.md has the rules. What is the same
 * for nearly all is a list of the others. */
#include "json_put.h"
#include "view.h"

typedef psplit_i_json json;

static void open_list(json *j, const char *key) {
  j->compact = false;
  psplit_i_json_put_open(j, key, '[');
  j->compact = true;
}

static void close_list(json *j) {
  psplit_i_json_close(j, ']');
  j->compact = false;
}

static void key_uint(json *j, const char *key, uint64_t number) {
  psplit_i_json_put_uint(j, key, number);
}

static void put_uints(json *j, const char *key, const uint32_t *numbers, size_t n) {
  open_list(j, key);
  for (size_t i = 0; i < n; i++) psplit_i_json_uint(j, numbers[i]);
  close_list(j);
}

static void put_times(json *j, const char *key, const int64_t *ns, size_t n) {
  open_list(j, key);
  for (size_t i = 0; i < n; i++) psplit_i_json_int(j, ns[i]);
  close_list(j);
}

static void put_flagged(json *j, const char *key, const uint8_t *flags, size_t n) {
  open_list(j, key);
  for (size_t i = 0; i < n; i++)
    if (flags[i]) psplit_i_json_uint(j, i);
  close_list(j);
}

/* [supernode, number] */
static void put_marked(json *j, const char *key, const uint32_t *mark, uint32_t n) {
  open_list(j, key);
  for (uint32_t g = 0; g < n; g++) {
    if (mark[g] == PSPLIT_NONE) continue;
    psplit_i_json_open(j, '[');
    psplit_i_json_uint(j, g);
    psplit_i_json_uint(j, mark[g]);
    psplit_i_json_close(j, ']');
  }
  close_list(j);
}

static void put_groups(json *j, const psplit_snapshot *s) {
  const psplit_snapshot_counting *c = s->counting;
  put_uints(j, "stage_class", c->stage_class, s->n_stages);
  put_times(j, "supernode_ns", c->group_ns, (size_t)c->n_classes * s->n_groups);
  put_flagged(j, "refused", c->group_refused, (size_t)c->n_classes * s->n_groups);
  put_marked(j, "pinned", c->group_pin, s->n_groups);
  put_marked(j, "together", c->group_together, s->n_groups);
  put_marked(j, "state", c->group_state, s->n_groups);
  psplit_i_json_key(j, "coarsened");
  psplit_i_json_bool(j, c->coarsened);
}

/* null: there is no way */
static void put_ways(json *j, const uint32_t *next_hop, size_t n) {
  open_list(j, "next_hop");
  for (size_t i = 0; i < n; i++)
    if (next_hop[i] == PSPLIT_NONE)
      psplit_i_json_null(j);
    else
      psplit_i_json_uint(j, next_hop[i]);
  close_list(j);
}

static void put_links(json *j, const psplit_snapshot *s) {
  const psplit_snapshot_counting *c = s->counting;
  const size_t n = (size_t)s->n_stages * s->n_stages;
  put_times(j, "latency_ns", c->link_latency_ns, n);
  open_list(j, "bytes_per_second"); /* null: at once */
  for (size_t i = 0; i < n; i++) psplit_i_json_double(j, c->link_bytes_per_second[i]);
  close_list(j);
  psplit_i_json_key(j, "may_pass_on");
  psplit_i_json_bool(j, c->may_pass_on);
  psplit_i_json_key(j, "slack_frac");
  psplit_i_json_double(j, c->slack_frac);
  if (c->next_hop) put_ways(j, c->next_hop, n);
}

static void put_prices(json *j, const psplit_snapshot_counting *c) {
  const size_t n = c->n_prices, n_times = n * c->n_classes;
  put_uints(j, "price_maker", c->price_maker, n);
  open_list(j, "price_end");
  for (size_t i = 0; i < n; i++) psplit_i_json_uint(j, c->price_off[i + 1]);
  close_list(j);
  put_uints(j, "price_reader", c->price_reader, n ? c->price_off[n] : 0);
  put_times(j, "price_recv_ns", c->price_recv_ns, n_times);
  put_times(j, "price_send_ns", c->price_send_ns, n_times);
}

static void put_memory(json *j, const psplit_snapshot *s) {
  const psplit_snapshot_counting *c = s->counting;
  put_flagged(j, "unsendable", c->unsendable, s->n_values);
  open_list(j, "copies");
  for (uint32_t v = 0; v < s->n_values; v++) psplit_i_json_uint(j, c->value_copies[v]);
  close_list(j);
  put_uints(j, "copies_percent", c->copies_percent, c->n_copies_percent);
  open_list(j, "bodies"); /* [operator, operators, has bodies, bytes of constants, of copies] */
  for (uint32_t n = 0; n < s->n_nodes; n++) {
    if (c->node_nodes[n] == 1 && !c->node_has_bodies[n] && !c->node_bytes[n]) continue;
    psplit_i_json_open(j, '[');
    psplit_i_json_uint(j, n);
    psplit_i_json_uint(j, c->node_nodes[n]);
    psplit_i_json_uint(j, c->node_has_bodies[n]);
    psplit_i_json_uint(j, c->node_bytes[n]);
    psplit_i_json_uint(j, c->node_copies_bytes[n]);
    psplit_i_json_close(j, ']');
  }
  close_list(j);
  open_list(j, "workspace"); /* [operator, bytes] */
  for (uint32_t n = 0; n < s->n_nodes; n++) {
    if (!c->node_workspace_bytes[n]) continue;
    psplit_i_json_open(j, '[');
    psplit_i_json_uint(j, n);
    psplit_i_json_uint(j, c->node_workspace_bytes[n]);
    psplit_i_json_close(j, ']');
  }
  close_list(j);
  open_list(j, "stage_workspace_bytes");
  for (uint32_t k = 0; k < s->n_stages; k++) psplit_i_json_uint(j, c->stage_workspace_bytes[k]);
  close_list(j);
  put_flagged(j, "keeps_copies", c->stage_keeps_copies, s->n_stages);
}

/* [output, input, one buffer] */
static void put_states(json *j, const psplit_snapshot *s) {
  open_list(j, "states");
  for (uint32_t i = 0; i < s->n_states; i++) {
    psplit_i_json_open(j, '[');
    psplit_i_json_uint(j, s->states[i].output);
    psplit_i_json_uint(j, s->states[i].input);
    psplit_i_json_uint(j, s->states[i].shared_buffer);
    psplit_i_json_close(j, ']');
  }
  close_list(j);
}

void psplit_i_view_json_counting(psplit_i_json *j, const psplit_snapshot *s) {
  const psplit_snapshot_counting *c = s->counting;
  psplit_i_json_open(j, '{');
  psplit_i_json_key(j, "uncounted"); /* why; null: all is here */
  if (c->refused)
    psplit_i_json_string(j, c->refused);
  else
    psplit_i_json_null(j);
  if (!c->refused) {
    put_groups(j, s);
    put_links(j, s);
    put_prices(j, c);
    put_memory(j, s);
    put_states(j, s);
    put_uints(j, "topological", s->topo, s->n_nodes);
    key_uint(j, "queue_depth", c->queue_depth);
    key_uint(j, "sequences", c->n_sequences);
    psplit_i_json_put_bool(j, "inline_weights", c->inline_weights);
    key_uint(j, "body_percent", c->body_percent);
    key_uint(j, "arena_percent", c->arena_percent);
    key_uint(j, "outside_bytes", c->outside_bytes);
    key_uint(j, "session_bytes", c->session_bytes);
    key_uint(j, "operator_bytes", c->operator_bytes);
  }
  psplit_i_json_close(j, '}');
}
