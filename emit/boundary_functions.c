/* The functions Send and Recv, which let a stock runtime pass through the nodes of a boundary. */
#include <string.h>

#include "emit.h"
#include "proto_text.h"

enum { DOMAIN_VERSION = 1, FALLBACK_OPSET = 13, FIRST_IR_WITH_DOMAINS = 3 };

/* Whether the model carries a function of this domain and name already; *out_same: this very one.
 */
static bool find_function(const psplit_model *model, const char *name, const psplit_i_rope *ours,
                          bool *out_same) {
  const psplit_i_spans *fields = &model->skeleton.model_fields;
  for (size_t i = 0, f = 0; i < fields->n; i++) {
    if (fields->items[i].field != PSPLIT_I_MODEL_FUNCTIONS) continue;
    const Onnx__FunctionProto *function = model->proto->functions[f++];
    if (!function->domain || strcmp(function->domain, PSPLIT_I_BOUNDARY_DOMAIN) != 0 ||
        !function->name || strcmp(function->name, name) != 0)
      continue;
    *out_same = fields->items[i].skeleton_bytes == ours->bytes;
    const uint8_t *at = model->skeleton.bytes + fields->items[i].skeleton_offset;
    for (size_t p = 0; *out_same && p < ours->pieces.n; p++) {
      const psplit_i_piece *piece = &ours->pieces.items[p];
      *out_same = memcmp(at, piece->memory, (size_t)piece->bytes) == 0;
      at += piece->bytes;
    }
    return true;
  }
  return false;
}

static psplit_code in_use(const char *what, psplit_diag *diag) {
  return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(BOUNDARY_IO),
                             "the model has its own %s of domain \"" PSPLIT_I_BOUNDARY_DOMAIN
                             "\", which Send and Recv need",
                             what);
}

/* Whether what crosses has types that ONNX Runtime has no Identity for, on CPUs: those that came
 * last, of four bits and less, and float8e8m0. CastLike (x, x) is the same by definition, and runs
 * for them as for all but strings and complex numbers. */
static bool needs_cast_like(const psplit_i_split *split) {
  bool needed = false;
  for (size_t t = 0; t < split->plan->n_transfers; t++) {
    const int32_t elem = split->types[t].elem;
    needed |= elem >= ONNX__TENSOR_PROTO__DATA_TYPE__UINT4;
    if (elem == ONNX__TENSOR_PROTO__DATA_TYPE__STRING ||
        elem == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX64 ||
        elem == ONNX__TENSOR_PROTO__DATA_TYPE__COMPLEX128)
      return false;
  }
  return needed;
}

static psplit_code add_function(const psplit_i_split *split, const char *name,
                                psplit_i_arena *arena, psplit_diag *diag, psplit_i_rope *out) {
  psplit_code code = PSPLIT_OK;
  char *in = psplit_i_proto_text("x"), *result = psplit_i_proto_text("y"), *twice[] = {in, in};
  char *attributes[] = {psplit_i_proto_text("tag"), psplit_i_proto_text("peer"),
                        psplit_i_proto_text("tensor"), psplit_i_proto_text("dtype"),
                        psplit_i_proto_text("shape")};
  const int64_t opset = psplit_i_model_opset(split->model, "");
  Onnx__OperatorSetIdProto import = ONNX__OPERATOR_SET_ID_PROTO__INIT;
  import.domain = psplit_i_proto_text("");
  import.has_version = 1;
  import.version = opset ? opset : FALLBACK_OPSET;
  Onnx__OperatorSetIdProto *imports = &import;
  Onnx__NodeProto identity = ONNX__NODE_PROTO__INIT;
  Onnx__NodeProto *nodes = &identity;
  identity.input = twice;
  identity.output = &result;
  const bool cast_like = needs_cast_like(split);
  const char *const op = cast_like ? "CastLike" : "Identity";
  if (psplit_i_model_own_operator(split->model, op))
    return psplit_i_fail_about(diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(BOUNDARY_IO),
                               "the model has its own function \"%s\", and Send and Recv need the "
                               "operator",
                               op);
  identity.op_type = psplit_i_proto_text(op);
  identity.n_input = cast_like ? 2 : 1;
  identity.n_output = 1;
  Onnx__FunctionProto function = ONNX__FUNCTION_PROTO__INIT;
  function.name = psplit_i_proto_text(name);
  function.domain = psplit_i_proto_text(PSPLIT_I_BOUNDARY_DOMAIN);
  function.n_input = function.n_output = 1;
  function.input = &in;
  function.output = &result;
  function.n_attribute = sizeof attributes / sizeof *attributes;
  function.attribute = attributes;
  function.n_node = 1;
  function.node = &nodes;
  function.n_opset_import = 1;
  function.opset_import = &imports;
  psplit_i_rope ours = {0};
  psplit_i_rope_packed(&ours, arena, PSPLIT_I_MODEL_FUNCTIONS, &function.base);
  bool same = false;
  if (find_function(split->model, name, &ours, &same)) {
    if (!same) code = in_use("function", diag);
  } else {
    for (size_t i = 0; i < ours.pieces.n; i++)
      psplit_i_rope_view(out, ours.pieces.items[i].memory, (size_t)ours.pieces.items[i].bytes);
  }
  if (ours.failed) out->failed = true;
  psplit_i_rope_fini(&ours);
  return code;
}

psplit_code psplit_i_boundary_functions(const psplit_i_split *split, bool sends, bool receives,
                                        psplit_i_arena *arena, psplit_diag *diag,
                                        psplit_i_rope *out) {
  psplit_code code = PSPLIT_OK;
  if (!sends && !receives) return PSPLIT_OK;
  if (psplit_i_model_ir_version(split->model) < FIRST_IR_WITH_DOMAINS)
    return psplit_i_fail_about(
      diag, PSPLIT_UNSUPPORTED, PSPLIT_I_HELPS(BOUNDARY_IO),
      "models before IR version 3 import no operator domains, which Send and "
      "Recv need");
  const int64_t version = psplit_i_model_opset(split->model, PSPLIT_I_BOUNDARY_DOMAIN);
  if (version != 0 && version != DOMAIN_VERSION) return in_use("version", diag);
  if (!version) {
    Onnx__OperatorSetIdProto import = ONNX__OPERATOR_SET_ID_PROTO__INIT;
    import.domain = psplit_i_proto_text(PSPLIT_I_BOUNDARY_DOMAIN);
    import.has_version = 1;
    import.version = DOMAIN_VERSION;
    psplit_i_rope_packed(out, arena, PSPLIT_I_MODEL_OPSETS, &import.base);
  }
  if (sends) PSPLIT_TRY(add_function(split, "Send", arena, diag, out));
  if (receives) PSPLIT_TRY(add_function(split, "Recv", arena, diag, out));
out:
  return code;
}
