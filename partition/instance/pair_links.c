#include "pair_links.h"

enum { MOST_TYPES = 32 }; /* that are told apart by what they can reach: all work grows with them */

/* The stages of a problem, and the classes of links that they reach. */
typedef struct stages {
  const psplit_problem *p;
  uint32_t n;
  bool forward;       /* stages send to later ones alone */
  uint32_t *entry;    /* [n] */
  uint32_t *first;    /* [n_devices + 1] stage of an entry */
  uint64_t *out, *in; /* [n] hash of the set of classes that a stage can send over, receive over */
} stages;

static uint32_t link_of(const stages *t, uint32_t x, uint32_t y) {
  return t->p->device_link[(size_t)x * t->p->n_devices + y];
}

static bool may_send(const stages *t, uint32_t from, uint32_t to) {
  if (from == to || (t->forward && to < from)) return false;
  return !t->p->next_hop || t->p->next_hop[(size_t)from * t->n + to] == to;
}

/* Whether stage s may send to some stage of entry d, or receive from one. */
static bool reaches(const stages *t, uint32_t s, uint32_t d, bool send) {
  uint32_t k = t->first[d], end = t->first[d + 1];
  if (t->forward && send && k <= s) k = s + 1;
  if (t->forward && !send && end > s) end = s;
  for (; k < end; k++)
    if (send ? may_send(t, s, k) : may_send(t, k, s)) return true;
  return false;
}

static void hash_reached(const stages *t, uint32_t *seen) {
  for (uint32_t s = 0; s < t->n; s++)
    for (uint32_t side = 0; side < 2; side++) {
      const uint32_t stamp = 2 * s + side + 1;
      uint64_t hash = 0;
      for (uint32_t d = 0; d < t->p->n_devices; d++) {
        const uint32_t c = side ? link_of(t, d, t->entry[s]) : link_of(t, t->entry[s], d);
        if (seen[c] == stamp || !reaches(t, s, d, side == 0)) continue;
        seen[c] = stamp;
        hash ^= psplit_i_splitmix64(0x11a4, c);
      }
      (side ? t->in : t->out)[s] = hash;
    }
}

/* Whether a stage may as well stand on the one entry as on the other. */
static bool alike(const stages *t, uint32_t x, uint32_t y) {
  const psplit_problem *p = t->p;
  if (x == y) return true;
  if (!psplit_i_entries_alike(&p->devices[x], &p->devices[y])) return false;
  const uint32_t between = link_of(t, x, y);
  if ((!t->forward && link_of(t, y, x) != between) ||
      (p->devices[x].count > 1 && link_of(t, x, x) != between) ||
      (p->devices[y].count > 1 && link_of(t, y, y) != between))
    return false;
  for (uint32_t z = 0; z < p->n_devices; z++) {
    if (z == x || z == y || p->devices[z].count == 0) continue;
    if ((!t->forward || z < x) && link_of(t, z, x) != link_of(t, z, y)) return false;
    if ((!t->forward || z > x) && link_of(t, x, z) != link_of(t, y, z)) return false;
  }
  return true;
}

/* Fills type_first[n + 1] with the first stage of every type; returns how many types. */
static uint32_t find_runs(const stages *t, bool by_reach, uint32_t *type_first) {
  uint32_t n_types = 0;
  uint64_t out = 0, in = 0; /* of the run; 0: its stages reach nothing that way */
  for (uint32_t s = 0; s < t->n; s++) {
    bool joins = s > 0 && alike(t, t->entry[s - 1], t->entry[s]);
    if (by_reach)
      joins &= (!out || !t->out[s] || out == t->out[s]) && (!in || !t->in[s] || in == t->in[s]);
    if (!joins) {
      type_first[n_types++] = s;
      out = in = 0;
    }
    out = out ? out : t->out[s];
    in = in ? in : t->in[s];
  }
  type_first[n_types] = t->n;
  return n_types;
}

/* Whether some stage of type a may send to one of type b. */
static bool types_reach(const stages *t, const uint32_t *type_first, uint32_t a, uint32_t b) {
  for (uint32_t i = type_first[a]; i < type_first[a + 1]; i++)
    for (uint32_t j = type_first[b]; j < type_first[b + 1]; j++) {
      if (may_send(t, i, j)) return true;
      if (!t->p->next_hop && i != j) return false; /* nor may any other two */
    }
  return false;
}

static psplit_code make_types(const stages *t, const uint32_t *type_first, uint32_t n_types,
                              psplit_i_arena *arena, psplit_problem *out) {
  psplit_device *devices = PSPLIT_NEW(arena, psplit_device, n_types);
  uint32_t *link = psplit_i_arena_array(arena, n_types, n_types * sizeof *link);
  if (!devices || !link) return PSPLIT_NOMEM;
  for (uint32_t a = 0; a < n_types; a++) {
    const uint32_t s = type_first[a];
    devices[a] = t->p->devices[t->entry[s]];
    devices[a].count = type_first[a + 1] - s;
    for (uint32_t b = 0; b < n_types; b++) {
      const uint32_t other = a != b || devices[a].count == 1 ? type_first[b] : s + 1;
      const bool used = types_reach(t, type_first, a, b);
      link[(size_t)a * n_types + b] =
        link_of(t, t->entry[s], t->entry[other]) | (used ? 0 : PSPLIT_I_LINK_UNUSED);
    }
  }
  out->devices = devices;
  out->n_devices = n_types;
  out->device_link = link;
  return PSPLIT_OK;
}

static bool all_run_ahead(const psplit_problem *p, const psplit_partition_options *options) {
  if (options->noncontiguous || options->chunks > 1) return false;
  for (uint32_t v = 0; p->node_flags && v < p->n_nodes; v++)
    if (p->node_flags[v] & PSPLIT_NODE_BACKWARD) return false;
  return true;
}

psplit_code psplit_i_pairs_merge(const psplit_problem *problem,
                                 const psplit_partition_options *options, psplit_i_arena *arena,
                                 psplit_problem *out_problem) {
  const uint32_t n = psplit_problem_n_stages(problem);
  stages t = {.p = problem,
              .n = n,
              .forward = all_run_ahead(problem, options),
              .entry = PSPLIT_NEW(arena, uint32_t, n),
              .first = PSPLIT_NEW(arena, uint32_t, (size_t)problem->n_devices + 1),
              .out = PSPLIT_NEW(arena, uint64_t, n),
              .in = PSPLIT_NEW(arena, uint64_t, n)};
  uint32_t *seen = PSPLIT_NEW(arena, uint32_t, problem->n_link_classes);
  uint32_t *type_first = PSPLIT_NEW(arena, uint32_t, (size_t)n + 1);
  if (!t.entry || !t.first || !t.out || !t.in || !seen || !type_first) return PSPLIT_NOMEM;
  for (uint32_t d = 0, s = 0; d < problem->n_devices; d++) {
    for (uint32_t k = 0; k < problem->devices[d].count; k++) t.entry[s++] = d;
    t.first[d + 1] = s;
  }
  hash_reached(&t, seen);
  uint32_t n_types = find_runs(&t, true, type_first);
  if (n_types > MOST_TYPES) n_types = find_runs(&t, false, type_first);
  return make_types(&t, type_first, n_types, arena, out_problem);
}

psplit_code psplit_i_pairs_used(const psplit_problem *p, psplit_i_arena *arena,
                                psplit_i_used_links *out) {
  const uint32_t n = p->n_devices;
  uint32_t *seen = PSPLIT_NEW(arena, uint32_t, p->n_link_classes);
  const size_t most = p->n_link_classes < n ? p->n_link_classes : n; /* of one type, one way */
  out->off = PSPLIT_NEW(arena, uint32_t, 2 * (size_t)n + 1);
  out->link = psplit_i_arena_array(arena, 2 * (size_t)n, most * sizeof *out->link);
  if (!seen || !out->off || !out->link) return PSPLIT_NOMEM;
  uint32_t at = 0;
  for (uint32_t k = 0; k < 2 * n; k++) {
    const uint32_t t = k / 2;
    for (uint32_t u = 0; u < n; u++) {
      const uint32_t c = p->device_link[k % 2 ? (size_t)u * n + t : (size_t)t * n + u];
      if (c & PSPLIT_I_LINK_UNUSED || p->devices[t].count == 0 || p->devices[u].count == 0 ||
          (t == u && p->devices[t].count == 1) || seen[c] == k + 1)
        continue;
      seen[c] = k + 1;
      out->link[at++] = c;
    }
    out->off[k + 1] = at;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_pairs_matter(const psplit_problem *problem, psplit_i_arena *arena,
                                  bool *out_matter) {
  psplit_i_used_links used;
  *out_matter = false;
  if (!problem->n_link_classes) return PSPLIT_OK;
  const psplit_code code = psplit_i_pairs_used(problem, arena, &used);
  for (uint32_t k = 0; code == PSPLIT_OK && k < 2 * problem->n_devices; k++)
    *out_matter |= used.off[k + 1] - used.off[k] > 1;
  return code;
}

/* The least of some classes for each net, into every n_types-th of `out`. */
static void least_times(const psplit_problem *p, const uint32_t *classes, uint32_t n,
                        int64_t *out) {
  for (size_t e = 0; e < p->n_nets; e++) {
    int64_t least = n ? INT64_MAX : 0;
    for (uint32_t k = 0; k < n; k++) {
      const int64_t ns = p->net_link_ns[e * p->n_link_classes + classes[k]];
      if (ns < least) least = ns;
    }
    out[e * p->n_devices] = least;
  }
}

psplit_code psplit_i_pairs_plain(const psplit_problem *problem, psplit_i_arena *arena,
                                 psplit_problem *out_problem) {
  *out_problem = *problem;
  if (!problem->n_link_classes) return PSPLIT_OK;
  const size_t n_pairs = (size_t)problem->n_devices * problem->n_devices;
  uint32_t *link = psplit_i_arena_array(arena, n_pairs, sizeof *link);
  if (!link) return PSPLIT_NOMEM;
  for (size_t k = 0; k < n_pairs; k++) link[k] = problem->device_link[k] & ~PSPLIT_I_LINK_UNUSED;
  out_problem->device_link = link;
  return PSPLIT_OK;
}

psplit_code psplit_i_pairs_relax(const psplit_problem *p, psplit_i_arena *arena,
                                 psplit_problem *out) {
  const size_t n_types = p->n_devices;
  psplit_i_used_links used;
  psplit_device *devices = PSPLIT_NEW(arena, psplit_device, n_types);
  int64_t *time = psplit_i_arena_array(arena, p->n_nodes, n_types * sizeof *time);
  int64_t *send = psplit_i_arena_array(arena, p->n_nets, n_types * sizeof *send);
  int64_t *recv = psplit_i_arena_array(arena, p->n_nets, n_types * sizeof *recv);
  if (!devices || !time || !send || !recv || psplit_i_pairs_used(p, arena, &used) != PSPLIT_OK)
    return PSPLIT_NOMEM;
  for (uint32_t t = 0; t < n_types; t++) {
    devices[t] = p->devices[t];
    devices[t].class_id = t;
    for (size_t v = 0; v < p->n_nodes; v++)
      time[v * n_types + t] = p->time_ns[v * p->n_classes + p->devices[t].class_id];
    for (uint32_t k = 2 * t; k < 2 * t + 2; k++) {
      const uint32_t from = used.off[k] < used.off[k + 1] ? k : k ^ 1; /* as in an instance */
      least_times(p, used.link + used.off[from], used.off[from + 1] - used.off[from],
                  (k % 2 ? recv : send) + t);
    }
  }
  *out = *p;
  out->n_classes = p->n_devices;
  out->devices = devices;
  out->time_ns = time;
  out->net_send_ns = send;
  out->net_recv_ns = recv;
  out->n_link_classes = 0;
  return PSPLIT_OK;
}
