#include "model.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "datatypes.h"
#include "logging.h"
#if PSPLIT_HAS_MPI
#include <psplit/run_mpi.h>
#endif

struct serve_model {
  serve_model_options options;
  ort_settings ort; /* applied; the list is options.ort's */
  psplit_pipeline *pipeline;
  psplit_service *service; /* NULL: not started */
  atomic_uint n_holders;
};

/* Requests give tensors alone: without one of these inputs no request is complete. */
static psplit_code check_inputs(const psplit_pipeline_info *info, psplit_diag *diag) {
  for (uint32_t i = 0; i < info->n_needed; i++)
    if (info->input_values[i].dtype && strchr(info->input_values[i].dtype, '('))
      return psplit_diag_fail(diag, PSPLIT_UNSUPPORTED,
                              "input %s is of type %s, and the protocol has tensors alone",
                              info->inputs[i], info->input_values[i].dtype);
  return PSPLIT_OK;
}

psplit_code serve_model_open(const serve_model_options *options, psplit_diag *diag,
                             serve_model **out) {
  psplit_pipeline_options reading;
  serve_model *m = calloc(1, sizeof *m);
  if (!m) return cli_nomem(diag);
  m->options = *options;
  m->ort = *options->ort;
  atomic_init(&m->n_holders, 1);
  psplit_pipeline_options_init(&reading);
  reading.max_text_bytes = options->ort->max_text_bytes;
  psplit_code code = psplit_pipeline_open(options->directory, &reading, diag, &m->pipeline);
  if (code == PSPLIT_OK) code = check_inputs(serve_model_info(m), diag);
  if (code == PSPLIT_OK) code = ort_settings_apply(&m->ort, serve_model_info(m), diag);
  if (code == PSPLIT_OK) {
    m->options.run.sessions = m->ort.stages;
    m->options.run.n_sessions = m->ort.n_sessions;
    m->options.run.n_replicas = m->ort.n_replicas;
    *out = m;
  } else {
    serve_model_release(m);
  }
  return code;
}

/* Requests that name no outputs ask for all. */
static void warn_of_outputs(const psplit_pipeline_info *info) {
  for (uint32_t i = 0; i < info->n_outputs; i++) {
    const char *dtype = info->output_values[i].dtype;
    if (dtype && !serve_datatype_of_numpy(dtype))
      cli_warn(
        "output %s is of type %s, for which the protocol has no datatype: requests must name the "
        "other outputs that they want",
        info->outputs[i], dtype);
  }
}

psplit_code serve_model_start(serve_model *m, const psplit_onnxruntime *ort, psplit_diag *diag) {
  const serve_model_options *o = &m->options;
  warn_of_outputs(serve_model_info(m));
#if PSPLIT_HAS_MPI
  if (o->mpi)
    return psplit_mpi_service_start(ort, m->pipeline, &o->run, &o->service, diag, &m->service);
#endif
  return psplit_service_start(ort, m->pipeline, &o->run, &o->service, diag, &m->service);
}

psplit_code serve_model_work(serve_model *m, const psplit_onnxruntime *ort, psplit_diag *diag) {
#if PSPLIT_HAS_MPI
  return psplit_mpi_service_run(ort, m->pipeline, &m->options.run, diag);
#else
  (void)m;
  (void)ort;
  return psplit_diag_fail(diag, PSPLIT_INTERNAL, "there are no ranks");
#endif
}

void serve_model_hold(serve_model *m) { atomic_fetch_add(&m->n_holders, 1); }

void serve_model_release(serve_model *m) {
  if (!m || atomic_fetch_sub(&m->n_holders, 1) != 1) return;
  psplit_service_destroy(m->service);
  psplit_pipeline_close(m->pipeline);
  ort_settings_drop(&m->ort);
  free(m);
}

psplit_service *serve_model_service(const serve_model *m) { return m->service; }

const psplit_pipeline_info *serve_model_info(const serve_model *m) {
  return psplit_pipeline_get_info(m->pipeline);
}
