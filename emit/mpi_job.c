/* The stages as an MPI job of Kubernetes: a worker for each, which onnx-pipeline-run makes ranks.
 * Source of the fields: kubeflow/mpi-operator, the custom resource MPIJob of kubeflow.org/v2beta1
 * and its examples for MPICH. */
#include <inttypes.h>

#include "emit.h"
#include "json.h"

/* What the launcher runs: a rank for each stage. Kubernetes replaces $(NAME) in arguments, but not
 * $$(NAME). */
static void add_command(psplit_i_text *out, const psplit_plan *plan,
                        const psplit_mpi_job_options *o) {
  psplit_i_text_addf(out, "            command: [mpirun, -n, \"%" PRIu32 "\"", plan->n_stages);
  for (size_t i = 0; i < o->n_command; i++) {
    psplit_i_text word = {0};
    psplit_i_text_puts(&word, "");
    for (const char *c = o->command[i]; *c; c++)
      psplit_i_text_addf(&word, *c == '$' ? "$%c" : "%c", *c);
    psplit_i_text_puts(out, ", ");
    psplit_i_json_quote(out, word.bytes ? word.bytes : "");
    out->failed |= word.failed;
    psplit_i_text_fini(&word);
  }
  psplit_i_text_puts(out, "]\n");
}

/* One template serves all workers: what the stage needs that needs most. */
static void add_resources(psplit_i_text *out, const psplit_plan *plan,
                          const psplit_mpi_job_options *o) {
  static const uint64_t RUNTIME_MIB = 256; /* of ONNX Runtime and MPI, besides the stage */
  uint64_t most = 0;
  uint32_t n_threads = 1;
  bool gpu = false;
  for (uint32_t s = 0; s < plan->n_stages; s++) {
    const psplit_session *session = o->sessions ? o->sessions[s] : NULL;
    if (plan->stages[s].memory_bytes > most) most = plan->stages[s].memory_bytes;
    if (session && session->n_threads > n_threads) n_threads = session->n_threads;
    gpu |= psplit_i_deployed_on_gpu(session);
  }
  psplit_i_text_addf(out,
                     "            resources:\n"
                     "              requests: {cpu: \"%" PRIu32 "\", memory: %" PRIu64 "Mi}\n",
                     n_threads, (most >> 20) + 1 + RUNTIME_MIB);
  if (gpu) psplit_i_text_puts(out, "              limits: {nvidia.com/gpu: 1}\n");
}

psplit_code psplit_mpi_job(const psplit_model *model, const psplit_plan *plan,
                           const psplit_mpi_job_options *options, psplit_diag *diag,
                           char **out_text) {
  psplit_code code;
  psplit_i_text text = {0};
  psplit_mpi_job_options o = {.struct_size = sizeof o};
  char name[48];
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_mpi_job_options, options, &o, diag));
  if (!o.n_command)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_USAGE, "an MPI job needs a command for its ranks"));
  const char *image = o.image ? o.image : "onnx-pipeline-split:latest";
  psplit_i_deployed_name(psplit_i_model_path(model), '-', name, sizeof name);
  psplit_i_text_addf(&text,
                     "# A worker for each of %" PRIu32
                     " stages. The volume claim %s-split holds the split directory.\n"
                     "apiVersion: kubeflow.org/v2beta1\n"
                     "kind: MPIJob\n"
                     "metadata:\n"
                     "  name: %s\n"
                     "spec:\n"
                     "  slotsPerWorker: 1\n"
                     "  mpiImplementation: MPICH\n"
                     "  runPolicy:\n"
                     "    cleanPodPolicy: Running\n"
                     "  mpiReplicaSpecs:\n"
                     "    Launcher:\n"
                     "      replicas: 1\n"
                     "      template:\n"
                     "        spec:\n"
                     "          containers:\n"
                     "          - name: launcher\n"
                     "            image: ",
                     plan->n_stages, name, name);
  psplit_i_json_quote(&text, image);
  psplit_i_text_puts(&text, "\n");
  add_command(&text, plan, &o);
  psplit_i_text_addf(&text,
                     "    Worker:\n"
                     "      replicas: %" PRIu32
                     "\n"
                     "      template:\n"
                     "        spec:\n"
                     "          containers:\n"
                     "          - name: worker\n"
                     "            image: ",
                     plan->n_stages);
  psplit_i_json_quote(&text, image);
  psplit_i_text_puts(&text, "\n            command: [/usr/sbin/sshd, -De]\n");
  add_resources(&text, plan, &o);
  psplit_i_text_addf(&text,
                     "            volumeMounts:\n"
                     "            - {name: split, mountPath: /split, readOnly: true}\n"
                     "          volumes:\n"
                     "          - name: split\n"
                     "            persistentVolumeClaim: {claimName: %s-split}\n",
                     name);
  if (text.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_text = text.bytes;
  text = (psplit_i_text){0};
out:
  psplit_i_text_fini(&text);
  return code;
}
