/* Which provider runs which node of a session. */
#include <stdlib.h>
#include <string.h>

#include "ort.h"

static const char CPU[] = "CPUExecutionProvider", PLACEMENT[] = "placement of nodes";

/* What the CPU provider is left is of interest where there is another. */
static bool asserts(const psplit_i_session_options *options) {
  return options->assert_placement && options->provider &&
         !psplit_i_provider_is(options->provider, CPU);
}

psplit_code psplit_i_placement_prepare(const psplit_i_ort *ort, OrtSessionOptions *settings,
                                       const psplit_i_session_options *options, psplit_diag *diag) {
  if (!options->record_placement && !asserts(options)) return PSPLIT_OK;
  if (options->record_placement && !ort->has_placement)
    return psplit_i_fail_about(
      diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(ONNXRUNTIME),
      "ONNX Runtime %s does not report which nodes a provider supports: 1.%d or newer is required",
      ort->version, ORT_VERSION_PLACEMENT);
  return psplit_i_ort_check(
    ort,
    ort->api.AddSessionConfigEntry(settings,
                                   ort->has_placement ? "session.record_ep_graph_assignment_info"
                                                      : "session.disable_cpu_ep_fallback",
                                   "1"),
    PLACEMENT, diag);
}

/* Counts what a part of the graph holds, and writes it to *io, which may be NULL. */
static psplit_code read_part(const psplit_i_ort *ort, const OrtEpAssignedSubgraph *part,
                             psplit_diag *diag, psplit_i_placed *to, size_t *out_n) {
  const OrtPlacementApi *api = &ort->placement;
  const OrtEpAssignedNode *const *nodes;
  psplit_code code;
  psplit_i_placed placed;
  PSPLIT_TRY(psplit_i_ort_check(ort, api->EpAssignedSubgraph_GetNodes(part, &nodes, out_n),
                                PLACEMENT, diag));
  PSPLIT_TRY(psplit_i_ort_check(ort, api->EpAssignedSubgraph_GetEpName(part, &placed.provider),
                                PLACEMENT, diag));
  for (size_t i = 0; to && i < *out_n; i++) {
    PSPLIT_TRY(psplit_i_ort_check(ort, api->EpAssignedNode_GetName(nodes[i], &placed.name),
                                  PLACEMENT, diag));
    PSPLIT_TRY(psplit_i_ort_check(
      ort, api->EpAssignedNode_GetOperatorType(nodes[i], &placed.op_type), PLACEMENT, diag));
    to[i] = placed;
  }
out:
  return code;
}

psplit_code psplit_i_session_placed(const psplit_i_session *session, psplit_diag *diag,
                                    psplit_i_placed **out, size_t *out_n) {
  const psplit_i_ort *ort = session->ort;
  const OrtEpAssignedSubgraph *const *parts;
  size_t n_parts, n = 0, n_here;
  psplit_i_placed *list = NULL;
  psplit_code code;
  PSPLIT_TRY(psplit_i_ort_check(
    ort, ort->placement.Session_GetEpGraphAssignmentInfo(session->session, &parts, &n_parts),
    PLACEMENT, diag));
  for (size_t p = 0; p < n_parts; p++, n += n_here)
    PSPLIT_TRY(read_part(ort, parts[p], diag, NULL, &n_here));
  list = calloc(n + 1, sizeof *list);
  if (!list) PSPLIT_FAIL(psplit_i_nomem(diag));
  n = 0;
  for (size_t p = 0; p < n_parts; p++, n += n_here)
    PSPLIT_TRY(read_part(ort, parts[p], diag, &list[n], &n_here));
  *out = list;
  *out_n = n;
out:
  if (code != PSPLIT_OK) free(list);
  return code;
}

/* One that may be on the CPU: it is listed, or it hands a tensor on at a cut. */
static bool is_host_node(const psplit_i_session_options *options, const psplit_i_placed *node) {
  const char *name = node->name;
  if (!*name && strcmp(node->op_type, "Identity") == 0) return true;
  for (size_t i = 0; i < options->n_host_nodes; i++)
    if (strcmp(options->host_nodes[i], name) == 0 ||
        psplit_i_glob_match(options->host_nodes[i], name))
      return true;
  return false;
}

psplit_code psplit_i_placement_check(const psplit_i_session *session,
                                     const psplit_i_session_options *options, psplit_diag *diag) {
  enum { MOST_NAMED = 5 };
  psplit_i_placed *list = NULL;
  size_t n = 0, n_left = 0;
  if (!asserts(options) || !session->ort->has_placement) return PSPLIT_OK;
  psplit_code code = psplit_i_session_placed(session, diag, &list, &n);
  if (code != PSPLIT_OK) return code;
  psplit_i_text names = {0};
  for (size_t i = 0; i < n; i++) {
    const psplit_i_placed *node = &list[i];
    if (strcmp(node->provider, CPU) != 0 || is_host_node(options, node)) continue;
    if (n_left++ < MOST_NAMED)
      psplit_i_text_addf(&names, "%s%s (%s)", n_left > 1 ? ", " : "",
                         *node->name ? node->name : "without a name", node->op_type);
  }
  if (n_left > MOST_NAMED) psplit_i_text_puts(&names, ", ...");
  if (n_left)
    code = psplit_i_fail(
      diag, PSPLIT_INVALID, "execution provider %s leaves %zu node%s to the CPU: %s",
      options->provider, n_left, n_left == 1 ? "" : "s", names.failed ? "..." : names.bytes);
  psplit_i_text_fini(&names);
  free(list);
  return code;
}
