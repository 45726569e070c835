#include "grouping.h"

#include <stdlib.h>
#include <string.h>

#include "node_flags.h"

/* A merge that would have to look at more groups than this is refused: what it gains is never worth
 * a quadratic run on a million nodes. */
enum { MAX_REGION = 20000 };

/* So is one that looks at more than a few, once all merges together have looked at this many
 * places: a wide graph of a million nodes would take minutes otherwise. Real models stay far
 * below. */
static const uint64_t MAX_WORK = UINT64_C(1) << 28;
enum { NARROW_REGION = 64 };

static uint32_t region_limit(const psplit_i_grouping *g) {
  return g->work < MAX_WORK ? MAX_REGION : NARROW_REGION;
}

static bool is_free(const psplit_i_grouping *g, uint32_t node) {
  return g->node_flags[node] & PSPLIT_I_NODE_FREE;
}

/* Depth-first order from the outputs back: a node follows its inputs as closely as can be, so the
 * nodes of a chain lie together, which keeps the regions that merges search small. */
static bool depth_first_order(const psplit_i_graph *graph, uint32_t *out_order, uint32_t *out_n) {
  uint32_t *stack = malloc((graph->n_nodes + 1) * sizeof *stack);
  uint32_t *next_read = calloc(graph->n_nodes + 1, sizeof *next_read); /* 0: not met */
  uint32_t n = 0;
  if (stack && next_read) {
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
      uint32_t depth = 0;
      if (!next_read[graph->topo[i]]) stack[depth++] = graph->topo[i];
      while (depth) {
        const uint32_t node = stack[depth - 1];
        const psplit_i_node *data = &graph->nodes[node];
        const uint32_t read = next_read[node]++;
        if (read == data->n_inputs + data->n_captures) {
          out_order[n++] = node;
          next_read[node] = UINT32_MAX;
          depth--;
          continue;
        }
        const uint32_t value =
          read < data->n_inputs ? data->inputs[read] : data->captures[read - data->n_inputs];
        const uint32_t producer =
          value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
        if (producer != PSPLIT_NONE && !next_read[producer]) stack[depth++] = producer;
      }
    }
  }
  const bool done = stack && next_read;
  free(stack);
  free(next_read);
  *out_n = n;
  return done;
}

bool psplit_i_grouping_init(psplit_i_grouping *g, const psplit_i_graph *graph,
                            const uint8_t *node_flags, const uint32_t *pin, psplit_i_arena *arena) {
  const size_t n = graph->n_nodes;
  *g = (psplit_i_grouping){.graph = graph, .node_flags = node_flags};
  uint32_t **arrays[] = {&g->leader, &g->next, &g->size, &g->position,
                         &g->order,  &g->pin,  &g->mark};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
    if (!(*arrays[i] = PSPLIT_NEW(arena, uint32_t, n))) return false;
  uint32_t n_ordered;
  if (!depth_first_order(graph, g->order, &n_ordered)) return false;
  for (uint32_t p = 0; p < n; p++) {
    const uint32_t node = g->order[p];
    g->leader[node] = g->next[node] = node;
    g->size[node] = 1;
    g->pin[node] = pin[node];
    g->position[node] = p;
    if (is_free(g, node))
      g->order[p] = PSPLIT_NONE;
    else
      g->n_groups++;
  }
  return true;
}

uint32_t psplit_i_group_of(const psplit_i_grouping *g, uint32_t node) {
  /* Path halving keeps finds short; the partition it stands for does not change. */
  uint32_t *leader = g->leader;
  while (leader[node] != node) node = leader[node] = leader[leader[node]];
  return node;
}

/* Nodes that read an output of `node`: an iteration over (output, consumer) pairs. */
#define FOR_EACH_SUCCESSOR(graph, node, successor)                                           \
  for (uint32_t o_ = 0; o_ < (graph)->nodes[node].n_outputs; o_++)                           \
    if ((graph)->nodes[node].outputs[o_] != PSPLIT_NONE)                                     \
      for (uint32_t c_ = (graph)->consumer_off[(graph)->nodes[node].outputs[o_]], successor; \
           c_ < (graph)->consumer_off[(graph)->nodes[node].outputs[o_] + 1] &&               \
           (successor = (graph)->consumers[c_], true);                                       \
           c_++)

/* Search state of one merge. */
typedef struct region {
  uint32_t low, high; /* positions of the first and last group to merge */
  uint32_t *reached;  /* leaders the set reaches inside the region, not in the set */
  uint32_t n_reached;
  uint64_t looked; /* members and their readers that the search has seen */
} region;

/* Marks: stamp = in the set, stamp + 1 = reached from it. */
static bool search(psplit_i_grouping *g, const uint32_t *leaders, uint32_t n, region *r,
                   bool *out_convex) {
  const psplit_i_graph *graph = g->graph;
  *out_convex = true;
  for (uint32_t i = 0; i < n + r->n_reached; i++) {
    const uint32_t leader = i < n ? leaders[i] : r->reached[i - n];
    uint32_t member = leader;
    /* All that the last one reaches is behind it. A group that grows towards its inputs is the last
     * at each step: it would be searched whole, again and again. */
    if (g->position[leader] == r->high) continue;
    do {
      if (r->looked++ > 16 * (uint64_t)region_limit(g) && g->work >= MAX_WORK) return false;
      FOR_EACH_SUCCESSOR(graph, member, successor) {
        r->looked++;
        if (is_free(g, successor)) continue;
        const uint32_t to = psplit_i_group_of(g, successor);
        if (g->mark[to] == g->stamp) {
          if (i >= n) *out_convex = false;
        } else if (g->mark[to] != g->stamp + 1 && g->position[to] < r->high) {
          if (r->n_reached == region_limit(g)) return false;
          g->mark[to] = g->stamp + 1;
          r->reached[r->n_reached++] = to;
        }
      }
      member = g->next[member];
    } while (member != leader);
  }
  return true;
}

/* Stamps the groups to merge; 0 of them where their pins differ. */
static uint32_t distinct_leaders(psplit_i_grouping *g, const uint32_t *nodes, uint32_t n,
                                 uint32_t *leaders, region *r) {
  uint32_t n_leaders = 0;
  g->stamp += 2;
  r->low = UINT32_MAX;
  r->high = 0;
  uint32_t pin = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t leader = psplit_i_group_of(g, nodes[i]);
    if (g->mark[leader] == g->stamp) continue;
    g->mark[leader] = g->stamp;
    leaders[n_leaders++] = leader;
    if (g->pin[leader] != PSPLIT_NONE && pin != PSPLIT_NONE && pin != g->pin[leader]) return 0;
    if (g->pin[leader] != PSPLIT_NONE) pin = g->pin[leader];
    if (g->position[leader] < r->low) r->low = g->position[leader];
    if (g->position[leader] > r->high) r->high = g->position[leader];
  }
  return n_leaders;
}

/* Joins member lists and puts the result at `position`. */
static void join(psplit_i_grouping *g, const uint32_t *leaders, uint32_t n, uint32_t position) {
  uint32_t top = leaders[0];
  for (uint32_t i = 1; i < n; i++)
    if (g->size[leaders[i]] > g->size[top]) top = leaders[i];
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t leader = leaders[i];
    if (leader == top) continue;
    const uint32_t after = g->next[top]; /* splice two circular lists */
    g->next[top] = g->next[leader];
    g->next[leader] = after;
    g->size[top] += g->size[leader];
    g->leader[leader] = top;
    if (g->pin[leader] != PSPLIT_NONE) g->pin[top] = g->pin[leader];
    g->n_groups--;
  }
  g->order[position] = top;
  g->position[top] = position;
}

psplit_code psplit_i_group_merge(psplit_i_grouping *g, const uint32_t *nodes, uint32_t n,
                                 psplit_diag *diag, bool *out_merged) {
  psplit_code code = PSPLIT_OK;
  uint32_t *leaders = malloc(((size_t)n + 1) * sizeof *leaders);
  region r = {.reached = malloc(MAX_REGION * sizeof(uint32_t))};
  uint32_t *moved = NULL;
  bool convex;
  *out_merged = false;
  if (!leaders || !r.reached) PSPLIT_FAIL(psplit_i_nomem(diag));
  const uint32_t n_leaders = distinct_leaders(g, nodes, n, leaders, &r);
  *out_merged = n_leaders == 1;
  if (n_leaders < 2 || r.high - r.low > 8 * region_limit(g)) goto out;
  const bool searched = search(g, leaders, n_leaders, &r, &convex);
  g->work += r.looked;
  if (!searched || !convex) goto out;

  /* Of the region: what the set does not reach keeps its place towards the front, then the merged
   * group, then what it reaches. */
  const uint32_t width = r.high - r.low + 1;
  g->work += width;
  moved = malloc(width * sizeof *moved);
  if (!moved) PSPLIT_FAIL(psplit_i_nomem(diag));
  uint32_t n_moved = 0, at = r.low;
  for (uint32_t p = r.low; p <= r.high; p++) {
    const uint32_t leader = g->order[p];
    g->order[p] = PSPLIT_NONE;
    if (leader == PSPLIT_NONE || g->mark[leader] == g->stamp) continue;
    if (g->mark[leader] == g->stamp + 1) {
      moved[n_moved++] = leader;
    } else {
      g->order[at] = leader;
      g->position[leader] = at++;
    }
  }
  join(g, leaders, n_leaders, at++);
  for (uint32_t i = 0; i < n_moved; i++, at++) {
    g->order[at] = moved[i];
    g->position[moved[i]] = at;
  }
  *out_merged = true;
out:
  free(moved);
  free(r.reached);
  free(leaders);
  return code;
}

void psplit_i_grouping_assign(psplit_i_grouping *g, const uint32_t *label, uint32_t n_labels) {
  const uint32_t n = g->graph->n_nodes;
  uint32_t *pin_of = g->mark; /* by label; marks start afresh below */
  for (uint32_t l = 0; l < n_labels; l++) pin_of[l] = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    if (label[i] == PSPLIT_NONE) continue;
    const uint32_t pin = g->pin[psplit_i_group_of(g, i)];
    if (pin != PSPLIT_NONE) pin_of[label[i]] = pin;
  }
  for (uint32_t p = 0; p < n; p++) g->order[p] = PSPLIT_NONE;
  for (uint32_t i = 0; i < n; i++) {
    g->leader[i] = g->next[i] = i;
    g->size[i] = 1;
    if (label[i] == PSPLIT_NONE) continue;
    const uint32_t top = g->order[label[i]];
    if (top == PSPLIT_NONE) {
      g->order[label[i]] = i;
      g->position[i] = label[i];
      g->pin[i] = pin_of[label[i]];
    } else {
      g->leader[i] = top;
      g->next[i] = g->next[top];
      g->next[top] = i;
      g->size[top]++;
    }
  }
  memset(g->mark, 0, n * sizeof *g->mark);
  g->stamp = 0;
  g->n_groups = n_labels;
  g->assigned = true;
}

void psplit_i_grouping_number(const psplit_i_grouping *g, uint32_t *out_group) {
  const uint32_t n = g->graph->n_nodes;
  uint32_t number = 0;
  for (uint32_t i = 0; i < n; i++) out_group[i] = PSPLIT_NONE;
  for (uint32_t p = 0; p < n; p++) {
    const uint32_t leader = g->order[p];
    if (leader == PSPLIT_NONE) continue;
    uint32_t member = leader;
    do {
      out_group[member] = number;
      member = g->next[member];
    } while (member != leader);
    number++;
  }
}
