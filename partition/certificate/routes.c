#include "routes.h"

#include <inttypes.h>

#include "messages.h"
#include "problem.h"
#include "route.h"

/* Loads of stages if the tensors of a split are passed on. */
typedef struct routes {
  const psplit_problem *problem;
  const psplit_solution *split;
  const uint32_t *next_hop;
  int64_t *load;          /* [n_stages] */
  bool *met;              /* [n_stages^2] one stage sends something to the other */
  uint32_t *held, *wants; /* [n_stages] stamps, net + 1 */
  psplit_i_hop *hops;     /* [2 * n_stages] hops of a net; of a part of its route */
  psplit_i_text *lines;   /* of the tensors that are passed on */
} routes;

static uint32_t class_of(const routes *w, uint32_t stage) {
  return w->problem->devices[w->split->stages[stage].device].class_id;
}

/* Adds the time of a net at a stage that sends or receives it: at the ends of a hop or, if the net
 * makes no message, where it is produced and where it is read. */
static void pay(routes *w, uint32_t e, uint32_t stage, bool sends) {
  w->load[stage] += psplit_i_net_ns(w->problem, e, class_of(w, stage), sends);
}

static void take_hop(routes *w, uint32_t e, psplit_i_hop hop) {
  bool *met = &w->met[(size_t)hop.from * w->split->n_stages + hop.to];
  pay(w, e, hop.from, true);
  pay(w, e, hop.to, false);
  if (*met) return;
  *met = true;
  w->load[hop.from] += w->problem->message_ns[class_of(w, hop.from)];
  w->load[hop.to] += w->problem->message_ns[class_of(w, hop.to)];
}

/* Follows a net that makes messages to the stages that read it, in ascending order. */
static void follow_routes(routes *w, uint32_t e, uint32_t home) {
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

static void send_net(routes *w, uint32_t e) {
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
    follow_routes(w, e, home);
  else if (any)
    pay(w, e, home, true);
}

psplit_code psplit_i_write_routes(const psplit_problem *p, const psplit_solution *s,
                                  const uint32_t *next_hop, psplit_i_arena *arena,
                                  psplit_i_text *out, int64_t *out_value_ns) {
  const size_t n = s->n_stages;
  routes w = {.problem = p,
              .split = s,
              .next_hop = next_hop,
              .load = PSPLIT_NEW(arena, int64_t, n),
              .met = PSPLIT_NEW(arena, bool, n *n),
              .held = PSPLIT_NEW(arena, uint32_t, n),
              .wants = PSPLIT_NEW(arena, uint32_t, n),
              .hops = PSPLIT_NEW(arena, psplit_i_hop, 2 * n),
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
