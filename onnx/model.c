/* Queries of an open model. */
#include "model.h"

#include <string.h>

#include "proto_text.h"

const psplit_i_graph *psplit_i_model_graph(const psplit_model *model) { return model->graph; }

uint32_t psplit_i_model_n_functions(const psplit_model *model) {
  return (uint32_t)model->proto->n_functions;
}

const psplit_i_graph *psplit_i_model_function(const psplit_model *model, uint32_t index) {
  return model->functions[index];
}

int64_t psplit_i_model_opset(const psplit_model *model, const char *domain) {
  for (size_t i = 0; i < model->proto->n_opset_import; i++) {
    const Onnx__OperatorSetIdProto *opset = model->proto->opset_import[i];
    if (strcmp(psplit_i_domain_of(opset->domain), domain) == 0) return opset->version;
  }
  return 0;
}

const char *psplit_i_model_own_operator(const psplit_model *model, const char *op) {
  for (size_t f = 0; f < model->proto->n_functions; f++) {
    const Onnx__FunctionProto *function = model->proto->functions[f];
    const char *name = psplit_i_text_or_empty(function->name);
    if (!*psplit_i_domain_of(function->domain) && !*psplit_i_text_or_empty(function->overload) &&
        (!op || strcmp(name, op) == 0))
      return name;
  }
  return NULL;
}

bool psplit_i_model_has_external_data(const psplit_model *model) {
  return model->has_external_data;
}
int64_t psplit_i_model_ir_version(const psplit_model *model) { return model->proto->ir_version; }

const char *psplit_i_model_path(const psplit_model *model) { return model->path; }

uint32_t psplit_model_n_files(const psplit_model *model) { return (uint32_t)model->files.n; }

const char *psplit_model_file_path(const psplit_model *model, uint32_t index) {
  return model->files.items[index].path;
}

uint32_t psplit_model_n_inlined(const psplit_model *model) { return (uint32_t)model->inlined.n; }

const psplit_inlined *psplit_model_inlined(const psplit_model *model, uint32_t index) {
  return &model->inlined.items[index];
}
