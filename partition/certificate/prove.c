#include "prove.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "case_proof.h"
#include "cells.h"
#include "node_proof.h"
#include "problem.h"
#include "reductions.h"

enum {
  MAX_NODES = 1 << 16, /* larger problems only get proofs by totals */
  MAX_CLUSTERS = 1 << 13,
  MAX_CELLS = 1 << 13,
  MAX_CUTS = 64
};

/* The reduced instance in which something is proved. */
typedef struct reduced {
  psplit_i_instance instance;
  psplit_i_automaton automaton;
  psplit_i_merge_log log;
  uint32_t *parent; /* [n_nodes] */
} reduced;

bool psplit_i_is_plain(const psplit_i_prover *b) {
  return b->options->chunks == 1 && !b->options->noncontiguous &&
         b->options->objective == PSPLIT_THROUGHPUT;
}

static void reduced_fini(reduced *r) {
  psplit_i_automaton_fini(&r->automaton);
  psplit_i_instance_fini(&r->instance);
  psplit_i_vec_fini(&r->log.merges);
}

static psplit_code bind_automaton(psplit_i_prover *b, reduced *r, bool no_empty_stages) {
  psplit_partition_options options = *b->options;
  options.require_nonempty = no_empty_stages;
  psplit_i_automaton_fini(&r->automaton);
  return psplit_i_automaton_init(&r->automaton, &r->instance, &options, b->diag);
}

/* Applies both rules in turn until nothing changes, since rule M changes the weights that the limit
 * rule reads. */
static psplit_code reduce(psplit_i_prover *b, reduced *r, int64_t limit, bool no_empty_stages) {
  enum { MAX_TURNS = 8 };
  psplit_code code = PSPLIT_OK;
  for (int turn = 0; turn < MAX_TURNS && code == PSPLIT_OK; turn++) {
    const uint32_t before = r->instance.n;
    const psplit_i_reduction_request request = {
      .automaton = &r->automaton, .limit = turn ? limit : PSPLIT_I_INF, .log = &r->log};
    code = psplit_i_reduce_as(&r->instance, &request, r->parent, b->budget, b->diag);
    if (code == PSPLIT_OK && r->instance.n < before) code = bind_automaton(b, r, no_empty_stages);
    if (turn > 0 && r->instance.n == before) break;
  }
  return code;
}

/* limit < 0: no reductions. */
static psplit_code reduced_init(psplit_i_prover *b, reduced *r, int64_t limit,
                                bool no_empty_stages) {
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

static psplit_code take_proof(psplit_i_prover *b, int64_t bound, psplit_i_text *text) {
  if (text->failed) return PSPLIT_NOMEM;
  psplit_i_text_fini(&b->proof);
  b->proof = *text;
  b->bound = bound;
  b->proved_with = b->counted;
  *text = (psplit_i_text){0};
  return PSPLIT_OK;
}

/* --- totals --- */

/* Whether all clusters fit into loads up to `limit`, by their total and by the heaviest one. */
static bool has_room(const reduced *r, const psplit_i_cells *scales, int64_t limit) {
  const psplit_i_automaton *m = &r->automaton;
  __int128 room = 0;
  for (uint32_t t = 0; t < m->n_types; t++) {
    const int64_t n = (int64_t)m->count[t], up = scales->scale_up[t], down = scales->scale_down[t];
    room += (__int128)limit * down / up * n;
  }
  if (room < m->total_min_time) return false;
  for (uint32_t i = 0; i < r->instance.n; i++)
    if (limit < m->min_time[i]) return false;
  return true;
}

static psplit_code prove_totals(psplit_i_prover *b) {
  psplit_i_text text = {0};
  reduced r;
  psplit_i_cells scales = {0};
  psplit_code code = reduced_init(b, &r, -1, false);
  if (code != PSPLIT_OK) goto out;
  PSPLIT_TRY(psplit_i_cells_scale(&scales, &r.instance, &r.automaton));
  /* `low` leaves too little room, `high` leaves enough */
  int64_t low = -1, high = r.automaton.total_min_time;
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

/* The first such net, which names[n_nets] caches (NONE: unknown). */
static uint32_t problem_net(const reduced *r, const psplit_problem *p, uint32_t e,
                            uint32_t *names) {
  for (uint32_t k = 0; names[e] == PSPLIT_NONE && k < p->n_nets; k++)
    if (is_part(r, p, k, e)) names[e] = k;
  return names[e];
}

static uint32_t *new_names(psplit_i_prover *b, const reduced *r) {
  uint32_t *names = psplit_i_arena_array(&b->arena, r->instance.n_nets, sizeof *names);
  if (names) memset(names, 0xff, r->instance.n_nets * sizeof *names);
  return names;
}

static psplit_code write_flows(psplit_i_prover *b, const reduced *r,
                               const psplit_i_node_proof *proof, psplit_i_text *out) {
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

static psplit_code prove_by_cut(psplit_i_prover *b, const reduced *r, int64_t target,
                                bool *out_proved) {
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

/* Runs one search for cases, and takes the proof if there is one. */
static psplit_code prove_by_cells(psplit_i_prover *b, const reduced *r, int64_t target,
                                  bool no_empty_stages, bool count_receivers, bool *out_proved,
                                  bool *out_split) {
  psplit_i_text text = {0};
  psplit_i_cells cells;
  const psplit_i_case_request request = {
    .limit = target - 1,
    .no_empty_stages = no_empty_stages,
    .count_receivers = count_receivers,
    .any_route = b->counted == PSPLIT_I_ANY_ROUTE && no_empty_stages,
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

/* Tries a minimum cut, then cases, with or without empty stages. Receivers are counted only if
 * necessary, since that takes more labels. */
static psplit_code prove_contiguous(psplit_i_prover *b, int64_t target, bool no_empty_stages,
                                    bool *out_proved, bool *out_split) {
  reduced r;
  *out_split = false;
  psplit_code code = reduced_init(b, &r, target - 1, no_empty_stages);
  /* clusters that cannot share a stage below the target are pinned apart */
  if (code == PSPLIT_INFEASIBLE) {
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

static psplit_code prove(psplit_i_prover *b, int64_t target, bool *out_proved) {
  bool split = false;
  psplit_code code = PSPLIT_OK;
  *out_proved = target <= b->bound;
  if (*out_proved || b->problem->n_nodes > MAX_NODES) return PSPLIT_OK;
  if (!psplit_i_is_plain(b)) {
    reduced r;
    code = reduced_init(b, &r, -1, false);
    if (code == PSPLIT_OK) code = prove_by_cut(b, &r, target, out_proved);
    reduced_fini(&r);
    return code;
  }
  if (b->counted == PSPLIT_I_ANY_ROUTE)
    split = true; /* tensors that are passed on are only counted if no stage may be empty */
  else
    code = prove_contiguous(b, target, false, out_proved, &split);
  if (code == PSPLIT_OK && split && !*out_proved && b->options->require_nonempty)
    code = prove_contiguous(b, target, true, out_proved, &split);
  return code;
}

psplit_code psplit_i_prove_most(psplit_i_prover *b, int64_t target) {
  enum { WAY = 64 };
  static const struct {
    int64_t down;   /* parts of WAY, on the way from the target down to the bound by totals */
    uint32_t share; /* one part in `share` of what is left of the budget is spent on it */
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
