/* All splits with copies, from the last stage to the first. Each takes blocks that nothing left
 * reads, and then, from the last node in front of it to the first, receives or copies what it
 * needs. What it sends is known by then; of what it receives, how many stages send it is not, so it
 * waits for them with as many messages as it has time for. From what is left and who waits for what
 * all else follows: a state from which no split was within the limit is not looked at again, as
 * limits only fall. */
#include <string.h>

#include "copying_inside.h"
#include "diag.h"

enum { OPS_OF_STATE = 16, OPS_OF_CHOICE = 4 };

typedef struct block {
  uint64_t nodes, behind; /* behind: blocks, bits */
  int64_t least_ns;       /* of all stages */
  uint32_t pin;
} block;

typedef struct program {
  const psplit_i_copying *p;
  psplit_i_budget *budget;
  psplit_i_copying_states states;
  psplit_i_copying_split split; /* as far as it is made */
  int64_t limit;
  uint32_t n_blocks;
  block blocks[PSPLIT_I_COPYING_MOST];  /* in a topological order */
  uint64_t made[PSPLIT_I_COPYING_MOST]; /* of each node the nets, bits */
  uint64_t tensors;                     /* nets, bits */
  psplit_code code;
  bool ended;
} program;

/* A stage that is being formed. */
typedef struct forming {
  const psplit_i_copying_state *from;
  psplit_i_copying_state next; /* without what this stage itself waits for */
  uint64_t home;               /* nodes, as all of these */
  uint64_t front;              /* that stages in front are home to */
} forming;

/* What it holds and waits for by now. */
typedef struct holding {
  uint64_t held, awaited; /* nodes, nets */
  psplit_i_copying_load load;
} holding;

static bool place(program *x, const psplit_i_copying_state *state);

static uint32_t first_of(uint64_t bits) { return (uint32_t)__builtin_ctzll(bits); }

static bool spend(program *x, uint64_t n_ops) {
  if (!x->ended) x->ended = !psplit_i_spend(x->budget, n_ops);
  return !x->ended;
}

static void add_wait(psplit_i_copying_state *state, psplit_i_copying_wait wait) {
  uint32_t at = state->n_waits++;
  for (; at > 0; at--) {
    const psplit_i_copying_wait *other = &state->wait[at - 1];
    if (other->nets < wait.nets ||
        (other->nets == wait.nets && other->n_messages <= wait.n_messages))
      break;
    state->wait[at] = *other;
  }
  state->wait[at] = wait;
}

/* By any way one stage stands for all that wait. */
static void add_union(psplit_i_copying_state *state, uint64_t nets) {
  if (!state->n_waits) state->wait[state->n_waits++] = (psplit_i_copying_wait){0, 0};
  state->wait[0].nets |= nets;
}

/* How many messages the stage may receive; by any way there is one, which is counted. */
static uint64_t n_messages(const program *x, uint32_t stage, const psplit_i_copying_load *load) {
  const psplit_i_copying *p = x->p;
  if (p->message_ns <= 0 || p->any_way) return 0;
  const int64_t used_ns = p->overlap ? load->recv_ns : psplit_i_copying_load_ns(p, load);
  const uint64_t n = (uint64_t)((x->limit - used_ns) / p->message_ns);
  return n < stage ? n : stage;
}

/* The stage is as it is held: those in front of it. */
static bool close_stage(program *x, forming *f, const holding *h) {
  psplit_i_copying_state next = f->next;
  const uint32_t stage = f->from->stage;
  const psplit_i_copying *p = x->p;
  const uint64_t copies = h->held & ~f->home;
  for (uint64_t left = p->any_way ? copies : 0; left && next.n_waits; left &= left - 1)
    next.wait[0].nets &= ~(x->made[first_of(left)] & x->tensors);
  if (h->awaited && p->any_way) add_union(&next, h->awaited);
  if (h->awaited && !p->any_way)
    add_wait(&next, (psplit_i_copying_wait){h->awaited, n_messages(x, stage, &h->load)});
  if (next.n_waits && !next.wait[0].nets) next.n_waits = 0; /* by any way; else none is empty */
  x->split.home[stage] = f->home;
  x->split.copied[stage] = copies;
  if (stage == 0) return !next.n_waits;
  return place(x, &next);
}

static bool is_within(const program *x, const holding *h) {
  psplit_i_copying_load load = h->load;
  if (h->awaited & x->tensors) psplit_i_add_ns(&load.recv_ns, x->p->message_ns);
  return psplit_i_copying_load_ns(x->p, &load) <= x->limit;
}

/* Of what the node makes, the nets that the stage needs; *out_read: those that it reads. */
static uint64_t needed_of(const program *x, const forming *f, const holding *h, uint32_t node,
                          uint64_t *out_read) {
  uint64_t needed = 0;
  *out_read = 0;
  for (uint64_t left = x->made[node]; left; left &= left - 1) {
    const uint32_t e = first_of(left);
    const psplit_i_copying_net *net = &x->p->net[e];
    if (!(net->readers & (net->price ? f->home : h->held))) continue;
    needed |= UINT64_C(1) << e;
    if (!net->price) *out_read |= UINT64_C(1) << e;
  }
  return needed;
}

/* False where some of it cannot be sent. */
static bool receive(const program *x, uint64_t needed, holding *h) {
  for (uint64_t left = needed; left; left &= left - 1) {
    const psplit_i_copying_net *net = &x->p->net[first_of(left)];
    if (!net->price && !net->sendable) return false;
    psplit_i_add_ns(net->price ? &h->load.compute_ns : &h->load.recv_ns, net->recv_ns);
  }
  h->awaited |= needed;
  return is_within(x, h);
}

/* Decides about nodes in front, of which `open` are left; the last one comes first, as what it
 * reads stands before it. */
static bool hold(program *x, forming *f, const holding *h, uint64_t open) {
  uint64_t needed = 0, read = 0;
  uint32_t node = 0;
  if (!spend(x, OPS_OF_CHOICE)) return false;
  for (; open && !needed; open &= ~(UINT64_C(1) << node)) {
    node = 63 - (uint32_t)__builtin_clzll(open);
    needed = needed_of(x, f, h, node, &read);
  }
  if (!needed) return close_stage(x, f, h);
  holding more = *h;
  if (receive(x, needed, &more) && hold(x, f, &more, open)) return true;
  const int64_t ns = x->p->ns[(size_t)f->from->stage * x->p->n_nodes + node];
  if (!read || !(x->p->copyable >> node & 1) || ns == PSPLIT_TIME_FORBIDDEN) return false;
  more = *h;
  more.held |= UINT64_C(1) << node;
  psplit_i_add_ns(&more.load.compute_ns, ns);
  return is_within(x, &more) && hold(x, f, &more, open);
}

/* What stages behind wait for and the stage makes; false where it cannot be sent in time. */
static bool send(const program *x, forming *f, uint64_t made, psplit_i_copying_load *load,
                 bool *out_sends) {
  f->next = (psplit_i_copying_state){.blocks = f->next.blocks, .stage = f->from->stage - 1};
  for (uint32_t w = 0; w < f->from->n_waits; w++) {
    psplit_i_copying_wait wait = f->from->wait[w];
    for (uint64_t left = wait.nets & made; left; left &= left - 1) {
      const psplit_i_copying_net *net = &x->p->net[first_of(left)];
      psplit_i_add_ns(net->price ? &load->compute_ns : &load->send_ns, net->send_ns);
    }
    if (wait.nets & made & x->tensors) {
      *out_sends = true;
      psplit_i_add_ns(&load->send_ns, x->p->message_ns);
      if (x->p->message_ns > 0 && !x->p->any_way && wait.n_messages-- == 0) return false;
    }
    wait.nets &= ~made;
    if (wait.n_messages > f->from->stage) wait.n_messages = f->from->stage;
    if (wait.nets) add_wait(&f->next, wait);
  }
  return psplit_i_copying_load_ns(x->p, load) <= x->limit;
}

/* The stage has these blocks at home, which take so long. */
static bool settle(program *x, const psplit_i_copying_state *state, uint64_t blocks,
                   int64_t compute_ns) {
  forming f = {.from = state, .next = {.blocks = state->blocks & ~blocks}};
  holding h = {.load = {.compute_ns = compute_ns}};
  uint64_t made = 0;
  bool sends = false;
  if (!spend(x, OPS_OF_STATE)) return false;
  for (uint64_t left = blocks; left; left &= left - 1) f.home |= x->blocks[first_of(left)].nodes;
  for (uint64_t left = f.next.blocks; left; left &= left - 1)
    f.front |= x->blocks[first_of(left)].nodes;
  for (uint64_t left = f.home; left; left &= left - 1) made |= x->made[first_of(left)];
  if (!(f.home & x->p->live) || !send(x, &f, made, &h.load, &sends)) return false;
  if (!sends && !(f.home & x->p->outputs) && !x->p->any_way) return false;
  h.held = f.home;
  return hold(x, &f, &h, f.front);
}

/* Blocks from the last to the first: those before `end` are open, `taken` are the stage's, and what
 * else is left takes rest_ns in front at least. */
static bool choose(program *x, const psplit_i_copying_state *state, uint32_t end, uint64_t taken,
                   int64_t compute_ns, int64_t rest_ns) {
  const uint32_t stage = state->stage;
  if (!spend(x, 1)) return false;
  while (end > 0 && !(state->blocks >> (end - 1) & 1)) end--;
  if (end == 0) return settle(x, state, taken, compute_ns);
  const block *b = &x->blocks[end - 1];
  int64_t ns = compute_ns;
  bool fits = (b->pin == PSPLIT_NONE || b->pin == stage) && !(b->behind & state->blocks & ~taken);
  for (uint64_t left = b->nodes; left && fits; left &= left - 1) {
    const int64_t own = x->p->ns[(size_t)stage * x->p->n_nodes + first_of(left)];
    fits = own != PSPLIT_TIME_FORBIDDEN;
    if (fits) psplit_i_add_ns(&ns, own);
  }
  if (fits && ns <= x->limit &&
      choose(x, state, end - 1, taken | UINT64_C(1) << (end - 1), ns, rest_ns))
    return true;
  if (stage == 0 || (b->pin != PSPLIT_NONE && b->pin >= stage)) return false;
  psplit_i_add_ns(&rest_ns, b->least_ns);
  return rest_ns / stage <= x->limit && choose(x, state, end - 1, taken, compute_ns, rest_ns);
}

/* What is left takes at least, whoever does it. By any way copies may send what others wait for. */
static int64_t work_left(const program *x, const psplit_i_copying_state *state) {
  int64_t ns = 0;
  for (uint64_t left = state->blocks; left; left &= left - 1)
    psplit_i_add_ns(&ns, x->blocks[first_of(left)].least_ns);
  for (uint32_t w = 0; w < state->n_waits && !x->p->overlap && !x->p->any_way; w++) {
    for (uint64_t left = state->wait[w].nets; left; left &= left - 1)
      psplit_i_add_ns(&ns, x->p->net[first_of(left)].send_ns);
    if (state->wait[w].nets & x->tensors) psplit_i_add_ns(&ns, x->p->message_ns);
  }
  return ns;
}

/* Whether the stages that are left can be formed; then x->split has all of them. */
static bool place(program *x, const psplit_i_copying_state *state) {
  const uint32_t n_stages = state->stage + 1;
  if (!spend(x, OPS_OF_STATE)) return false;
  const int64_t work_ns = work_left(x, state);
  if (work_ns / n_stages + (work_ns % n_stages > 0) > x->limit ||
      psplit_i_copying_states_have(&x->states, state))
    return false;
  if (choose(x, state, x->n_blocks, 0, 0, 0)) return true;
  if (!x->ended && psplit_i_copying_states_add(&x->states, state) != PSPLIT_OK) {
    x->code = PSPLIT_NOMEM;
    x->ended = true;
  }
  return false;
}

/* reach[n_nodes]: groups that follow from each, itself as well. */
static void find_reach(const psplit_i_copying *p, uint64_t *reach) {
  for (uint32_t g = 0; g < p->n_nodes; g++) reach[g] = UINT64_C(1) << g;
  for (uint32_t e = 0; e < p->n_nets; e++)
    for (uint64_t left = p->net[e].price ? 0 : p->net[e].readers; left; left &= left - 1)
      reach[p->group[p->net[e].producer]] |= UINT64_C(1) << p->group[first_of(left)];
  for (uint32_t via = 0; via < p->n_nodes; via++)
    for (uint32_t g = 0; g < p->n_nodes; g++)
      if (reach[g] >> via & 1) reach[g] |= reach[via];
}

/* Groups that follow from each other share a stage. Of two blocks that which more follows from
 * stands before the other if one follows from the other at all. */
static void make_blocks(program *x) {
  const psplit_i_copying *p = x->p;
  uint64_t reach[PSPLIT_I_COPYING_MOST] = {0}, nodes[PSPLIT_I_COPYING_MOST] = {0}, met = 0;
  find_reach(p, reach);
  for (uint32_t n = 0; n < p->n_nodes; n++) nodes[p->group[n]] |= UINT64_C(1) << n;
  uint64_t groups[PSPLIT_I_COPYING_MOST]; /* of each block */
  for (uint32_t size = p->n_nodes; size > 0; size--)
    for (uint32_t g = 0; g < p->n_nodes; g++) {
      if (!nodes[g] || (met >> g & 1) || (uint32_t)__builtin_popcountll(reach[g]) != size) continue;
      block *b = &x->blocks[x->n_blocks];
      *b = (block){.pin = PSPLIT_NONE};
      groups[x->n_blocks] = 0;
      for (uint64_t left = reach[g]; left; left &= left - 1) {
        const uint32_t h = first_of(left);
        if (!(reach[h] >> g & 1)) continue;
        groups[x->n_blocks] |= UINT64_C(1) << h;
        b->nodes |= nodes[h];
      }
      met |= groups[x->n_blocks++];
    }
  for (uint32_t a = 0; a < x->n_blocks; a++)
    for (uint32_t b = a + 1; b < x->n_blocks; b++)
      if (reach[first_of(groups[a])] & groups[b]) x->blocks[a].behind |= UINT64_C(1) << b;
}

/* False where nodes of one block are pinned to several stages. */
static bool weigh_blocks(program *x) {
  const psplit_i_copying *p = x->p;
  for (uint32_t b = 0; b < x->n_blocks; b++) {
    for (uint64_t left = x->blocks[b].nodes; left; left &= left - 1) {
      const uint32_t n = first_of(left);
      int64_t least_ns = INT64_MAX;
      for (uint32_t s = 0; s < p->n_stages; s++) {
        const int64_t ns = p->ns[(size_t)s * p->n_nodes + n];
        if (ns != PSPLIT_TIME_FORBIDDEN && ns < least_ns) least_ns = ns;
      }
      psplit_i_add_ns(&x->blocks[b].least_ns, least_ns);
      if (p->pin[n] == PSPLIT_NONE) continue;
      if (x->blocks[b].pin != PSPLIT_NONE && x->blocks[b].pin != p->pin[n]) return false;
      x->blocks[b].pin = p->pin[n];
    }
  }
  return true;
}

psplit_code psplit_i_copying_solve(const psplit_i_copying *problem, int64_t below_ns,
                                   psplit_i_budget *budget, psplit_diag *diag,
                                   psplit_i_copying_split *out, int64_t *out_bound_ns) {
  program x = {.p = problem, .budget = budget, .limit = below_ns - 1, .code = PSPLIT_OK};
  psplit_i_copying_state all = {.stage = problem->n_stages - 1};
  *out = (psplit_i_copying_split){.value_ns = INT64_MAX};
  make_blocks(&x);
  for (uint32_t e = 0; e < problem->n_nets; e++) {
    x.made[problem->net[e].producer] |= UINT64_C(1) << e;
    if (!problem->net[e].price) x.tensors |= UINT64_C(1) << e;
  }
  all.blocks = UINT64_MAX >> (64 - x.n_blocks);
  bool more = weigh_blocks(&x);
  while (more && x.limit >= 0 && place(&x, &all)) {
    x.split.value_ns = psplit_i_copying_value(problem, &x.split);
    if (x.split.value_ns > x.limit) {
      x.code = psplit_i_fail(diag, PSPLIT_INTERNAL, "a split with copies is above its limit");
      break;
    }
    *out = x.split;
    x.limit = x.split.value_ns - 1;
  }
  *out_bound_ns = x.ended ? 0 : x.limit + 1;
  psplit_i_copying_states_fini(&x.states);
  return x.code == PSPLIT_NOMEM ? psplit_i_nomem(diag) : x.code;
}
