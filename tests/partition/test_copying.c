/* Splits with copies: the best one is what enumeration finds, with loads of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above first. */
#include <cmocka.h>

#include "copying.h"
#include "draws.h"

enum { MOST = 6, MOST_STAGES = 4, MOST_NETS = 2 * MOST };

typedef struct drawn {
  psplit_i_copying p;
  uint32_t group[MOST], pin[MOST];
  int64_t ns[MOST_STAGES * MOST];
  psplit_i_copying_net net[MOST_NETS];
} drawn;

static uint64_t bit(uint32_t n) { return UINT64_C(1) << n; }

/* Each node but the first mostly reads some in front of it, by one net or two. */
static void draw_nets(drawn *d) {
  psplit_i_copying *p = &d->p;
  for (uint32_t n = 0; n + 1 < p->n_nodes; n++)
    for (uint32_t k = 0; k < 1 + !draw(4); k++) {
      psplit_i_copying_net net = {.producer = n, .sendable = draw(12) != 0, .price = !draw(8)};
      for (uint32_t r = n + 1; r < p->n_nodes; r++)
        if (r == n + 1 ? draw(4) : !draw(3)) net.readers |= bit(r);
      if (!net.readers) continue;
      net.send_ns = draw(30);
      net.recv_ns = net.price ? draw(30) : net.send_ns;
      d->net[p->n_nets++] = net;
    }
}

static void draw_problem(drawn *d, uint32_t n_nodes, uint32_t n_stages) {
  *d = (drawn){.p = {.n_nodes = n_nodes,
                     .n_stages = n_stages,
                     .group = d->group,
                     .pin = d->pin,
                     .ns = d->ns,
                     .net = d->net,
                     .live = bit(n_nodes) - 1,
                     .outputs = bit(n_nodes - 1),
                     .message_ns = draw(2) ? draw(20) : 0,
                     .overlap = !draw(4),
                     .any_way = !draw(4)}};
  const bool classes = !draw(4), dear = draw(2);
  for (uint32_t n = 0; n < n_nodes; n++) {
    d->group[n] = n && !draw(5) ? d->group[draw(n)] : n;
    d->pin[n] = draw(20) ? PSPLIT_NONE : draw(n_stages);
    if (draw(4)) d->p.copyable |= bit(n);
    if (!draw(12)) d->p.live &= ~bit(n);
    if (!draw(6)) d->p.outputs |= bit(n);
    const int64_t ns = draw(dear && draw(2) ? 100 : 15);
    for (uint32_t s = 0; s < n_stages; s++)
      d->ns[s * n_nodes + n] = !classes ? ns : draw(12) ? (int64_t)draw(60) : PSPLIT_TIME_FORBIDDEN;
  }
  draw_nets(d);
}

typedef struct enumeration {
  const psplit_i_copying *p;
  uint32_t home[MOST];
  bool has[MOST_STAGES][MOST]; /* home or copy */
  int64_t best_ns;
} enumeration;

/* Whether some stage needs the net and has no producer. */
static bool needs(const enumeration *e, const psplit_i_copying_net *net, uint32_t stage) {
  bool any = false;
  for (uint32_t r = 0; r < e->p->n_nodes; r++)
    any |= (net->readers & bit(r)) && (net->price ? e->home[r] == stage : e->has[stage][r]);
  return any && !e->has[stage][net->producer];
}

/* Whether something in the stage reads each copy. */
static bool has_uses(const enumeration *e) {
  for (uint32_t s = 0; s < e->p->n_stages; s++)
    for (uint32_t n = 0; n < e->p->n_nodes; n++) {
      bool read = e->home[n] == s || !e->has[s][n];
      for (uint32_t k = 0; k < e->p->n_nets && !read; k++)
        for (uint32_t r = 0; r < e->p->n_nodes; r++)
          read |= e->p->net[k].producer == n && !e->p->net[k].price && e->has[s][r] &&
                  (e->p->net[k].readers & bit(r));
      if (!read) return false;
    }
  return true;
}

/* The largest load; INT64_MAX: it is no split. */
static int64_t value_of(const enumeration *e) {
  const psplit_i_copying *p = e->p;
  int64_t compute[MOST_STAGES] = {0}, recv[MOST_STAGES] = {0}, send[MOST_STAGES] = {0}, most = 0;
  bool live[MOST_STAGES] = {false}, used[MOST_STAGES] = {false}, sends[MOST_STAGES] = {false};
  bool met[MOST_STAGES][MOST_STAGES] = {{false}};
  if (!has_uses(e)) return INT64_MAX;
  for (uint32_t s = 0; s < p->n_stages; s++)
    for (uint32_t n = 0; n < p->n_nodes; n++) {
      if (!e->has[s][n]) continue;
      if (p->ns[s * p->n_nodes + n] == PSPLIT_TIME_FORBIDDEN) return INT64_MAX;
      compute[s] += p->ns[s * p->n_nodes + n];
      if (e->home[n] != s) continue;
      live[s] |= (p->live & bit(n)) != 0;
      used[s] |= (p->outputs & bit(n)) != 0;
    }
  for (uint32_t k = 0; k < p->n_nets; k++) {
    const psplit_i_copying_net *net = &p->net[k];
    const uint32_t home = e->home[net->producer];
    uint32_t n_sent = 0;
    for (uint32_t s = home + 1; s < p->n_stages; s++) {
      if (!needs(e, net, s)) continue;
      if (!net->price && !net->sendable) return INT64_MAX;
      (net->price ? compute : recv)[s] += net->recv_ns;
      bool by_copy = false; /* a copy may send it */
      for (uint32_t b = home + 1; b < s; b++) by_copy |= p->any_way && e->has[b][net->producer];
      if (!net->price) met[home][s] = true;
      if ((by_copy && !net->price) || (p->any_way && n_sent)) continue;
      n_sent++;
      (net->price ? compute : send)[home] += net->send_ns;
      if (!net->price) used[home] = sends[home] = true;
    }
  }
  for (uint32_t s = 0; s < p->n_stages; s++) {
    uint32_t to = 0, from = 0;
    for (uint32_t o = 0; o < p->n_stages; o++) {
      to += met[s][o];
      from += met[o][s];
    }
    if (p->any_way) to = sends[s];
    send[s] += to * p->message_ns;
    recv[s] += (p->any_way && from ? 1 : from) * p->message_ns;
    int64_t load = compute[s] + recv[s] + send[s];
    if (p->overlap) {
      load = recv[s] > send[s] ? recv[s] : send[s];
      if (compute[s] > load) load = compute[s];
    }
    if (!live[s] || (!used[s] && !p->any_way)) return INT64_MAX;
    if (load > most) most = load;
  }
  return most;
}

static void try_copies(enumeration *e, uint32_t at) {
  const psplit_i_copying *p = e->p;
  if (at == p->n_stages * p->n_nodes) {
    const int64_t ns = value_of(e);
    if (ns < e->best_ns) e->best_ns = ns;
    return;
  }
  const uint32_t s = at / p->n_nodes, n = at % p->n_nodes;
  e->has[s][n] = e->home[n] == s;
  try_copies(e, at + 1);
  if (s <= e->home[n] || !(p->copyable & bit(n))) return;
  e->has[s][n] = true;
  try_copies(e, at + 1);
}

static bool may_stand(const enumeration *e, uint32_t n) {
  const psplit_i_copying *p = e->p;
  for (uint32_t other = 0; other < n; other++)
    if (p->group[other] == p->group[n] && e->home[other] != e->home[n]) return false;
  for (uint32_t k = 0; k < p->n_nets; k++)
    if (!p->net[k].price && (p->net[k].readers & bit(n)) &&
        e->home[p->net[k].producer] > e->home[n])
      return false;
  return p->pin[n] == PSPLIT_NONE || p->pin[n] == e->home[n];
}

static void try_homes(enumeration *e, uint32_t n) {
  if (n == e->p->n_nodes || n == MOST) { /* the latter for gcc */
    try_copies(e, 0);
    return;
  }
  for (e->home[n] = 0; e->home[n] < e->p->n_stages; e->home[n]++)
    if (may_stand(e, n)) try_homes(e, n + 1);
}

static void no_split_is_better_than_what_is_found(void **state) {
  (void)state;
  uint32_t n_found = 0, n_copied = 0, n_ended = 0;
  for (uint32_t seed = 0; seed < 3000; seed++) {
    drawn d;
    draw_state = seed;
    const uint32_t n_stages = 2 + draw(3);
    draw_problem(&d, n_stages == 2 ? 3 + draw(4) : n_stages == 3 ? 3 + draw(3) : 4, n_stages);
    enumeration e = {.p = &d.p, .best_ns = INT64_MAX};
    psplit_i_copying_split split;
    psplit_diag diag = {0};
    int64_t bound_ns;
    const int64_t below_ns = INT64_MAX / 8;
    try_homes(&e, 0);
    psplit_i_budget budget = psplit_i_budget_unlimited();
    assert_int_equal(psplit_i_copying_solve(&d.p, below_ns, &budget, &diag, &split, &bound_ns),
                     PSPLIT_OK);
    if (split.value_ns != e.best_ns || bound_ns != (e.best_ns < below_ns ? e.best_ns : below_ns))
      fail_msg("problem %u: %lld found, %lld proved, and there is %lld", seed,
               (long long)split.value_ns, (long long)bound_ns, (long long)e.best_ns);
    if (e.best_ns == INT64_MAX) continue;
    n_found++;
    for (uint32_t s = 0; s < n_stages; s++) n_copied += split.copied[s] != 0;
    assert_int_equal(psplit_i_copying_solve(&d.p, e.best_ns, &budget, &diag, &split, &bound_ns),
                     PSPLIT_OK);
    assert_true(split.value_ns == INT64_MAX && bound_ns == e.best_ns);
    budget.spent = 0;
    budget.most = draw(4000);
    assert_int_equal(psplit_i_copying_solve(&d.p, below_ns, &budget, &diag, &split, &bound_ns),
                     PSPLIT_OK);
    assert_true(split.value_ns >= e.best_ns && bound_ns <= e.best_ns);
    n_ended += bound_ns < e.best_ns;
  }
  print_message("# %u problems have splits, %u stages copies, %u budgets end before\n", n_found,
                n_copied, n_ended);
  assert_true(n_found > 900 && n_copied > 500 && n_ended > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_split_is_better_than_what_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
