/* Latency, interleaved chunks, non-contiguous placement: from the best contiguous split by
 * annealing, exact by branch and bound where the problem is small, bounded by min cuts and critical
 * paths. */
#include <stdlib.h>
#include <string.h>

#include "assignment.h"
#include "automaton.h"
#include "branch_and_bound.h"
#include "budget.h"
#include "communication_share.h"
#include "contiguous.h"
#include "instance.h"
#include "label_annealing.h"
#include "latency_chain.h"
#include "local_search.h"
#include "multilevel_annealing.h"
#include "node_cut.h"
#include "placement.h"
#include "placing.h"
#include "problem.h"
#include "reductions.h"
#include "result.h"

enum {
  BRUTE_STEPS = 3000000,
  MAX_STEPS = 64,
  ANNEAL_STEPS = 3000000, /* of a chain */
  STEPS_PER_ITEM = 4000,  /* of one way down from clusters */
  MOST_STEPS = 1300000,
};
static const uint64_t SLICE_WORK = UINT64_C(200000000); /* pairs of positions times moves */

/* No latency is below the longest path of least times. */
static int64_t critical_path(const psplit_core *core, const psplit_machine *machine,
                             int64_t *scratch) {
  int64_t longest = 0;
  for (uint32_t i = 0; i < core->n; i++) {
    scratch[i] = 0;
    for (uint32_t k = core->pred_off[i]; k < core->pred_off[i + 1]; k++)
      if (scratch[core->pred[k]] > scratch[i]) scratch[i] = scratch[core->pred[k]];
    scratch[i] += machine->omega[i];
    if (scratch[i] > longest) longest = scratch[i];
  }
  return longest;
}

/* The best contiguous throughput split, by node: a start for everything else. */
static psplit_code contiguous_start(const psplit_job *job, psplit_answer *answer) {
  psplit_partition_options options = *job->options;
  options.objective = PSPLIT_THROUGHPUT;
  options.noncontiguous = false;
  options.chunks = 1;
  const double limit = job->options->time_limit_s;
  options.time_limit_s = limit < 0 || limit > 4 ? 2 : limit / 2;
  const psplit_deadline deadline = psplit_i_deadline_in(&options);
  const psplit_job inner = {job->problem, &options, deadline, job->arena, job->diag};
  return psplit_i_contiguous(&inner, answer);
}

/* Start for chunks: the devices, repeated, as stages of their own; labels 0 .. chunks * K - 1.
 * Memory may not fit then, and the board says so. */
static psplit_code folded_start(const psplit_job *job, uint32_t chunks, uint32_t *stage) {
  psplit_problem problem = *job->problem;
  psplit_partition_options options = *job->options;
  const uint32_t n = problem.n_devices;
  psplit_device *devices = PSPLIT_NEW(job->arena, psplit_device, (size_t)n * chunks);
  psplit_answer answer;
  psplit_diag ignored = {0};
  if (!devices) return PSPLIT_NOMEM;
  for (uint32_t c = 0; c < chunks; c++)
    memcpy(devices + (size_t)c * n, problem.devices, n * sizeof *devices);
  problem.devices = devices;
  problem.n_devices = n * chunks;
  problem.any_device_order = false;
  problem.pin = NULL;
  options.chunks = 1;
  options.noncontiguous = options.require_nonempty = false;
  options.objective = PSPLIT_THROUGHPUT;
  options.time_limit_s = 1;
  const psplit_deadline deadline = psplit_i_deadline_in(&options);
  const psplit_job inner = {&problem, &options, deadline, job->arena, &ignored};
  psplit_code code = psplit_i_answer_init(&answer, &inner);
  if (code == PSPLIT_OK) code = psplit_i_contiguous(&inner, &answer);
  if (code == PSPLIT_OK) memcpy(stage, answer.stage, problem.n_nodes * sizeof *stage);
  return code;
}

/* Value of a full placement, INF when it breaks a rule. Leaves the board empty. */
static int64_t judge(psplit_board *board, const uint32_t *types, const uint32_t *label) {
  const psplit_core *core = board->core;
  memcpy(board->type, types, board->n_devices * sizeof *types);
  bool ok = true;
  for (uint32_t v = 0; v < core->n; v++) {
    const uint32_t k = label[v] % board->n_devices;
    ok &= core->w[(size_t)types[k] * core->n + v] < PSPLIT_I_INF;
    ok &= core->pin[v] == PSPLIT_NONE || core->pin[v] == k;
  }
  if (!ok) return PSPLIT_I_INF;
  for (uint32_t v = 0; v < core->n; v++) psplit_i_board_add(board, v, label[v]);
  for (uint32_t k = 0; k < board->n_devices; k++) {
    ok &= psplit_i_board_fits(board, k);
    ok &= !board->nonempty || board->n_counted[k] > 0;
  }
  const int64_t value = ok ? psplit_i_board_settle(board, NULL) : PSPLIT_I_INF;
  for (uint32_t v = 0; v < core->n; v++) psplit_i_board_remove(board, v);
  return value;
}

/* Devices that a contiguous answer did not name take what is left of each type. */
static void complete_types(const psplit_job *job, const psplit_answer *answer, uint32_t *types) {
  const psplit_problem *p = job->problem;
  const uint32_t n_stages = psplit_problem_n_stages(p);
  if (!p->any_device_order || (job->options->noncontiguous && !p->pin)) {
    uint32_t k = 0;
    for (uint32_t d = 0; d < p->n_devices; d++)
      for (uint32_t i = 0; i < p->devices[d].count; i++) types[k++] = d;
    return;
  }
  for (uint32_t s = 0; s < n_stages; s++) types[s] = PSPLIT_NONE;
  for (uint32_t v = 0; v < p->n_nodes; v++)
    types[answer->stage[v]] = answer->device[answer->stage[v]];
  for (uint32_t d = 0; d < p->n_devices; d++) {
    uint32_t left = p->devices[d].count;
    for (uint32_t s = 0; s < n_stages; s++) left -= types[s] == d;
    for (uint32_t s = 0; s < n_stages && left > 0; s++)
      if (types[s] == PSPLIT_NONE) types[s] = d, left--;
  }
}

/* A contiguous answer may use its devices in another order than the board lists them. */
static void labels_of(const psplit_job *job, const psplit_core *core, const psplit_answer *answer,
                      const uint32_t *types, uint32_t *label, uint32_t *slot) {
  const uint32_t n_stages = core->n_stages;
  for (uint32_t s = 0; s < n_stages; s++) slot[s] = s;
  if (job->options->noncontiguous && job->problem->any_device_order && !job->problem->pin) {
    bool *taken = PSPLIT_NEW(job->arena, bool, n_stages);
    bool *in_use = PSPLIT_NEW(job->arena, bool, n_stages);
    if (!taken || !in_use) return;
    for (uint32_t v = 0; v < job->problem->n_nodes; v++) in_use[answer->stage[v]] = true;
    for (uint32_t s = 0; s < n_stages; s++) {
      uint32_t k = 0;
      while (in_use[s] && k < n_stages && (taken[k] || types[k] != answer->device[s])) k++;
      if (!in_use[s] || k == n_stages) continue;
      taken[k] = true;
      slot[s] = k;
    }
  }
  for (uint32_t v = 0; v < job->problem->n_nodes; v++)
    label[core->item_of_node[v]] = slot[answer->stage[v]];
}

/* Nor is it below the sum of loads of stages that wait for one another, nor below the
 * least bottleneck: a stage's load is a part of its time. */
static psplit_code latency_bounds(const psplit_job *job, const psplit_core *core,
                                  const psplit_machine *machine, int64_t throughput_bound,
                                  psplit_answer *out) {
  int64_t *scratch = PSPLIT_NEW(job->arena, int64_t, core->n);
  if (!scratch) return PSPLIT_NOMEM;
  const int64_t path = critical_path(core, machine, scratch);
  if (path > out->bound) {
    out->bound = path;
    out->bound_name = "critical path";
  }
  if (throughput_bound > out->bound) {
    out->bound = throughput_bound;
    out->bound_name = "throughput";
  }
  const int64_t before = out->bound;
  const psplit_code code = psplit_i_chain_bound(core, machine, &out->bound);
  if (out->bound > before) out->bound_name = "chain of stages";
  return code;
}

/* throughput_bound: of contiguous splits, 0: unknown. */
static psplit_code bounds(const psplit_job *job, const psplit_core *core,
                          const psplit_machine *machine, int64_t value, int64_t throughput_bound,
                          psplit_answer *out) {
  out->bound = psplit_i_simple_bound(core, machine);
  out->bound_name = "total over devices, heaviest node";
  if (job->options->objective == PSPLIT_LATENCY)
    return latency_bounds(job, core, machine, throughput_bound, out);
  const int64_t before = out->bound;
  const psplit_code code = psplit_i_node_bound(
    core, machine, value, core->n <= 3000 ? core->n : 100, &job->deadline, &out->bound);
  if (out->bound > before) out->bound_name = "node min cut";
  return code;
}

/* A placement by node, and the core it is being improved on. */
typedef struct placing {
  const psplit_job *job;
  psplit_core core;
  psplit_machine machine;
  psplit_partition_options loose; /* the machine is only asked for measures */
  uint32_t *node_label, *types, *parent;
  int64_t value;
} placing;

static psplit_code bind(placing *p) {
  psplit_i_machine_fini(&p->machine);
  return psplit_i_machine_init(&p->machine, &p->core, &p->loose, p->job->diag);
}

static void to_nodes(placing *p, const uint32_t *label, int64_t value) {
  for (uint32_t v = 0; v < p->job->problem->n_nodes; v++)
    p->node_label[v] = label[p->core.item_of_node[v]];
  p->value = value;
}

static psplit_code place(const psplit_job *job, bool with_bounds, psplit_answer *out_answer);

/* Another problem or other options as a start for the job: no bounds, and a part of its time. */
static psplit_code place_first(const psplit_job *job, const psplit_problem *problem,
                               psplit_partition_options options, psplit_answer *answer) {
  psplit_diag ignored = {0};
  options.time_limit_s = options.time_limit_s < 0 ? 3 : options.time_limit_s * 0.3;
  const psplit_job inner = {problem, &options, job->deadline, job->arena, &ignored};
  return place(&inner, false, answer);
}

/* Two chunks per device are a way from contiguous to free placement. */
static psplit_code two_chunks(const psplit_job *job, psplit_answer *answer) {
  psplit_partition_options options = *job->options;
  options.noncontiguous = false;
  options.chunks = 2;
  return place_first(job, job->problem, options, answer);
}

/* Devices that pay nothing draw work to them that annealing seldom takes away again: what the
 * others do by themselves is a start as well. UNSUPPORTED where there is no such device, or no
 * other. */
static psplit_code paying_alone(const psplit_job *job, psplit_answer *answer) {
  psplit_problem problem = *job->problem;
  psplit_device *devices = PSPLIT_NEW(job->arena, psplit_device, problem.n_devices);
  if (!devices) return PSPLIT_NOMEM;
  memcpy(devices, problem.devices, problem.n_devices * sizeof *devices);
  for (uint32_t d = 0; d < problem.n_devices; d++)
    if (devices[d].free_comm) devices[d].count = 0;
  problem.devices = devices;
  const uint32_t n_stages = psplit_problem_n_stages(&problem);
  if (n_stages == 0 || n_stages == psplit_problem_n_stages(job->problem) || problem.pin ||
      job->options->require_nonempty)
    return PSPLIT_UNSUPPORTED;
  return place_first(job, &problem, *job->options, answer);
}

/* For latency: search for a split whose loads add up to the least, which is its latency where each
 * stage waits for the one before. */
static psplit_code adding_start(placing *p, psplit_board *board, uint32_t *label) {
  const psplit_core *core = &p->core;
  const uint64_t slice =
    1 + (uint64_t)core->n * core->n / 2 * p->machine.move_off[p->machine.n_states];
  if (slice > SLICE_WORK) return PSPLIT_OK;
  psplit_search_options options = {.seed = p->job->options->seed,
                                   .n_threads = p->job->options->n_threads,
                                   .n_rounds = 4,
                                   .deadline = p->job->deadline};
  const uint64_t n_steps = SLICE_WORK / slice / 8;
  options.n_steps = n_steps < MAX_STEPS ? (uint32_t)n_steps : MAX_STEPS;
  psplit_cut cut;
  psplit_code code = psplit_i_cut_init(&cut, core, p->job->arena);
  if (code != PSPLIT_OK) return code;
  p->machine.adds_up = true;
  code = psplit_i_search(core, &p->machine, &options, &cut);
  p->machine.adds_up = false;
  if (code != PSPLIT_OK || cut.value >= PSPLIT_I_INF) return code;
  const int64_t value = judge(board, cut.device, cut.stage);
  if (value < p->value) {
    memcpy(label, cut.stage, core->n * sizeof *label);
    memcpy(p->types, cut.device, core->n_stages * sizeof *p->types);
    to_nodes(p, label, value);
  }
  return PSPLIT_OK;
}

static psplit_code start(placing *p, psplit_answer *answer) {
  const psplit_job *job = p->job;
  const psplit_problem *problem = job->problem;
  const uint32_t chunks = job->options->chunks;
  psplit_board board;
  psplit_code code;
  uint32_t *label = PSPLIT_NEW(job->arena, uint32_t, p->core.n);
  uint32_t *slot = PSPLIT_NEW(job->arena, uint32_t, p->core.n_stages);
  uint32_t *folded = PSPLIT_NEW(job->arena, uint32_t, problem->n_nodes);
  PSPLIT_TRY(label && slot && folded ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_board_init(&board, &p->core, chunks, job->options, job->arena));
  code = contiguous_start(job, answer);
  answer->solver = "contiguous";
  complete_types(job, answer, p->types);
  if (code == PSPLIT_INFEASIBLE) { /* a freer placement may still exist */
    *job->diag = (psplit_diag){0};
    code = PSPLIT_OK;
  } else {
    PSPLIT_TRY(code);
    labels_of(job, &p->core, answer, p->types, label, slot);
    to_nodes(p, label, judge(&board, p->types, label));
  }
  if (job->options->objective == PSPLIT_LATENCY) PSPLIT_TRY(adding_start(p, &board, label));
  if (chunks > 1 && folded_start(job, chunks, folded) == PSPLIT_OK) {
    for (uint32_t v = 0; v < problem->n_nodes; v++) label[p->core.item_of_node[v]] = folded[v];
    const int64_t value = judge(&board, p->types, label);
    if (value < p->value) to_nodes(p, label, value);
  }
  psplit_code (*const starts[])(const psplit_job *, psplit_answer *) = {two_chunks, paying_alone};
  for (uint32_t i = 0; job->options->noncontiguous && i < 2; i++) {
    if (starts[i](job, answer) != PSPLIT_OK) continue;
    labels_of(job, &p->core, answer, p->types, label, slot);
    const int64_t value = judge(&board, p->types, label);
    if (value < p->value) to_nodes(p, label, value);
  }
out:
  return code;
}

/* Steps of one way down from coarse to fine. */
static uint64_t steps_of(const psplit_core *core) {
  const uint64_t n_steps = (uint64_t)(core->n > 20000 ? 20 : STEPS_PER_ITEM) * core->n;
  const uint64_t most = n_steps < MOST_STEPS ? n_steps : MOST_STEPS;
  /* Relays are counted anew after every move. */
  return core->problem->next_hop ? most / (1 + core->net_off[core->n_nets] / 16) : most;
}

/* Long and hot on items, then from clusters down, in turn: the one mixes, the other moves what
 * belongs together. */
static psplit_code anneal_round(placing *p, uint64_t round) {
  const psplit_job *job = p->job;
  const uint32_t chunks = job->options->chunks;
  if (round % 2)
    return psplit_i_vcycles(&p->core, chunks, job, p->types, p->parent, round, steps_of(&p->core),
                            p->node_label, &p->value);
  uint32_t *label = PSPLIT_NEW(job->arena, uint32_t, p->core.n);
  if (!label) return PSPLIT_NOMEM;
  for (uint32_t v = job->problem->n_nodes; v-- > 0;)
    label[p->core.item_of_node[v]] = p->node_label[v];
  int64_t value = p->value;
  const psplit_code code =
    psplit_i_anneal(&p->core, chunks, job, p->types, round, ANNEAL_STEPS, label, &value);
  if (code == PSPLIT_OK && value < p->value) to_nodes(p, label, value);
  return code;
}

/* On a core that shrinks with what the value so far rules out. */
static psplit_code anneal(placing *p, psplit_answer *answer) {
  const psplit_job *job = p->job;
  const double limit = job->options->time_limit_s;
  const uint64_t n_rounds = limit < 0 || limit > 1000 ? 1000 : (uint64_t)(limit + 0.99);
  psplit_code code = PSPLIT_OK;
  uint32_t n_idle = 0;
  for (uint64_t round = 0; round < n_rounds && n_idle < 4 && p->value > answer->bound; round++) {
    const int64_t before = p->value;
    if (psplit_i_expired(&job->deadline)) break;
    if (p->core.unordered && !job->options->require_nonempty) {
      PSPLIT_TRY(psplit_i_kernel(&p->core, &p->machine, p->value, p->parent, job->diag));
      PSPLIT_TRY(bind(p));
    }
    PSPLIT_TRY(anneal_round(p, round));
    n_idle = p->value < before ? 0 : n_idle + 1;
    if (p->value < before) answer->solver = "anneal";
  }
out:
  return code;
}

/* With the best value known, and the core that it leaves. */
static psplit_code raise_bound(placing *p, psplit_answer *answer) {
  const int64_t before = answer->bound;
  if (p->job->options->objective == PSPLIT_LATENCY || p->value <= before) return PSPLIT_OK;
  const psplit_code code = psplit_i_share_bound(&p->core, &p->machine, p->value, p->job->options,
                                                &p->job->deadline, &answer->bound);
  if (answer->bound > before) answer->bound_name = "shares of communication";
  return code;
}

static psplit_code brute(placing *p, psplit_answer *answer) {
  bool finished;
  uint32_t *label = PSPLIT_NEW(p->job->arena, uint32_t, p->core.n);
  if (!label) return PSPLIT_NOMEM;
  int64_t value = p->value;
  const psplit_code code = psplit_i_brute(&p->core, p->job->options->chunks, p->job, p->types,
                                          BRUTE_STEPS, label, &value, &finished);
  if (code != PSPLIT_OK) return code;
  if (value < p->value) {
    to_nodes(p, label, value);
    answer->solver = "branch and bound";
  }
  if (finished && value < PSPLIT_I_INF) {
    answer->bound = value;
    answer->bound_name = "branch and bound";
  }
  return PSPLIT_OK;
}

static psplit_code place(const psplit_job *job, bool with_bounds, psplit_answer *out_answer) {
  const psplit_problem *problem = job->problem;
  const uint32_t n_stages = psplit_problem_n_stages(problem);
  placing p = {.job = job, .loose = *job->options, .value = PSPLIT_I_INF};
  p.loose.require_nonempty = false;
  psplit_code code;
  p.node_label = PSPLIT_NEW(job->arena, uint32_t, problem->n_nodes);
  p.parent = PSPLIT_NEW(job->arena, uint32_t, problem->n_nodes);
  p.types = PSPLIT_NEW(job->arena, uint32_t, n_stages);
  PSPLIT_TRY(p.node_label && p.parent && p.types ? PSPLIT_OK : PSPLIT_NOMEM);
  for (uint32_t v = 0; v < problem->n_nodes; v++) p.parent[v] = v;
  PSPLIT_TRY(job->options->noncontiguous
               ? psplit_i_core_init_unordered(&p.core, problem, NULL, job->diag)
               : psplit_i_core_init(&p.core, problem, NULL, job->diag));
  PSPLIT_TRY(bind(&p));
  PSPLIT_TRY(start(&p, out_answer));
  PSPLIT_TRY(bounds(job, &p.core, &p.machine, p.value, out_answer->bound, out_answer));
  out_answer->solver = "contiguous";
  if (p.value < PSPLIT_I_INF) PSPLIT_TRY(anneal(&p, out_answer));
  if (with_bounds) PSPLIT_TRY(raise_bound(&p, out_answer));
  if (p.value > out_answer->bound) PSPLIT_TRY(brute(&p, out_answer));
  if (p.value >= PSPLIT_I_INF) {
    code = psplit_i_fail(job->diag, PSPLIT_INFEASIBLE,
                         "no placement was found that satisfies memory limits and pins");
    goto out;
  }
  for (uint32_t v = 0; v < problem->n_nodes; v++) {
    out_answer->stage[v] = p.node_label[v] % n_stages;
    out_answer->chunk[v] = p.node_label[v] / n_stages;
  }
  for (uint32_t s = 0; s < n_stages; s++) {
    out_answer->device[s] = p.types[s];
    out_answer->replicas[s] = 1;
  }
out:
  if (code == PSPLIT_NOMEM) code = psplit_i_nomem(job->diag);
  if (code == PSPLIT_LIMIT && job->diag->code == PSPLIT_OK)
    code = psplit_i_fail(job->diag, code, "too many tensors times devices for this variant");
  psplit_i_machine_fini(&p.machine);
  psplit_i_core_fini(&p.core);
  return code;
}

psplit_code psplit_i_place(const psplit_job *job, psplit_answer *out_answer) {
  return place(job, true, out_answer);
}
