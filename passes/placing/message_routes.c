/* Chooses the links for a given split by local search. It starts from links between consecutive
 * stages only, and from all links, and then adds or removes one link at a time while the slowest
 * stage becomes faster. */
#include "message_routes.h"

#include <string.h>

#include "builder.h"
#include "devices_inside.h"

enum { MOST_SWEEPS = 4, MOST_HOPS = 1 << 26 };

typedef struct routes {
  const psplit_planner *planner;
  uint32_t n; /* stages */
  psplit_plan_transfer *wishes;
  uint32_t n_wishes;
  const int64_t *compute_ns; /* [n] */
  bool *linked;              /* [n * n] the pair exchanges a tensor */
  int64_t *link_ns, *scratch;
  uint32_t *next, *held, *sent; /* [n * n], [n], [n * n] */
  psplit_i_hop *hops;
  int64_t *load_ns;
  uint64_t n_hops; /* hops evaluated so far */
} routes;

static int64_t bytes_ns(const routes *w, uint32_t from, uint32_t to, uint64_t bytes) {
  const psplit_devices *devices = w->planner->devices;
  return psplit_devices_transfer_ns(devices, from, to, bytes) -
         psplit_devices_transfer_ns(devices, from, to, 0);
}

static void charge(routes *w, psplit_i_hop hop, int64_t ns) {
  w->load_ns[hop.from] = psplit_i_sat_add_i64(w->load_ns[hop.from], ns);
  w->load_ns[hop.to] = psplit_i_sat_add_i64(w->load_ns[hop.to], ns);
}

/* Routes the transfers, sorted by value and receiver, over the current links. */
static psplit_i_route_cost measure(routes *w) {
  const size_t n = w->n;
  for (size_t k = 0; k < n * n; k++) w->link_ns[k] = w->linked[k] ? 1 : -1;
  psplit_i_route_table(w->n, w->link_ns, w->scratch, w->next);
  memset(w->held, 0, n * sizeof *w->held);
  memset(w->sent, 0, n * n * sizeof *w->sent);
  memcpy(w->load_ns, w->compute_ns, n * sizeof *w->load_ns);
  w->n_hops += n * n;
  for (uint32_t t = 0, stamp = 0; t < w->n_wishes; t++) {
    const psplit_plan_transfer *wish = &w->wishes[t];
    if (t == 0 || wish[-1].value != wish->value) stamp = t + 1;
    w->held[wish->from] = stamp;
    if (w->held[wish->to] == stamp) continue; /* an earlier transfer relayed it there */
    const uint32_t n_hops =
      psplit_i_route(w->n, w->next, wish->from, wish->to, w->held, stamp, w->hops);
    w->n_hops += n_hops + n / 4;
    for (uint32_t h = 0; h < n_hops; h++) {
      const psplit_i_hop hop = w->hops[h];
      uint32_t *met = &w->sent[hop.from * n + hop.to];
      const int64_t latency_ns =
        *met ? 0 : psplit_devices_transfer_ns(w->planner->devices, hop.from, hop.to, 0);
      *met = 1;
      charge(w, hop, psplit_i_sat_add_i64(latency_ns, bytes_ns(w, hop.from, hop.to, wish->bytes)));
    }
  }
  psplit_i_route_cost sum = {0, 0};
  for (size_t s = 0; s < n; s++) {
    if (w->load_ns[s] > sum.slowest_ns) sum.slowest_ns = w->load_ns[s];
    sum.sum_ns = psplit_i_sat_add_i64(sum.sum_ns, w->load_ns[s]);
  }
  return sum;
}

/* Adds or removes one link while that is an improvement. Links between neighbours always remain, so
 * every pair is connected. */
static psplit_i_route_cost improve(routes *w) {
  const uint32_t n = w->n;
  psplit_i_route_cost best = measure(w);
  bool any = true;
  for (unsigned sweep = 0; any && sweep < MOST_SWEEPS; sweep++) {
    any = false;
    for (uint32_t i = 0; i < n; i++)
      for (uint32_t j = i + 2; j < n && w->n_hops < MOST_HOPS; j++) {
        bool *link = &w->linked[(size_t)i * n + j];
        *link = !*link;
        const psplit_i_route_cost other = measure(w);
        if (psplit_i_route_cost_is_less(other, best)) {
          best = other;
          any = true;
        } else {
          *link = !*link;
        }
      }
  }
  return best;
}

static void link_stages(routes *w, bool all) {
  for (uint32_t i = 0; i < w->n; i++)
    for (uint32_t j = 0; j < w->n; j++)
      w->linked[(size_t)i * w->n + j] = j == i + 1 || (all && j > i);
}

static psplit_code begin(routes *w, psplit_planner *planner, psplit_diag *diag) {
  psplit_i_arena *arena = &planner->scratch;
  const psplit_plan *plan = planner->plan;
  const size_t n = plan->n_stages, n_pairs = n * n;
  *w = (routes){.planner = planner, .n = plan->n_stages, .n_wishes = plan->n_transfers};
  w->wishes = psplit_i_arena_zeroed(arena, w->n_wishes, sizeof *w->wishes);
  int64_t *compute_ns = psplit_i_arena_zeroed(arena, n, sizeof *compute_ns);
  w->linked = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->linked);
  w->link_ns = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->link_ns);
  w->scratch = psplit_i_arena_zeroed(arena, 2 * n, sizeof *w->scratch);
  w->next = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->next);
  w->held = psplit_i_arena_zeroed(arena, n, sizeof *w->held);
  w->sent = psplit_i_arena_zeroed(arena, n_pairs, sizeof *w->sent);
  w->hops = psplit_i_arena_zeroed(arena, n, sizeof *w->hops);
  w->load_ns = psplit_i_arena_zeroed(arena, n, sizeof *w->load_ns);
  if (arena->failed) return psplit_i_nomem(diag);
  if (w->n_wishes) memcpy(w->wishes, plan->transfers, w->n_wishes * sizeof *w->wishes);
  psplit_i_sort_by_value(w->wishes, w->n_wishes);
  for (size_t s = 0; s < n; s++) compute_ns[s] = plan->stages[s].compute_ns;
  w->compute_ns = compute_ns;
  return PSPLIT_OK;
}

psplit_code psplit_i_routes_find(psplit_planner *planner, psplit_diag *diag, uint32_t *out_next,
                                 psplit_i_route_cost *out_cost) {
  routes w;
  psplit_code code;
  PSPLIT_TRY(begin(&w, planner, diag));
  for (int all = 0; all < 2; all++) {
    link_stages(&w, all);
    const psplit_i_route_cost found = improve(&w);
    if (all && !psplit_i_route_cost_is_less(found, *out_cost)) continue;
    *out_cost = measure(&w);
    memcpy(out_next, w.next, (size_t)w.n * w.n * sizeof *out_next);
  }
out:
  psplit_i_arena_reset(&planner->scratch);
  return code;
}

uint32_t *psplit_i_routes_new(psplit_planner *planner) {
  const size_t n = planner->options.n_stages;
  return psplit_i_arena_array(&planner->arena, n * n, sizeof(uint32_t));
}

psplit_code psplit_i_routes_adopt(psplit_planner *planner, const uint32_t *stage, uint32_t *next,
                                  psplit_diag *diag) {
  psplit_solution *solution = planner->solution;
  planner->solution = NULL;
  planner->next_hop = next;
  planner->passes_on = next != NULL;
  const psplit_code code = psplit_i_builder_adopt(planner, stage, diag);
  planner->solution = solution;
  return code;
}

void psplit_i_pass_nothing_on(psplit_planner *planner) {
  if (!planner->passes_on) return;
  planner->passes_on = false;
  planner->next_hop = NULL;
}
