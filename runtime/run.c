#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed_check.h"
#include "outputs.h"
#include "stage.h"

struct psplit_run {
  const psplit_onnxruntime *ort;
  const psplit_pipeline *pipeline;
  const char *transport;
  psplit_i_timeline timeline;
  psplit_run_report report;
};

psplit_code psplit_onnxruntime_open(const char *path, psplit_diag *diag,
                                    psplit_onnxruntime **out_ort) {
  psplit_onnxruntime *made = calloc(1, sizeof *made);
  if (!made) return psplit_i_nomem(diag);
  const psplit_code code = psplit_i_ort_open(path, diag, &made->ort);
  if (code == PSPLIT_OK)
    *out_ort = made;
  else
    free(made);
  return code;
}

void psplit_onnxruntime_close(psplit_onnxruntime *ort) {
  if (ort) psplit_i_ort_close(&ort->ort);
  free(ort);
}

psplit_code psplit_onnxruntime_add_custom_ops(psplit_onnxruntime *ort, const char *path,
                                              psplit_diag *diag) {
  return psplit_i_ort_add_custom_ops(&ort->ort, path, diag);
}

const char *psplit_onnxruntime_version(const psplit_onnxruntime *ort) { return ort->ort.version; }

bool psplit_is_tensor_stream(const char *path) { return psplit_i_records_are_in(path); }

static psplit_code describe_value(psplit_pipeline *p, const psplit_i_manifest_value *from,
                                  psplit_diag *diag, psplit_pipeline_value *out) {
  const size_t n = from->shape.rank > 0 ? (size_t)from->shape.rank : 0;
  int64_t *dims = PSPLIT_NEW(&p->pipe.arena, int64_t, n);
  const char **symbols = PSPLIT_NEW(&p->pipe.arena, const char *, n);
  if (!dims || !symbols) return psplit_i_nomem(diag);
  for (size_t d = 0; d < n; d++) {
    dims[d] = from->shape.dims[d].value;
    symbols[d] = from->shape.dims[d].param;
  }
  *out = (psplit_pipeline_value){from->name, from->dtype, (uint32_t)n, dims, symbols};
  return PSPLIT_OK;
}

static psplit_code describe_values(psplit_pipeline *p, psplit_diag *diag) {
  const psplit_i_manifest *m = &p->pipe.manifest;
  psplit_code code = PSPLIT_OK;
  p->values = calloc((size_t)m->n_inputs + m->n_outputs + 1, sizeof *p->values);
  if (!p->values) return psplit_i_nomem(diag);
  for (uint32_t i = 0; i < m->n_inputs; i++)
    PSPLIT_TRY(describe_value(p, &m->input_values[i], diag, &p->values[i]));
  for (uint32_t o = 0; o < m->n_outputs; o++)
    PSPLIT_TRY(describe_value(p, &m->output_values[o], diag, &p->values[m->n_inputs + o]));
out:
  return code;
}

static psplit_code describe(psplit_pipeline *p, psplit_diag *diag) {
  const psplit_i_manifest *m = &p->pipe.manifest;
  p->stages = calloc((size_t)m->n_stages + 1, sizeof *p->stages);
  if (!p->stages) return psplit_i_nomem(diag);
  for (uint32_t s = 0; s < m->n_stages; s++) {
    const psplit_i_manifest_stage *stage = &m->stages[s];
    p->stages[s] =
      (psplit_pipeline_stage){stage->file,    stage->device,  stage->compute_ns, stage->recv_ns,
                              stage->send_ns, stage->load_ns, stage->n_replicas, stage->devices};
  }
  p->info = (psplit_pipeline_info){.n_stages = m->n_stages,
                                   .stages = p->stages,
                                   .n_inputs = m->n_inputs,
                                   .n_outputs = m->n_outputs,
                                   .inputs = m->inputs,
                                   .outputs = m->outputs,
                                   .bottleneck_ns = m->bottleneck_ns,
                                   .cost_source = m->cost_source,
                                   .n_needed = m->n_needed,
                                   .n_assumed = m->n_assumed,
                                   .assumed_names = m->assumed_names,
                                   .assumed_sizes = m->assumed_sizes};
  const psplit_code code = describe_values(p, diag);
  p->info.input_values = p->values;
  p->info.output_values = p->values ? p->values + m->n_inputs : NULL;
  return code;
}

psplit_code psplit_pipeline_open(const char *directory, const psplit_pipeline_options *options,
                                 psplit_diag *diag, psplit_pipeline **out_pipeline) {
  psplit_pipeline_options taken;
  psplit_pipeline *made = calloc(1, sizeof *made);
  psplit_code code;
  psplit_pipeline_options_init(&taken);
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_pipeline_options, options, &taken, diag));
  if (!made || !(made->directory = strdup(directory))) PSPLIT_FAIL(psplit_i_nomem(diag));
  PSPLIT_TRY(psplit_i_pipe_read(made->directory, taken.max_text_bytes, diag, &made->pipe));
  if (!taken.for_training) PSPLIT_TRY(psplit_i_pipe_check_runs(&made->pipe, diag));
  PSPLIT_TRY(describe(made, diag));
out:
  if (code == PSPLIT_OK)
    *out_pipeline = made;
  else
    psplit_pipeline_close(made);
  return code;
}

void psplit_pipeline_close(psplit_pipeline *pipeline) {
  if (!pipeline) return;
  psplit_i_pipe_fini(&pipeline->pipe);
  free(pipeline->stages);
  free(pipeline->values);
  free(pipeline->directory);
  free(pipeline);
}

const psplit_pipeline_info *psplit_pipeline_get_info(const psplit_pipeline *pipeline) {
  return &pipeline->info;
}

/* options->output: a directory of files, or one tensor after the other. */
typedef struct output_path {
  const char *path; /* NULL: none */
  bool streams;
  psplit_i_output_directory directory;
  psplit_i_output_stream stream;
} output_path;

/* Of the run that this one is the end of. */
static uint64_t total(const psplit_i_run_options *run, uint64_t n_micro_batches) {
  return n_micro_batches == PSPLIT_I_ENDLESS ? n_micro_batches : run->first + n_micro_batches;
}

static psplit_code open_output(output_path *o, psplit_i_run_setup *setup, uint32_t rank,
                               const psplit_i_manifest *manifest, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  psplit_i_run_options *run = &setup->run;
  if (o->streams) {
    if (rank == 0 && strcmp(o->path, "-") != 0)
      PSPLIT_TRY(psplit_i_output_stream_open(o->path, run->interrupted, run->stall_timeout_s, diag,
                                             &o->stream));
    run->take_output = psplit_i_outputs_stream;
    run->user = &o->stream;
  } else if (o->path) {
    PSPLIT_TRY(psplit_i_outputs_begin(o->path, diag));
    if (rank == 0)
      PSPLIT_TRY(psplit_i_outputs_index(o->path, manifest, total(run, run->n_micro_batches), diag));
    run->take_output = psplit_i_outputs_write;
    run->user = &o->directory;
  }
out:
  return code;
}

/* Only now it is known how many micro-batches a stream had. */
static psplit_code finish_output(const output_path *o, const psplit_i_run_setup *setup,
                                 uint32_t rank, const psplit_i_manifest *manifest,
                                 const psplit_i_timeline *timeline, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  if (!o->path || o->streams) return code;
  if (rank == 0 && setup->given.stream)
    PSPLIT_TRY(psplit_i_outputs_index(o->path, manifest,
                                      total(&setup->run, timeline->n_micro_batches), diag));
  PSPLIT_TRY(psplit_i_outputs_end(o->path, diag));
out:
  return code;
}

/* As planned, where nothing else is said. What is kept of a sequence is one thread's, and so is a
 * process. */
static psplit_code settle_replicas(psplit_i_run_options *run, const psplit_i_pipe *pipe,
                                   const psplit_i_source *source, psplit_diag *diag) {
  const bool alone = source && (source->keeper || source->stage_command);
  if (!run->n_replicas && !alone) run->n_replicas = pipe->n_replicas;
  if (!alone) return PSPLIT_OK;
  for (uint32_t s = 0; s < pipe->manifest.n_stages; s++)
    if (psplit_i_stage_n_replicas(run, s) > 1)
      return psplit_i_fail(diag, PSPLIT_USAGE, "stage %u has replicas, which %s does not support",
                           s, source->keeper ? "a stage that keeps state" : "a process of its own");
  return PSPLIT_OK;
}

psplit_code psplit_i_run_over(const psplit_i_communicator *comm, const psplit_onnxruntime *ort,
                              psplit_pipeline *pipeline, const psplit_run_options *options,
                              const psplit_i_source *source, psplit_diag *diag,
                              psplit_run **out_run) {
  const uint32_t rank = comm->rank;
  psplit_i_pipe *pipe = &pipeline->pipe;
  const uint32_t n_links = pipe->n_links;
  psplit_i_run_setup setup = {0};
  psplit_run *run = calloc(1, sizeof *run);
  psplit_code code = run ? PSPLIT_OK : psplit_i_nomem(diag);
  output_path output = {.stream = {"standard output", STDOUT_FILENO, &setup.failed}};
  if (!run) return code;
  *run = (psplit_run){.ort = ort, .pipeline = pipeline, .transport = comm->name};
  PSPLIT_TRY(psplit_i_pipe_check_runs(pipe, diag));
  PSPLIT_TRY(psplit_i_run_setup_make(options, pipe->manifest.n_stages, true, diag, &setup));
  PSPLIT_TRY(settle_replicas(&setup.run, pipe, source, diag));
  output.path = output.directory.directory = setup.given.output;
  output.streams = output.path && psplit_i_records_are_in(output.path);
  PSPLIT_TRY(psplit_i_feed_meet(&setup.run.feed, pipe, diag));
  PSPLIT_TRY(open_output(&output, &setup, rank, &pipe->manifest, diag));
  setup.run.source = source;
  const psplit_i_pipe_wants wants = {
    .feed = setup.given.stream,
    .collect = source || output.streams || psplit_i_pipe_n_final(pipe) > 1,
    .outputs = source || setup.run.take_output};
  PSPLIT_TRY(psplit_i_pipe_open_ends(pipe, wants, diag));
  PSPLIT_TRY(comm->transport(&ort->ort, pipe, &setup.run, rank, diag, &run->timeline));
  PSPLIT_TRY(finish_output(&output, &setup, rank, &pipe->manifest, &run->timeline, diag));
  if (rank == 0) PSPLIT_TRY(psplit_i_report_make(&run->timeline, &setup.run, diag, &run->report));
  psplit_i_report_add_drift(pipe, &run->report);
out:
  pipe->n_links = n_links; /* the ends are those of this run */
  if (output.stream.fd != STDOUT_FILENO) close(output.stream.fd);
  psplit_i_run_setup_fini(&setup);
  if (code == PSPLIT_OK) *out_run = rank == 0 ? run : NULL;
  if (code != PSPLIT_OK || rank != 0) psplit_run_destroy(run);
  return code;
}

static psplit_code over_threads(const psplit_i_ort *ort, const psplit_i_pipe *pipe,
                                const psplit_i_run_options *options, uint32_t rank,
                                psplit_diag *diag, psplit_i_timeline *out) {
  (void)rank;
  return psplit_i_run_threads(ort, pipe, options, diag, out);
}

const psplit_i_communicator PSPLIT_I_OVER_THREADS = {over_threads, "threads", 0};

psplit_code psplit_pipeline_run(const psplit_onnxruntime *ort, psplit_pipeline *pipeline,
                                const psplit_run_options *options, psplit_diag *diag,
                                psplit_run **out_run) {
  return psplit_i_run_over(&PSPLIT_I_OVER_THREADS, ort, pipeline, options, NULL, diag, out_run);
}

void psplit_run_destroy(psplit_run *run) {
  if (!run) return;
  psplit_i_timeline_fini(&run->timeline);
  psplit_i_report_fini(&run->report);
  free(run);
}

const psplit_run_report *psplit_run_get_report(const psplit_run *run) { return &run->report; }

/* Hands `text` to the caller. */
static psplit_code give_text(psplit_i_text *text, psplit_diag *diag, char **out_text) {
  if (text->failed) {
    psplit_i_text_fini(text);
    return psplit_i_nomem(diag);
  }
  *out_text = text->bytes;
  return PSPLIT_OK;
}

psplit_code psplit_run_report_json(const psplit_run *run, psplit_diag *diag, char **out_text) {
  psplit_i_text text = {0};
  psplit_i_report_json(&run->report, &run->pipeline->pipe, run->transport, run->ort->ort.version,
                       &text);
  return give_text(&text, diag, out_text);
}

psplit_code psplit_run_trace_json(const psplit_run *run, psplit_diag *diag, char **out_text) {
  psplit_i_text text = {0};
  psplit_i_trace_json(&run->timeline, &run->pipeline->pipe, (uint32_t)run->report.first_micro_batch,
                      &text);
  return give_text(&text, diag, out_text);
}
