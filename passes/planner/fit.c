/* Stages of topologically ordered groups that fit into memory: first fit, and the best cut. */
#include "fit.h"

#include "liveness.h"
#include "node_flags.h"

typedef struct fit {
  psplit_planner *planner;
  const uint32_t *group; /* [n_nodes] */
  uint32_t n_groups;
  uint32_t *node_off; /* [n_groups + 1] into node */
  uint32_t *node;     /* by group, then in topological order */
  uint32_t *n_works;  /* [n_groups + 1] nodes with work in the groups before */
  uint32_t like; /* all stages run on devices like this one; PSPLIT_NONE: stage i on device i */
  uint32_t n_places;
  uint32_t *stage_end; /* [n_places] the place where each filled stage ends */
  uint32_t *place;     /* [n_places] groups before which a cut may fall; the last is n_groups */
  uint32_t *list;      /* [n_nodes] a stage under test: its nodes and the free ones they need */
  uint32_t *sent;      /* [n_values] */
  uint32_t *inside;    /* [n_nodes] stamp: in the list */
  uint32_t stamp;
  int64_t *until_ns; /* [n_classes][n_places] */
  psplit_i_liveness liveness;
} fit;

static void sort_nodes(fit *f) {
  const psplit_i_graph *graph = f->planner->graph;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (f->group[n] != PSPLIT_NONE) f->node_off[f->group[n] + 2]++;
  for (uint32_t g = 0; g < f->n_groups; g++) f->node_off[g + 2] += f->node_off[g + 1];
  for (uint32_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = graph->topo[i];
    if (f->group[n] == PSPLIT_NONE) continue;
    f->node[f->node_off[f->group[n] + 1]++] = n;
    f->n_works[f->group[n] + 1] += psplit_i_node_runs(f->planner->node_flags[n]);
  }
  for (uint32_t g = 0; g < f->n_groups; g++) f->n_works[g + 1] += f->n_works[g];
}

/* A cut may not part the maker of a value that cannot be sent from its readers. */
static void find_places(fit *f, uint32_t *barred) {
  const psplit_i_graph *graph = f->planner->graph;
  for (uint32_t v = 0; v < graph->n_values; v++) {
    const uint32_t producer = graph->values[v].producer;
    if (producer == PSPLIT_NONE || f->group[producer] == PSPLIT_NONE) continue;
    if (psplit_i_planner_sendable(f->planner, v) && !f->planner->uncuttable[v]) continue;
    uint32_t last = f->group[producer];
    for (uint32_t c = graph->consumer_off[v]; c < graph->consumer_off[v + 1]; c++)
      if (f->group[graph->consumers[c]] > last) last = f->group[graph->consumers[c]];
    barred[f->group[producer] + 1]++;
    barred[last + 1]--;
  }
  for (uint32_t g = 0, depth = 0; g <= f->n_groups; g++) {
    depth += barred[g]; /* modulo 2^32: the sum is never below 0 */
    if (depth == 0) f->place[f->n_places++] = g;
  }
}

/* The free nodes that the list's nodes need, behind them. */
static uint32_t add_free_nodes(fit *f, uint32_t n) {
  const psplit_i_graph *graph = f->planner->graph;
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_node *node = &graph->nodes[f->list[i]];
    for (uint32_t r = 0; r < node->n_inputs + node->n_captures; r++) {
      const uint32_t value =
        r < node->n_inputs ? node->inputs[r] : node->captures[r - node->n_inputs];
      const uint32_t producer = value == PSPLIT_NONE ? PSPLIT_NONE : graph->values[value].producer;
      if (producer == PSPLIT_NONE || f->group[producer] != PSPLIT_NONE ||
          f->inside[producer] == f->stamp)
        continue;
      f->inside[producer] = f->stamp;
      f->list[n++] = producer;
    }
  }
  return n;
}

/* Memory of a stage of the groups from `first` up to `end`. */
static void measure(fit *f, uint32_t first, uint32_t end, psplit_i_stage_memory *out) {
  const psplit_i_graph *graph = f->planner->graph;
  uint32_t n = 0, n_sent = 0;
  f->stamp++;
  for (uint32_t p = f->node_off[first]; p < f->node_off[end]; p++) {
    f->list[n++] = f->node[p];
    f->inside[f->node[p]] = f->stamp;
  }
  for (uint32_t i = 0; i < n; i++) {
    const psplit_i_node *node = &graph->nodes[f->list[i]];
    for (uint32_t o = 0; o < node->n_outputs; o++) {
      const uint32_t value = node->outputs[o];
      if (value == PSPLIT_NONE) continue;
      for (uint32_t c = graph->consumer_off[value]; c < graph->consumer_off[value + 1]; c++)
        if (f->inside[graph->consumers[c]] != f->stamp) {
          f->sent[n_sent++] = value;
          break;
        }
    }
  }
  psplit_i_liveness_measure(&f->liveness, f->list, add_free_nodes(f, n), f->sent, n_sent, out);
}

static uint64_t need_of(const fit *f, uint32_t stage, const psplit_i_stage_memory *memory) {
  if (f->like == PSPLIT_NONE) return psplit_i_stage_need(f->planner, stage, memory);
  psplit_i_stage_memory but_stash = *memory;
  but_stash.stashed_bytes = 0;
  return psplit_i_sat_add_u64(psplit_i_stage_need(f->planner, f->like, &but_stash),
                              psplit_i_stage_stash(f->planner, stage, memory));
}

static uint64_t memory_of(const fit *f, uint32_t stage) {
  return psplit_devices_memory_bytes(f->planner->devices, f->like == PSPLIT_NONE ? stage : f->like);
}

static bool fits(fit *f, uint32_t from, uint32_t to, uint32_t stage) {
  psplit_i_stage_memory memory;
  measure(f, f->place[from], f->place[to], &memory);
  return need_of(f, stage, &memory) <= memory_of(f, stage);
}

/* Whether a node of the stage reaches an output of the model. */
static bool has_work(const fit *f, uint32_t from, uint32_t to) {
  return f->n_works[f->place[to]] > f->n_works[f->place[from]];
}

/* The furthest place that the search meets where a stage from `from` still fits; `from` if none. A
 * group that sends more than it holds may only fit with some of its readers. */
static uint32_t furthest(fit *f, uint32_t from, uint32_t stage) {
  enum { MOST_READERS = 64 };
  const uint32_t end = f->n_places - 1;
  uint32_t good = from + 1, step = 1;
  while (!fits(f, from, good, stage))
    if (good++ == end || good - from > MOST_READERS) return from;
  uint32_t bad = good;
  do {
    good = bad;
    if (good == end) return good;
    step *= 2;
    bad = end - good < step ? end : good + step;
  } while (fits(f, from, bad, stage));
  while (bad > good + 1) {
    const uint32_t middle = good + (bad - good) / 2;
    if (fits(f, from, middle, stage))
      good = middle;
    else
      bad = middle;
  }
  return good;
}

/* Time to receive or send n tensors of `bytes` together over the link to a neighbour in the order
 * of stages, in one message where latency is a message's; 0 where there is none. */
static int64_t transfer_ns(const fit *f, uint32_t from, uint32_t to, uint32_t n, uint64_t bytes) {
  if (n == 0 || to >= f->planner->options.n_stages) return 0;
  const psplit_devices *devices = f->planner->devices;
  if (f->planner->options.message_latency == PSPLIT_LATENCY_PER_PAIR) n = 1;
  return psplit_i_sat_add_i64(
    psplit_devices_transfer_ns(devices, from, to, bytes),
    psplit_i_sat_mul_i64(psplit_devices_transfer_ns(devices, from, to, 0), (int64_t)n - 1));
}

static int64_t load_ns(const fit *f, uint32_t from, uint32_t to, uint32_t device,
                       const psplit_i_stage_memory *m) {
  const int64_t *until = &f->until_ns[(size_t)f->planner->device_class[device] * f->n_places];
  const int64_t recv_ns =
    device ? transfer_ns(f, device - 1, device, m->n_received, m->received_bytes) : 0;
  const int64_t send_ns = transfer_ns(f, device, device + 1, m->n_sent, m->sent_bytes);
  return psplit_i_planner_load_ns(f->planner, until[to] - until[from], recv_ns, send_ns);
}

/* until_ns[class][place]: compute time of the groups before the place. */
static bool sum_times(fit *f) {
  const psplit_planner *planner = f->planner;
  f->until_ns = psplit_i_arena_zeroed(&f->planner->scratch,
                                      (size_t)planner->n_classes * f->n_places, sizeof(int64_t));
  if (!f->until_ns) return false;
  for (uint32_t c = 0; c < planner->n_classes; c++) {
    int64_t *until = &f->until_ns[(size_t)c * f->n_places];
    for (uint32_t i = 1; i < f->n_places; i++) {
      until[i] = until[i - 1];
      for (uint32_t p = f->node_off[f->place[i - 1]]; p < f->node_off[f->place[i]]; p++)
        until[i] = psplit_i_sat_add_i64(
          until[i], planner->node_ns[(size_t)c * planner->graph->n_nodes + f->node[p]]);
    }
  }
  return true;
}

/* Keeps at most about `most` places: evenly many nodes apart, and those in keep[n_keep], ascending.
 */
static void thin_places(fit *f, uint32_t most, uint32_t *keep, uint32_t n_keep) {
  const uint64_t n_nodes = f->node_off[f->n_groups];
  uint32_t n = 0, k = 0;
  uint64_t mark = 0;
  if (f->n_places <= most) return;
  for (uint32_t i = 0; i < f->n_places; i++) {
    const bool kept = k < n_keep && keep[k] == i;
    const uint64_t at = f->node_off[f->place[i]];
    if (!kept && at * most < mark * n_nodes && i + 1 < f->n_places) continue;
    mark = at * most / n_nodes + 1;
    if (kept) keep[k++] = n;
    f->place[n++] = f->place[i];
  }
  f->n_places = n;
}

/* The cut into n_stages with the least largest load among those that fall on places and fit, with
 * work in each stage: the chain partitioning recursion over (stages used, place). False where none
 * fits, or out of memory. */
static bool cut_places(fit *f, uint32_t *stage_end) {
  const uint32_t n = f->n_places, n_stages = f->planner->options.n_stages;
  int64_t *least = psplit_i_arena_array(&f->planner->scratch, (size_t)n * (n_stages + 1),
                                        sizeof *least); /* [stages used][place] */
  uint32_t *from =
    psplit_i_arena_array(&f->planner->scratch, (size_t)n * (n_stages + 1), sizeof *from);
  if (!least || !from) return false;
  for (size_t i = 0; i < (size_t)n * (n_stages + 1); i++) least[i] = -1;
  least[0] = 0;
  uint64_t largest = 0;
  for (uint32_t s = 0; s < n_stages; s++)
    if (psplit_devices_memory_bytes(f->planner->devices, s) > largest)
      largest = psplit_devices_memory_bytes(f->planner->devices, s);
  for (uint32_t i = 0; i + 1 < n; i++)
    for (uint32_t j = i + 1; j < n; j++) {
      psplit_i_stage_memory memory;
      measure(f, f->place[i], f->place[j], &memory);
      if (memory.weight_bytes > largest) break; /* weights only grow with j */
      if (n_stages > 1 && !has_work(f, i, j)) continue;
      for (uint32_t s = 0; s < n_stages; s++) {
        const int64_t before = least[(size_t)s * n + i];
        if (before < 0 || need_of(f, s, &memory) > memory_of(f, s)) continue;
        const int64_t load = load_ns(f, i, j, s, &memory);
        const int64_t value = load > before ? load : before;
        int64_t *slot = &least[(size_t)(s + 1) * n + j];
        if (*slot >= 0 && *slot <= value) continue;
        *slot = value;
        from[(size_t)(s + 1) * n + j] = i;
      }
    }
  uint32_t at = n - 1;
  if (least[(size_t)n_stages * n + at] < 0) return false;
  for (uint32_t s = n_stages; s-- > 0;) {
    stage_end[s] = at;
    at = from[(size_t)(s + 1) * n + at];
  }
  return true;
}

static psplit_code prepare(fit *f, psplit_diag *diag) {
  psplit_i_arena *arena = &f->planner->scratch;
  const psplit_i_graph *graph = f->planner->graph;
  uint32_t *barred = PSPLIT_NEW(arena, uint32_t, (size_t)f->n_groups + 2);
  f->node_off = PSPLIT_NEW(arena, uint32_t, (size_t)f->n_groups + 2);
  f->node = PSPLIT_NEW(arena, uint32_t, graph->n_nodes);
  f->n_works = PSPLIT_NEW(arena, uint32_t, (size_t)f->n_groups + 1);
  f->place = PSPLIT_NEW(arena, uint32_t, (size_t)f->n_groups + 1);
  f->list = PSPLIT_NEW(arena, uint32_t, graph->n_nodes);
  f->sent = PSPLIT_NEW(arena, uint32_t, graph->n_values);
  f->inside = PSPLIT_NEW(arena, uint32_t, graph->n_nodes);
  if (arena->failed) return psplit_i_nomem(diag);
  sort_nodes(f);
  find_places(f, barred);
  f->stage_end = PSPLIT_NEW(arena, uint32_t, f->n_places);
  if (arena->failed) return psplit_i_nomem(diag);
  return psplit_i_liveness_init(&f->liveness, f->planner, arena, diag);
}

/* First fit: fills stages one after another. Of given devices, the last stands for all beyond. */
static void fill(fit *f, psplit_i_fit *out) {
  const uint32_t n_devices = f->planner->options.n_stages;
  const bool alike = f->like != PSPLIT_NONE;
  uint32_t n = 0;
  *out = (psplit_i_fit){.blocking_node = PSPLIT_NONE, .blocking_value = PSPLIT_NONE};
  for (uint32_t at = 0, next = 0; at + 1 < f->n_places; n++, next++) {
    uint32_t stage = alike || next < n_devices ? next : n_devices - 1;
    uint32_t end = furthest(f, at, stage);
    for (; end == at && !alike && stage + 1 < n_devices; out->n_skipped++, next = stage)
      end = furthest(f, at, ++stage);
    if (end == at) {
      psplit_i_stage_memory memory;
      measure(f, f->place[at], f->place[at + 1], &memory);
      out->blocking_bytes = need_of(f, stage, &memory);
      out->blocking_node = memory.peak_node;
      out->blocking_value = memory.largest_value;
      return;
    }
    f->stage_end[n] = at = end;
  }
  out->n_stages = n;
}

static void number_stages(const fit *f, uint32_t n_stages, uint32_t *group_stage) {
  for (uint32_t s = 0, g = 0; s < n_stages; s++)
    for (; g < f->place[f->stage_end[s]]; g++) group_stage[g] = s;
}

psplit_code psplit_i_fit_memory(psplit_planner *planner, const uint32_t *group, uint32_t n_groups,
                                uint32_t *group_stage, psplit_i_fit *out, bool *out_cut,
                                psplit_diag *diag) {
  psplit_code code;
  enum { MAX_PLACES = 400 };
  const uint32_t n_wanted = planner->options.n_stages;
  fit f = {.planner = planner, .group = group, .n_groups = n_groups, .like = PSPLIT_NONE};
  *out_cut = false;
  PSPLIT_TRY(prepare(&f, diag));
  fill(&f, out);
  if (!out->n_stages || out->n_stages > n_wanted || out->n_skipped || !group_stage)
    return PSPLIT_OK;
  thin_places(&f, MAX_PLACES, f.stage_end, out->n_stages);
  if (!sum_times(&f)) return psplit_i_nomem(diag);
  if (!cut_places(&f, f.stage_end)) return PSPLIT_OK;
  *out_cut = true;
  number_stages(&f, n_wanted, group_stage);
out:
  return code;
}

static bool all_work(const fit *f, uint32_t n_stages) {
  uint32_t s = 0;
  while (s < n_stages && has_work(f, s ? f->stage_end[s - 1] : 0, f->stage_end[s])) s++;
  return s == n_stages || n_stages == 1;
}

psplit_code psplit_i_fit_alike(psplit_planner *planner, const uint32_t *group, uint32_t n_groups,
                               uint32_t device, uint32_t *group_stage, psplit_i_fit *out,
                               uint32_t *out_n_assumed, psplit_diag *diag) {
  psplit_code code;
  enum { MAX_ROUNDS = 16 };
  const uint32_t n_wanted = planner->options.n_stages;
  fit f = {.planner = planner, .group = group, .n_groups = n_groups, .like = device};
  PSPLIT_TRY(prepare(&f, diag));
  uint32_t n_assumed = n_wanted;
  for (unsigned round = 0; round < MAX_ROUNDS; round++) {
    planner->options.n_stages = n_assumed; /* what sequences in flight keep depends on it */
    fill(&f, out);
    if (!out->n_stages || out->n_stages == n_assumed) break;
    n_assumed = out->n_stages;
  }
  planner->options.n_stages = n_wanted;
  *out_n_assumed = n_assumed;
  if (out->n_stages != n_assumed || !all_work(&f, n_assumed)) out->n_stages = 0;
  number_stages(&f, out->n_stages, group_stage);
out:
  return code;
}
