/* Certificates: a split, a bound and its proof as lines of text, for a checker that shares no code
 * with this library. docs/certificates.md defines the format and states the theorems; prove.c finds
 * proofs. */
#include "certificate.h"

#include <inttypes.h>

#include "device_merge.h"
#include "digest.h"
#include "messages.h"
#include "problem.h"
#include "prove.h"
#include "routes.h"

static void write_list(psplit_i_text *out, const char *name, const uint32_t *list, uint32_t n) {
  psplit_i_text_puts(out, name);
  for (uint32_t i = 0; i < n; i++) psplit_i_text_addf(out, " %" PRIu32, list[i]);
  psplit_i_text_puts(out, "\n");
}

static void write_head(const psplit_i_prover *b, const psplit_solution *s, int64_t value_ns,
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

/* With shared communication too, a stage sends at most one net of a trunk and receives at most one,
 * in a message each. The solver needs no trunk there, since it counts all messages. */
static psplit_code mark_trunk(psplit_i_prover *b) {
  const psplit_comm comm = b->merged.comm;
  b->merged.comm = PSPLIT_COMM_P2P;
  const psplit_code code = psplit_i_messages_mark(&b->arena, NULL, &b->merged);
  b->merged.comm = comm;
  return code;
}

/* Writes the nets whose times include a message. */
static void write_trunk(const psplit_problem *p, psplit_i_text *out) {
  psplit_i_text_puts(out, "trunk");
  for (uint32_t e = 0; e < p->n_nets; e++)
    if (psplit_i_on_trunk(p, e)) psplit_i_text_addf(out, " %" PRIu32, e);
  psplit_i_text_puts(out, "\n");
}

/* Whether the messages of all stages can be counted, rather than those of a trunk only. */
static bool counts_messages(const psplit_i_prover *b) {
  const psplit_problem *p = b->problem;
  bool backward = false;
  for (uint32_t v = 0; p->node_flags && v < p->n_nodes && !backward; v++)
    backward = p->node_flags[v] & PSPLIT_NODE_BACKWARD;
  return p->message_ns && psplit_i_is_plain(b) && !backward;
}

/* Proves a bound with messages. All messages are counted where that is possible; if the proof
 * misses the target and communication is point to point, those of a trunk are counted instead,
 * which several stages receive. *out_whole: the problem with its trunk. */
static psplit_code prove_with_messages(psplit_i_prover *b, int64_t target, bool any_route,
                                       psplit_problem *out_whole) {
  psplit_code code;
  psplit_i_budget *const whole = b->budget;
  const bool shared = b->merged.comm == PSPLIT_COMM_SHARED;
  psplit_i_budget share = psplit_i_budget_share(whole, shared ? 1 : 2);
  if (counts_messages(b)) {
    b->merged.net_flags = b->problem->net_flags; /* without the marks of a trunk */
    b->counted = any_route ? PSPLIT_I_ANY_ROUTE : PSPLIT_I_AT_LEAST;
    b->budget = &share;
    code = psplit_i_prove_most(b, target);
    b->budget = whole;
    psplit_i_spend(whole, share.spent);
    if (code != PSPLIT_OK || b->bound >= target || shared) return code;
  }
  b->counted = PSPLIT_I_OF_TRUNK;
  PSPLIT_TRY(mark_trunk(b));
  *out_whole = b->merged;
  PSPLIT_TRY(psplit_i_messages_relax(out_whole, &b->arena, &b->merged));
  b->merged.message_ns = NULL; /* a relaxation: messages outside the trunk take no time */
  code = psplit_i_prove_most(b, target);
out:
  return code;
}

static void write_messages(const psplit_i_prover *b, const psplit_problem *whole,
                           psplit_i_text *out) {
  if (b->proved_with == PSPLIT_I_OF_TRUNK && whole->message_ns) write_trunk(whole, out);
  if (b->proved_with != PSPLIT_I_OF_TRUNK) psplit_i_text_puts(out, "messages\n");
  if (b->proved_with == PSPLIT_I_ANY_ROUTE) psplit_i_text_puts(out, "any-way\n");
}

static psplit_code check_certifiable(const psplit_problem *problem,
                                     const psplit_partition_options *options, psplit_diag *diag) {
  if (options->max_replicas > 1)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "certificates are not available with replicas");
  if (options->objective == PSPLIT_CALL_LATENCY)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "certificates are not available for call latency");
  if (options->objective == PSPLIT_FILL_DRAIN)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "certificates are not available for fill-drain");
  if (problem->n_link_classes)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "there are no certificates of problems whose links differ between pairs "
                         "of devices; with the least of each device's links there are");
  return PSPLIT_OK;
}

/* `lines`: the routes of the solution's tensors, if they are certified. */
static void write_all(const psplit_i_prover *b, const psplit_solution *solution, int64_t value_ns,
                      const psplit_problem *whole, const psplit_i_text *lines, psplit_i_text *out) {
  write_head(b, solution, value_ns, out);
  if (b->problem->next_hop) psplit_i_text_puts(out, "relays\n");
  write_messages(b, whole, out);
  psplit_i_text_add(out, lines->bytes, lines->n);
  psplit_i_text_addf(out, "claimed %" PRId64 "\nbound %" PRId64 "\n", solution->lower_bound_ns,
                     b->bound);
  psplit_i_text_add(out, b->proof.bytes, b->proof.n);
  psplit_i_text_addf(out, "end %08" PRIx32 "\n", psplit_i_crc32(0, out->bytes, out->n));
}

psplit_code psplit_i_certificate_make(const psplit_problem *problem,
                                      const psplit_partition_options *given,
                                      const psplit_solution *solution, const uint32_t *next_hop,
                                      psplit_diag *diag, psplit_i_text *out_text,
                                      int64_t *out_bound_ns) {
  psplit_diag own = {0};
  if (!diag) diag = &own;
  psplit_partition_options options;
  psplit_partition_options_init(&options);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_partition_options, given, &options, diag);
  if (code != PSPLIT_OK) return code;
  code = psplit_i_problem_validate(problem, diag);
  if (code != PSPLIT_OK) return code;
  code = check_certifiable(problem, &options, diag);
  if (code != PSPLIT_OK) return code;
  psplit_i_budget budget = psplit_i_budget_of(&options);
  psplit_i_prover b = {.problem = problem, .options = &options, .budget = &budget, .diag = diag};
  psplit_i_text text = {0}, lines = {0};
  psplit_i_arena_init(&b.arena, 0);
  uint32_t *entry = PSPLIT_NEW(&b.arena, uint32_t, problem->n_devices);
  PSPLIT_TRY(entry ? PSPLIT_OK : PSPLIT_NOMEM);
  PSPLIT_TRY(psplit_i_devices_merge(problem, &options, &b.arena, &b.merged, entry));
  if (problem->next_hop) {
    /* a relaxation: every tensor is sent once, and nothing is relayed */
    b.merged.next_hop = NULL;
    b.merged.comm = PSPLIT_COMM_SHARED;
  }
  psplit_problem whole = {0};
  if (b.merged.message_ns && !options.noncontiguous) {
    PSPLIT_TRY(prove_with_messages(&b, solution->lower_bound_ns, next_hop != NULL, &whole));
  } else {
    b.merged.message_ns = NULL;
    PSPLIT_TRY(psplit_i_prove_most(&b, solution->lower_bound_ns));
  }
  int64_t value_ns = solution->objective_ns;
  if (b.proved_with == PSPLIT_I_ANY_ROUTE)
    PSPLIT_TRY(psplit_i_write_routes(problem, solution, next_hop, &b.arena, &lines, &value_ns));
  write_all(&b, solution, value_ns, &whole, &lines, &text);
  PSPLIT_TRY(text.failed || lines.failed ? PSPLIT_NOMEM : PSPLIT_OK);
  *out_text = text;
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
  psplit_i_text text;
  const psplit_code code =
    psplit_i_certificate_make(problem, options, solution, NULL, diag, &text, out_bound_ns);
  if (code != PSPLIT_OK) return code;
  *out_text = text.bytes;
  *out_n = text.n;
  return PSPLIT_OK;
}
