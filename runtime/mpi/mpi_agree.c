#include "mpi_agree.h"

#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi_wait.h"

/* Of each rank: a row for each file, then the options. 0: it has no such file. */
enum { BLOCK_BYTES = 4096, MOST_BLOCKS = 1024 };

static uint64_t digest_block(int fd, uint64_t at, uint64_t n, uint64_t digest) {
  unsigned char block[BLOCK_BYTES];
  const ssize_t got = pread(fd, block, (size_t)n, (off_t)at);
  return psplit_i_hash_bytes(block, got > 0 ? (size_t)got : 0, digest);
}

/* 0 where it cannot be read. */
static uint64_t digest_file(const char *path, uint64_t digest) {
  psplit_diag ignored = {0};
  uint64_t bytes;
  int fd;
  if (psplit_i_in_open(path, &ignored, &fd, &bytes) != PSPLIT_OK) return 0;
  digest = psplit_i_hash_bytes(&bytes, sizeof bytes, digest);
  const uint64_t n_blocks = bytes / BLOCK_BYTES + (bytes % BLOCK_BYTES != 0);
  const uint64_t step = n_blocks <= MOST_BLOCKS ? 1 : n_blocks / MOST_BLOCKS;
  for (uint64_t b = 0; b < n_blocks; b += step) {
    const uint64_t at = b * BLOCK_BYTES, left = bytes - at;
    digest = digest_block(fd, at, left < BLOCK_BYTES ? left : BLOCK_BYTES, digest);
  }
  /* Files of one size often differ at their end alone. */
  if (step > 1) digest = digest_block(fd, bytes - BLOCK_BYTES, BLOCK_BYTES, digest);
  close(fd);
  return digest ? digest : 1;
}

/* A file of a split; `name` NULL: there is none. */
typedef struct place {
  const char *directory, *name;
} place;

static psplit_code digest_of(place file, psplit_diag *diag, uint64_t *out) {
  psplit_i_text path = {0};
  if (!file.name) return PSPLIT_OK;
  psplit_i_text_addf(&path, "%s/%s", file.directory, file.name);
  if (!path.failed) *out = digest_file(path.bytes, 1);
  const uint64_t model = *out;
  psplit_i_text_puts(&path, ".data");
  if (!path.failed && model) {
    const uint64_t data = digest_file(path.bytes, model);
    if (data) *out = data;
  }
  const bool failed = path.failed;
  psplit_i_text_fini(&path);
  return failed ? psplit_i_nomem(diag) : PSPLIT_OK;
}

/* What makes a rank send or expect other messages. */
static uint64_t digest_options(const psplit_i_pipe *pipe, const psplit_i_run_options *options) {
  const uint64_t said[] = {options->n_micro_batches, options->n_warmup,       options->chunk_bytes,
                           options->on_error,        options->source != NULL, options->first};
  uint64_t digest = psplit_i_hash_bytes(said, sizeof said, 1);
  for (uint32_t l = 0; l < pipe->n_links; l++) {
    const psplit_i_pipe_link *link = &pipe->links[l];
    const uint64_t row[] = {link->from, link->to, link->n_tensors};
    digest = psplit_i_hash_bytes(row, sizeof row, digest);
  }
  return digest ? digest : 1;
}

/* A rank that has another one than some rank before it; PSPLIT_NONE: none. */
static uint32_t find_other(const uint64_t *all, uint32_t n_ranks, uint32_t n, uint32_t row,
                           uint32_t *out_first) {
  uint64_t known = 0;
  for (uint32_t r = 0; r < n_ranks; r++) {
    const uint64_t digest = all[(size_t)r * n + row];
    if (!digest || digest == known) continue;
    if (known) return r;
    known = digest;
    *out_first = r;
  }
  return PSPLIT_NONE;
}

/* Files of all splits: of each phase the manifest and the stages, then those that train. */
static uint32_t count_files(const psplit_i_pipe *pipe) {
  return pipe->n_phases * (1 + pipe->manifest.n_stages) + pipe->manifest.n_training_files;
}

static place file_at(const psplit_i_pipe *pipe, uint32_t i) {
  const psplit_i_manifest *m = &pipe->manifest;
  const uint32_t each = 1 + m->n_stages, n_plain = pipe->n_phases * each;
  if (i >= n_plain) return (place){pipe->directory, m->training_files[i - n_plain]};
  const psplit_i_phase *phase = &pipe->phases[i / each];
  return (place){phase->directory, i % each ? phase->stages[i % each - 1].file : "pipeline.json"};
}

static psplit_code compare(const psplit_i_pipe *pipe, const uint64_t *all, uint32_t n_ranks,
                           uint32_t n_files, psplit_diag *diag) {
  for (uint32_t row = 0; row <= n_files; row++) {
    uint32_t first = 0;
    const uint32_t other = find_other(all, n_ranks, n_files + 1, row, &first);
    if (other == PSPLIT_NONE) continue;
    if (row == n_files)
      return psplit_i_fail(diag, PSPLIT_INVALID,
                           "ranks %u and %u were started with different options", first, other);
    const place file = file_at(pipe, row);
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "ranks %u and %u have different splits: %s/%s is not the same", first,
                         other, file.directory, file.name);
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_mpi_agree(const psplit_i_pipe *pipe, uint32_t n_ranks,
                               const psplit_i_run_options *options, psplit_diag *diag) {
  const uint32_t n_files = count_files(pipe), n = n_files + 1;
  MPI_Request request;
  psplit_code code = PSPLIT_OK;
  uint64_t *mine = calloc(n, sizeof *mine), *all = calloc((size_t)n_ranks * n, sizeof *all);
  if (!mine || !all) PSPLIT_FAIL(psplit_i_nomem(diag));
  mine[n_files] = digest_options(pipe, options);
  for (uint32_t i = 0; i < n_files; i++) PSPLIT_TRY(digest_of(file_at(pipe, i), diag, &mine[i]));
  MPI_Iallgather(mine, (int)n, MPI_UINT64_T, all, (int)n, MPI_UINT64_T, MPI_COMM_WORLD, &request);
  /* Where that fails it goes on, into memory that stays: the caller ends the process. */
  code = psplit_i_mpi_wait(&request, options, "comparing splits", diag);
  if (code != PSPLIT_OK) return code;
  code = compare(pipe, all, n_ranks, n_files, diag);
out:
  free(mine);
  free(all);
  return code;
}
