/* Certificates: a split, a bound, and what proves the bound, as lines of text that a checker reads
 * which shares nothing with this library. docs/certificates.md has the format and the theorems.
 *
 * A proof is looked for anew, with the bound that is known as its aim; solvers and bounds need not
 * remember how they came to it. */
#include "certificate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "case_proof.h"
#include "cells.h"
#include "device_merge.h"
#include "digest.h"
#include "messages.h"
#include "node_proof.h"
#include "problem.h"
#include "reductions.h"
#include "route.h"
#include "text.h"

enum {
  MAX_NODES = 1 << 16, /* above which only totals are certified */
  MAX_CLUSTERS = 1 << 13,
  MAX_CELLS = 1 << 13,
  MAX_CUTS = 64
};

/* How messages count in a proof: those of a trunk, as a part of its tensors' times; one at least
 * for each stage that sends any, and for each that receives; these, and what stages pass on. */
typedef enum messages { OF_TRUNK, AT_LEAST, ANY_WAY } messages;

typedef struct builder {
  const psplit_problem *problem; /* as given */
  psplit_problem merged;         /* with devices that are alike as one, and as `counted` */
  messages counted;
  const psplit_partition_options *options;
  psplit_i_budget *budget;
  psplit_i_arena arena;
  psplit_diag *diag;
  psplit_i_text proof; /* lines of the best proof */
  int64_t bound;       /* that it proves */
  messages proved_with;
} builder;

/* The instance in which something is proved. */
typedef struct reduced {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_merge_log log;
  uint32_t *parent; /* [n_nodes] */
} reduced;

static bool is_plain(const builder *b) {
  return b->options->chunks == 1 && !b->options->noncontiguous &&
         b->options->objective == PSPLIT_THROUGHPUT;
}

static void reduced_fini(reduced *r) {
  psplit_i_automaton_fini(&r->automaton);
  psplit_i_instance_fini(&r->instance);
  psplit_i_vec_fini(&r->log.merges);
}

static psplit_code bind_automaton(builder *b, reduced *r, bool no_empty_stages) {
  psplit_partition_options options = *b->options;
  options.require_nonempty = no_empty_stages;
  psplit_i_automaton_fini(&r->automaton);
  return psplit_i_automaton_init(&r->automaton, &r->instance, &options, b->diag);
}

/* Both rules in turn, until nothing changes: the limit rule reads weights that rule M changes. */
static psplit_code reduce(builder *b, reduced *r, int64_t limit, bool no_empty_stages) {
  enum { MAX_TURNS = 8 };
  psplit_code code = PSPLIT_OK;
  for (int turn = 0; turn < MAX_TURNS && code == PSPLIT_OK; turn++) {
    const uint32_t before = r->instance.n;
    code = psplit_i_reduce_logged(&r->instance, &r->automaton, turn ? limit : PSPLIT_I_INF,
                                  r->parent, &r->log, b->budget, b->diag);
    if (code == PSPLIT_OK && r->instance.n < before) code = bind_automaton(b, r, no_empty_stages);
    if (turn > 0 && r->instance.n == before) break;
  }
  return code;
}

/* limit < 0: without reductions. */
static psplit_code reduced_init(builder *b, reduced *r, int64_t limit, bool no_empty_stages) {
  *r = (reduced){0};
  psplit_code code = b->options->noncontiguous
                       ? psplit_i_instance_init_unordered(&r->instance, &b->merged, NULL, b->diag)
                       : psplit_i_instance_init(&r->instance, &b->merged, NULL, b->diag);
  if (code != PSPLIT_OK) return code;
  r->parent = psplit_i_arena_array(&b->arena, b->merged.n_nodes, sizeof *r->parent);
  if (!r->parent) return psplit_i_nomem(b->diag);
  for (uint32_t v = 0; v < b->merged.n_nodes; v++) r->parent[v] = v;
  code = bind_automaton(b, r, no_empty_stages);
  return code == PSPLIT_OK && limit >= 0 ? reduce(b, r, limit, no_empty_stages) : code;
}

static uint32_t node_of(const reduced *r, uint32_t cluster) {
  uint32_t v = 0;
  while (r->instance.cluster_of_node[v] != cluster) v++;
  return v;
}

static void write_merges(const reduced *r, psplit_i_text *out) {
  uint32_t round = PSPLIT_NONE;
  for (size_t k = 0; k < r->log.merges.n; k++) {
    const psplit_i_merge *m = &r->log.merges.items[k];
    if (m->round != round) psplit_i_text_puts(out, "round\n");
    round = m->round;
    psplit_i_text_addf(out, "%s %" PRIu32 " %" PRIu32 "\n", m->by_limit ? "limit" : "join", m->node,
                       m->with);
  }
}

static psplit_code take_proof(builder *b, int64_t bound, psplit_i_text *text) {
  if (text->failed) return PSPLIT_NOMEM;
  psplit_i_text_fini(&b->proof);
  b->proof = *text;
  b->bound = bound;
  b->proved_with = b->counted;
  *text = (psplit_i_text){0};
  return PSPLIT_OK;
}

/* --- totals --- */

/* Whether loads up to `limit` leave room for all, by total and heaviest cluster. */
static bool has_room(const reduced *r, const psplit_i_cells *scales, int64_t limit) {
  const psplit_i_automaton *m = &r->automaton;
  __int128 room = 0;
  for (uint32_t t = 0; t < m->n_types; t++) {
    const int64_t n = (int64_t)m->count[t], up = scales->scale_up[t], down = scales->scale_down[t];
    room += (__int128)limit * down / up * n;
  }
  if (room < m->total_omega) return false;
  for (uint32_t i = 0; i < r->instance.n; i++)
    if (limit < m->omega[i]) return false;
  return true;
}

static psplit_code prove_totals(builder *b) {
  psplit_i_text text = {0};
  reduced r;
  psplit_i_cells scales = {0};
  psplit_code code = reduced_init(b, &r, -1, false);
  if (code != PSPLIT_OK) goto out;
  PSPLIT_TRY(psplit_i_cells_scale(&scales, &r.instance, &r.automaton));
  int64_t low = -1, high = r.automaton.total_omega; /* no room; room */
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (has_room(&r, &scales, middle))
      high = middle;
    else
      low = middle;
  }
  psplit_i_text_puts(&text, "proof totals\n");
  if (high > b->bound) PSPLIT_TRY(take_proof(b, high, &text));
out:
  psplit_i_text_fini(&text);
  psplit_i_cells_fini(&scales);
  reduced_fini(&r);
  return code;
}

/* --- minimum cuts --- */

/* Whether net k of the problem is, or is part of, net e of the instance. */
static bool is_part(const reduced *r, const psplit_problem *p, uint32_t k, uint32_t e) {
  const psplit_i_instance *instance = &r->instance;
  const uint32_t *pins = instance->net_pin + instance->net_off[e];
  const uint32_t n_pins = instance->net_off[e + 1] - instance->net_off[e];
  if (instance->cluster_of_node[p->net_producer[k]] != pins[0]) return false;
  bool backward = p->node_flags && (p->node_flags[p->net_producer[k]] & PSPLIT_NODE_BACKWARD);
  for (uint32_t at = 1; at < n_pins; at++) {
    uint32_t l = p->net_off[k];
    while (l < p->net_off[k + 1] && instance->cluster_of_node[p->net_consumer[l]] != pins[at]) l++;
    if (l == p->net_off[k + 1]) return false;
  }
  for (uint32_t l = p->net_off[k]; l < p->net_off[k + 1]; l++) {
    const uint32_t i = instance->cluster_of_node[p->net_consumer[l]];
    uint32_t at = 0;
    while (at < n_pins && pins[at] != i) at++;
    if (at == n_pins) return false;
    if (at > 0 && p->node_flags && (p->node_flags[p->net_consumer[l]] & PSPLIT_NODE_BACKWARD))
      backward = true;
  }
  return backward != instance->net_forward[e];
}

/* The first such net; names[n_nets] remembers them, NONE: not yet. */
static uint32_t problem_net(const reduced *r, const psplit_problem *p, uint32_t e,
                            uint32_t *names) {
  for (uint32_t k = 0; names[e] == PSPLIT_NONE && k < p->n_nets; k++)
    if (is_part(r, p, k, e)) names[e] = k;
  return names[e];
}

static uint32_t *new_names(builder *b, const reduced *r) {
  uint32_t *names = psplit_i_arena_array(&b->arena, r->instance.n_nets, sizeof *names);
  if (names) memset(names, 0xff, r->instance.n_nets * sizeof *names);
  return names;
}

static psplit_code write_flows(builder *b, const reduced *r, const psplit_i_node_proof *proof,
                               psplit_i_text *out) {
  uint32_t *names = new_names(b, r);
  if (!names) return PSPLIT_NOMEM;
  if (proof->sent) psplit_i_text_addf(out, "sent %" PRId64 "\n", proof->sent);
  if (proof->received) psplit_i_text_addf(out, "received %" PRId64 "\n", proof->received);
  for (size_t k = 0; k < proof->flows.n; k++) {
    const psplit_i_net_flow *f = &proof->flows.items[k];
    psplit_i_text_addf(out, "%s %" PRIu32 " %" PRIu32 " %" PRId64 "\n",
                       f->receiving ? "receive" : "send", problem_net(r, &b->merged, f->net, names),
                       node_of(r, f->consumer), f->amount);
  }
  return PSPLIT_OK;
}

static psplit_code prove_by_cut(builder *b, const reduced *r, int64_t target, bool *out_proved) {
  psplit_i_text text = {0};
  psplit_i_node_proof proof;
  psplit_code code =
    psplit_i_node_proof_find(&r->instance, &r->automaton, target, MAX_CUTS, b->budget, &proof);
  if (code != PSPLIT_OK) return code;
  *out_proved = proof.cluster != PSPLIT_NONE;
  if (*out_proved) {
    write_merges(r, &text);
    psplit_i_text_addf(&text, "proof cut\nnode %" PRIu32 "\n", node_of(r, proof.cluster));
    PSPLIT_TRY(write_flows(b, r, &proof, &text));
    PSPLIT_TRY(take_proof(b, target, &text));
  }
out:
  psplit_i_text_fini(&text);
  psplit_i_node_proof_fini(&proof);
  return code;
}

/* --- cases --- */

static void write_paths(const reduced *r, const psplit_problem *p, const psplit_i_question *cell,
                        uint32_t *names, psplit_i_text *out) {
  for (int sends = 0; sends < 2; sends++)
    for (uint32_t k = 0; k < cell->n_paths[sends]; k++) {
      const psplit_i_path *path = &cell->paths[sends][k];
      psplit_i_text_addf(out, "%s %" PRId64, sends ? "send" : "receive", path->amount);
      for (uint32_t s = 0; s < path->n_steps; s++)
        psplit_i_text_addf(out, " %" PRIu32 " %" PRIu32,
                           problem_net(r, p, path->steps[2 * s], names),
                           node_of(r, path->steps[2 * s + 1]));
      psplit_i_text_puts(out, "\n");
    }
}

static void write_tree(const reduced *r, const psplit_problem *p, const psplit_i_cells *cells,
                       uint32_t *stack, uint32_t *names, psplit_i_text *out) {
  uint32_t size = 0;
  for (uint32_t at = 0;;) {
    const psplit_i_question *q = at == PSPLIT_NONE ? NULL : &cells->tree.items[at];
    if (!q || q->kind == PSPLIT_I_ASK_NOTHING) {
      psplit_i_text_puts(out, "cell\n");
      if (q) write_paths(r, p, q, names, out);
      if (size == 0) return;
      at = stack[--size];
      continue;
    }
    if (q->kind == PSPLIT_I_ASK_NODE)
      psplit_i_text_addf(out, "in %" PRIu32 "\n", node_of(r, q->cluster));
    else
      psplit_i_text_addf(out, "above %" PRId64 "\n", q->weight);
    stack[size++] = q->yes;
    at = q->no;
  }
}

/* One run of the search for cases; the proof is taken if there is one. */
static psplit_code prove_by_cells(builder *b, const reduced *r, int64_t target,
                                  bool no_empty_stages, bool count_receivers, bool *out_proved,
                                  bool *out_split) {
  psplit_i_text text = {0};
  psplit_i_cells cells;
  const psplit_i_case_request request = {.limit = target - 1,
                                         .no_empty_stages = no_empty_stages,
                                         .count_receivers = count_receivers,
                                         .any_way = b->counted == ANY_WAY && no_empty_stages,
                                         .most_cells = MAX_CELLS,
                                         .budget = b->budget};
  uint32_t *stack = NULL;
  psplit_code code = psplit_i_cells_init(&cells, &r->instance, &r->automaton, no_empty_stages);
  if (code != PSPLIT_OK) goto out;
  PSPLIT_TRY(psplit_i_case_proof(&cells, &request, out_proved, out_split));
  if (*out_proved) {
    uint32_t *names = new_names(b, r);
    stack = malloc((cells.tree.n + 1) * sizeof *stack);
    PSPLIT_TRY(stack && names ? PSPLIT_OK : PSPLIT_NOMEM);
    write_merges(r, &text);
    psplit_i_text_addf(&text, "proof cases\nempty-stages %d\nreceivers %d\n", !no_empty_stages,
                       count_receivers);
    write_tree(r, &b->merged, &cells, stack, names, &text);
    PSPLIT_TRY(take_proof(b, target, &text));
  }
out:
  free(stack);
  psplit_i_text_fini(&text);
  psplit_i_cells_fini(&cells);
  return code;
}

/* With or without empty stages: a minimum cut, then cases; receivers are counted only when that is
 * needed, since it takes more labels. */
static psplit_code prove_contiguous(builder *b, int64_t target, bool no_empty_stages,
                                    bool *out_proved, bool *out_split) {
  reduced r;
  *out_split = false;
  psplit_code code = reduced_init(b, &r, target - 1, no_empty_stages);
  if (code == PSPLIT_INFEASIBLE) { /* what is too dear apart below the target is pinned apart */
    reduced_fini(&r);
    *b->diag = (psplit_diag){0};
    code = reduced_init(b, &r, -1, no_empty_stages);
  }
  if (code != PSPLIT_OK) goto out;
  PSPLIT_TRY(prove_by_cut(b, &r, target, out_proved));
  if (*out_proved || r.instance.n > MAX_CLUSTERS) goto out;
  PSPLIT_TRY(prove_by_cells(b, &r, target, no_empty_stages, false, out_proved, out_split));
  if (*out_split && r.instance.p2p)
    PSPLIT_TRY(prove_by_cells(b, &r, target, no_empty_stages, true, out_proved, out_split));
out:
  reduced_fini(&r);
  return code;
}

static psplit_code prove(builder *b, int64_t target, bool *out_proved) {
  bool split = false;
  psplit_code code = PSPLIT_OK;
  *out_proved = target <= b->bound;
  if (*out_proved || b->problem->n_nodes > MAX_NODES) return PSPLIT_OK;
  if (!is_plain(b)) {
    reduced r;
    code = reduced_init(b, &r, -1, false);
    if (code == PSPLIT_OK) code = prove_by_cut(b, &r, target, out_proved);
    reduced_fini(&r);
    return code;
  }
  if (b->counted == ANY_WAY)
    split = true; /* who passes on is told where no stage may be empty */
  else
    code = prove_contiguous(b, target, false, out_proved, &split);
  if (code == PSPLIT_OK && split && !*out_proved && b->options->require_nonempty)
    code = prove_contiguous(b, target, true, out_proved, &split);
  return code;
}

/* The largest bound that can be proved, up to `target`: that one first, with a third of the budget,
 * then smaller ones, which leave fewer splits to rule out. */
static psplit_code prove_most(builder *b, int64_t target) {
  enum { WAY = 64 };
  static const struct {
    int64_t down;   /* parts of WAY, from the bound down to what totals prove */
    uint32_t share; /* one part of what is left of the budget */
  } kAims[] = {{0, 3}, {1, 4}, {4, 4}, {16, 3}, {32, 2}, {48, 1}};
  bool proved = false;
  psplit_code code = prove_totals(b);
  const int64_t least = b->bound;
  psplit_i_budget *const whole = b->budget;
  for (size_t k = 0; k < sizeof kAims / sizeof *kAims && code == PSPLIT_OK && !proved; k++) {
    psplit_i_budget share = psplit_i_budget_share(whole, kAims[k].share);
    b->budget = &share;
    code = prove(b, target - (target - least) / WAY * kAims[k].down, &proved);
    b->budget = whole;
    psplit_i_spend(whole, share.spent);
  }
  return code;
}

/* --- the text --- */

static void write_list(psplit_i_text *out, const char *name, const uint32_t *list, uint32_t n) {
  psplit_i_text_puts(out, name);
  for (uint32_t i = 0; i < n; i++) psplit_i_text_addf(out, " %" PRIu32, list[i]);
  psplit_i_text_puts(out, "\n");
}

/* What stages take where the tensors of a split are passed on. */
typedef struct ways {
  const psplit_problem *problem;
  const psplit_solution *split;
  const uint32_t *next_hop;
  int64_t *load;          /* [n_stages] */
  bool *met;              /* [n_stages^2] the one sends the other something */
  uint32_t *held, *wants; /* [n_stages] stamps: net + 1 */
  psplit_i_hop *hops;     /* [2 * n_stages] of a net; of a part of its way */
  psplit_i_text *lines;   /* of what is passed on */
} ways;

static uint32_t class_of(const ways *w, uint32_t stage) {
  return w->problem->devices[w->split->stages[stage].device].class_id;
}

/* A hop of a net, or what makes no message, where it is made (sends) or read. */
static void pay(ways *w, uint32_t e, uint32_t stage, bool sends) {
  w->load[stage] += psplit_i_net_ns(w->problem, e, class_of(w, stage), sends);
}

static void take_hop(ways *w, uint32_t e, psplit_i_hop hop) {
  bool *met = &w->met[(size_t)hop.from * w->split->n_stages + hop.to];
  pay(w, e, hop.from, true);
  pay(w, e, hop.to, false);
  if (*met) return;
  *met = true;
  w->load[hop.from] += w->problem->message_ns[class_of(w, hop.from)];
  w->load[hop.to] += w->problem->message_ns[class_of(w, hop.to)];
}

/* Of a net that makes messages, stages that want it in ascending order. */
static void go_by_ways(ways *w, uint32_t e, uint32_t home) {
  const uint32_t n = w->split->n_stages;
  psplit_i_hop *part = w->hops + n;
  uint32_t n_hops = 0;
  bool passed_on = false;
  for (uint32_t s = home + 1; s < n; s++) {
    if (w->wants[s] != e + 1 || w->held[s] == e + 1) continue;
    const uint32_t n_part = psplit_i_route(n, w->next_hop, home, s, w->held, e + 1, part);
    for (uint32_t k = 0; k < n_part; k++) {
      passed_on |= part[k].from != home;
      take_hop(w, e, part[k]);
      w->hops[n_hops++] = part[k];
    }
  }
  if (!passed_on) return;
  psplit_i_text_addf(w->lines, "way %" PRIu32, e);
  for (uint32_t k = 0; k < n_hops; k++)
    psplit_i_text_addf(w->lines, " %" PRIu32 " %" PRIu32, w->hops[k].from, w->hops[k].to);
  psplit_i_text_puts(w->lines, "\n");
}

static void send_net(ways *w, uint32_t e) {
  const psplit_problem *p = w->problem;
  const uint32_t home = w->split->stage[p->net_producer[e]];
  bool any = false;
  for (uint32_t k = p->net_off[e]; k < p->net_off[e + 1]; k++) {
    const uint32_t s = w->split->stage[p->net_consumer[k]];
    if (s == home || w->wants[s] == e + 1) continue;
    w->wants[s] = e + 1;
    if (!psplit_i_makes_message(p, e)) pay(w, e, s, false);
    any = true;
  }
  w->held[home] = e + 1;
  if (any && psplit_i_makes_message(p, e))
    go_by_ways(w, e, home);
  else if (any)
    pay(w, e, home, true);
}

/* Lines for tensors that are passed on, and what the slowest stage takes with that. */
static psplit_code write_ways(builder *b, const psplit_solution *s, const uint32_t *next_hop,
                              psplit_i_text *out, int64_t *out_value_ns) {
  const psplit_problem *p = b->problem;
  const size_t n = s->n_stages;
  ways w = {.problem = p,
            .split = s,
            .next_hop = next_hop,
            .load = PSPLIT_NEW(&b->arena, int64_t, n),
            .met = PSPLIT_NEW(&b->arena, bool, n *n),
            .held = PSPLIT_NEW(&b->arena, uint32_t, n),
            .wants = PSPLIT_NEW(&b->arena, uint32_t, n),
            .hops = PSPLIT_NEW(&b->arena, psplit_i_hop, 2 * n),
            .lines = out};
  if (!w.load || !w.met || !w.held || !w.wants || !w.hops) return PSPLIT_NOMEM;
  for (uint32_t v = 0; v < p->n_nodes; v++)
    w.load[s->stage[v]] += p->time_ns[(size_t)v * p->n_classes + class_of(&w, s->stage[v])];
  for (uint32_t e = 0; e < p->n_nets; e++) send_net(&w, e);
  *out_value_ns = 0;
  for (size_t k = 0; k < n; k++)
    if (w.load[k] > *out_value_ns) *out_value_ns = w.load[k];
  return PSPLIT_OK;
}

static void write_head(const builder *b, const psplit_solution *s, int64_t value_ns,
                       psplit_i_text *out) {
  const psplit_problem *p = b->problem;
  const psplit_partition_options *o = b->options;
  psplit_i_text_puts(out, "psplit-certificate 1\n");
  psplit_i_text_addf(out, "problem %08" PRIx32 " %" PRIu32 " %" PRIu32 "\n",
                     psplit_i_problem_digest(p), p->n_nodes, p->n_nets);
  psplit_i_text_addf(out, "objective %s\n",
                     o->objective == PSPLIT_LATENCY ? "latency" : "throughput");
  psplit_i_text_addf(out, "contiguous %d\nno-empty-stages %d\nchunks %" PRIu32 "\n",
                     !o->noncontiguous, o->require_nonempty, o->chunks);
  psplit_i_text_addf(out, "comm %s\noverlap %d\n",
                     b->merged.comm == PSPLIT_COMM_P2P ? "p2p" : "shared", p->overlap);
  psplit_i_text_puts(out, "devices");
  for (uint32_t d = 0; d < p->n_devices; d++)
    psplit_i_text_addf(out, " %" PRIu32, p->devices[d].count);
  psplit_i_text_puts(out, "\n");
  write_list(out, "stage", s->stage, s->n_nodes);
  if (o->chunks > 1) write_list(out, "chunk", s->chunk, s->n_nodes);
  psplit_i_text_puts(out, "device");
  for (uint32_t k = 0; k < s->n_stages; k++)
    psplit_i_text_addf(out, " %" PRIu32, s->stages[k].device);
  psplit_i_text_puts(out, "\n");
  psplit_i_text_addf(out, "value %" PRId64 "\n", value_ns);
}

/* By shared memory, too, a stage sends one net of a trunk at most and receives one, in a message
 * each; the solver needs no trunk there, as it counts messages as they are. */
static psplit_code mark_trunk(builder *b) {
  const psplit_comm comm = b->merged.comm;
  b->merged.comm = PSPLIT_COMM_P2P;
  const psplit_code code = psplit_i_messages_mark(&b->arena, NULL, &b->merged);
  b->merged.comm = comm;
  return code;
}

/* Nets that take as long as a message longer. */
static void write_trunk(const psplit_problem *p, psplit_i_text *out) {
  psplit_i_text_puts(out, "trunk");
  for (uint32_t e = 0; e < p->n_nets; e++)
    if (psplit_i_on_trunk(p, e)) psplit_i_text_addf(out, " %" PRIu32, e);
  psplit_i_text_puts(out, "\n");
}

/* Whether all stages' messages can be counted, rather than those of a trunk. */
static bool counts_messages(const builder *b) {
  const psplit_problem *p = b->problem;
  bool backward = false;
  for (uint32_t v = 0; p->node_flags && v < p->n_nodes && !backward; v++)
    backward = p->node_flags[v] & PSPLIT_NODE_BACKWARD;
  return p->message_ns && is_plain(b) && !backward;
}

/* With messages as they are, at least. Point to point, and where that does not do, with those of a
 * trunk, which several stages receive. *out_whole: the problem with its trunk. */
static psplit_code prove_with_messages(builder *b, int64_t target, bool any_way,
                                       psplit_problem *out_whole) {
  psplit_code code;
  psplit_i_budget *const whole = b->budget;
  const bool shared = b->merged.comm == PSPLIT_COMM_SHARED;
  psplit_i_budget share = psplit_i_budget_share(whole, shared ? 1 : 2);
  if (counts_messages(b)) {
    b->merged.net_flags = b->problem->net_flags; /* without marks of a trunk */
    b->counted = any_way ? ANY_WAY : AT_LEAST;
    b->budget = &share;
    code = prove_most(b, target);
    b->budget = whole;
    psplit_i_spend(whole, share.spent);
    if (code != PSPLIT_OK || b->bound >= target || shared) return code;
  }
  b->counted = OF_TRUNK;
  PSPLIT_TRY(mark_trunk(b));
  *out_whole = b->merged;
  PSPLIT_TRY(psplit_i_messages_relax(out_whole, &b->arena, &b->merged));
  b->merged.message_ns = NULL; /* a relaxation: beyond the trunk messages take nothing */
  code = prove_most(b, target);
out:
  return code;
}

static void write_messages(const builder *b, const psplit_problem *whole, psplit_i_text *out) {
  if (b->proved_with == OF_TRUNK && whole->message_ns) write_trunk(whole, out);
  if (b->proved_with != OF_TRUNK) psplit_i_text_puts(out, "messages\n");
  if (b->proved_with == ANY_WAY) psplit_i_text_puts(out, "any-way\n");
}

psplit_code psplit_i_certificate_make(const psplit_problem *problem,
                                      const psplit_partition_options *given,
                                      const psplit_solution *solution, const uint32_t *next_hop,
                                      psplit_diag *diag, char **out_text, size_t *out_n,
                                      int64_t *out_bound_ns) {
  psplit_diag own = {0};
  if (!diag) diag = &own;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_partition_options, given, &options, diag);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_problem_validate(problem, diag);
  if (code != PSPLIT_OK) return code;
  if (options.max_replicas > 1)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "there are no certificates with replicas");
  if (options.objective == PSPLIT_CALL_LATENCY)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "there are no certificates of the latency of calls");
  if (problem->n_link_classes)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "there are no certificates of problems whose links differ between pairs "
                         "of devices; with the least of each device's links there are");
  psplit_i_budget budget = psplit_i_budget_of(&options);
  builder b = {.problem = problem, .options = &options, .budget = &budget, .diag = diag};
  psplit_i_text text = {0}, lines = {0};
  psplit_i_arena_init(&b.arena, 0);
  uint32_t *entry = PSPLIT_NEW(&b.arena, uint32_t, problem->n_devices);
  PSPLIT_TRY(entry ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_devices_merge(problem, &options, &b.arena, &b.merged, entry));
  const bool relays = problem->next_hop != NULL;
  if (relays) {
    b.merged.next_hop = NULL; /* a relaxation: what is sent counts once, and no relays */
    b.merged.comm = PSPLIT_COMM_SHARED;
  }
  psplit_problem whole = {0};
  if (b.merged.message_ns && !options.noncontiguous) {
    PSPLIT_TRY(prove_with_messages(&b, solution->lower_bound_ns, next_hop != NULL, &whole));
  } else {
    b.merged.message_ns = NULL;
    PSPLIT_TRY(prove_most(&b, solution->lower_bound_ns));
  }
  int64_t value_ns = solution->objective_ns;
  if (b.proved_with == ANY_WAY) PSPLIT_TRY(write_ways(&b, solution, next_hop, &lines, &value_ns));
  write_head(&b, solution, value_ns, &text);
  if (relays) psplit_i_text_puts(&text, "relays\n");
  write_messages(&b, &whole, &text);
  psplit_i_text_add(&text, lines.bytes, lines.n);
  psplit_i_text_addf(&text, "claimed %" PRId64 "\nbound %" PRId64 "\n", solution->lower_bound_ns,
                     b.bound);
  psplit_i_text_add(&text, b.proof.bytes, b.proof.n);
  psplit_i_text_addf(&text, "end %08" PRIx32 "\n", psplit_i_crc32(0, text.bytes, text.n));
  PSPLIT_TRY(text.failed || lines.failed ? PSPLIT_NOMEM : PSPLIT_OK);
  *out_text = text.bytes;
  *out_n = text.n;
  *out_bound_ns = b.bound;
  text = (psplit_i_text){0};
out:
  if (code == PSPLIT_NOMEM) code = psplit_i_nomem(diag);
  psplit_i_text_fini(&text);
  psplit_i_text_fini(&lines);
  psplit_i_text_fini(&b.proof);
  psplit_i_arena_fini(&b.arena);
  return code;
}

psplit_code psplit_certificate_make(const psplit_problem *problem,
                                    const psplit_partition_options *options,
                                    const psplit_solution *solution, psplit_diag *diag,
                                    char **out_text, size_t *out_n, int64_t *out_bound_ns) {
  return psplit_i_certificate_make(problem, options, solution, NULL, diag, out_text, out_n,
                                   out_bound_ns);
}
