#include "mpi_gather.h"

#include <stdlib.h>

#include "mpi_lane.h"
#include "mpi_wait.h"

/* How much later this rank's clock is than rank 0's, by the quickest of some round trips. */
static psplit_code clock_offset(uint32_t rank, uint32_t n_ranks,
                                const psplit_i_run_options *options, psplit_diag *diag,
                                int64_t *out_ns) {
  enum { TRIPS = 8, TAG = PSPLIT_I_TAG_CLOCK };
  static const char WHAT[] = "comparing clocks";
  psplit_code code = PSPLIT_OK;
  *out_ns = 0;
  for (uint32_t peer = 1; peer < n_ranks; peer++) {
    if (rank != 0 && rank != peer) continue;
    int64_t best_ns = INT64_MAX;
    for (int trip = 0; trip < TRIPS; trip++) {
      MPI_Request request;
      int64_t theirs = 0;
      const int64_t before = psplit_i_now_ns();
      if (rank == 0) {
        MPI_Irecv(&theirs, 1, MPI_INT64_T, (int)peer, TAG, MPI_COMM_WORLD, &request);
        PSPLIT_TRY(psplit_i_mpi_wait(&request, options, WHAT, diag));
        theirs = psplit_i_now_ns();
        MPI_Isend(&theirs, 1, MPI_INT64_T, (int)peer, TAG, MPI_COMM_WORLD, &request);
        PSPLIT_TRY(psplit_i_mpi_wait(&request, options, WHAT, diag));
        continue;
      }
      MPI_Isend(&before, 1, MPI_INT64_T, 0, TAG, MPI_COMM_WORLD, &request);
      PSPLIT_TRY(psplit_i_mpi_wait(&request, options, WHAT, diag));
      MPI_Irecv(&theirs, 1, MPI_INT64_T, 0, TAG, MPI_COMM_WORLD, &request);
      PSPLIT_TRY(psplit_i_mpi_wait(&request, options, WHAT, diag));
      const int64_t after = psplit_i_now_ns();
      if (after - before >= best_ns) continue;
      best_ns = after - before;
      *out_ns = before + best_ns / 2 - theirs;
    }
  }
out:
  return code;
}

static void shift(psplit_i_timeline *timeline, int64_t offset_ns) {
  for (uint32_t m = 0; m < timeline->capacity; m++) {
    psplit_i_event *e = &timeline->events[m];
    e->begin_ns -= offset_ns;
    e->ready_ns -= offset_ns;
    e->done_ns -= offset_ns;
    e->sent_ns -= offset_ns;
  }
  timeline->sums->first_ready_ns -= offset_ns;
  timeline->sums->first_sent_ns -= offset_ns;
  timeline->sums->last_sent_ns -= offset_ns;
}

/* Moves what this rank passed over to rank 0, where there is something to add to. */
static psplit_code move_failures(uint32_t peer, bool here, const psplit_i_run_options *options,
                                 psplit_diag *diag) {
  enum { TAG = PSPLIT_I_TAG_FAILURES };
  static const char WHAT[] = "collecting the report";
  psplit_i_failures *mine = options->failures;
  uint64_t n[2] = {mine->n, mine->n_kept};
  psplit_i_failure *kept = mine->kept;
  MPI_Request request;
  psplit_code code;
  if (here)
    MPI_Irecv(n, 2, MPI_UINT64_T, (int)peer, TAG, MPI_COMM_WORLD, &request);
  else
    MPI_Isend(n, 2, MPI_UINT64_T, 0, TAG, MPI_COMM_WORLD, &request);
  PSPLIT_TRY(psplit_i_mpi_wait(&request, options, WHAT, diag));
  if (!n[1] || n[1] > PSPLIT_I_MOST_FAILURES) return PSPLIT_OK;
  const int n_bytes = (int)(n[1] * sizeof *kept);
  if (here && !(kept = malloc((size_t)n_bytes))) return psplit_i_nomem(diag);
  if (here)
    MPI_Irecv(kept, n_bytes, MPI_BYTE, (int)peer, TAG, MPI_COMM_WORLD, &request);
  else
    MPI_Isend(kept, n_bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &request);
  PSPLIT_TRY(psplit_i_mpi_wait(&request, options, WHAT, diag));
  if (!here) return PSPLIT_OK;
  free(mine->kept); /* one rank alone ends micro-batches: there is nothing to join */
  mine->kept = kept;
  mine->n_kept = (uint32_t)n[1];
  mine->n = n[0];
out:
  return code;
}

psplit_code psplit_i_mpi_gather_delivered(const psplit_i_pipe *pipe,
                                          const psplit_i_run_options *options, uint32_t rank,
                                          psplit_diag *diag) {
  const uint32_t deliverer = psplit_i_pipe_deliverer(pipe);
  if (!deliverer || (rank != 0 && rank != deliverer)) return PSPLIT_OK;
  static const char WHAT[] = "collecting the report";
  MPI_Request request;
  psplit_code code;
  psplit_i_delivered_list *list = calloc(1, sizeof *list);
  if (!list) return psplit_i_nomem(diag);
  if (rank == 0) {
    MPI_Irecv(list, sizeof *list, MPI_BYTE, (int)deliverer, PSPLIT_I_TAG_FAILURES, MPI_COMM_WORLD,
              &request);
  } else {
    list->n_ranges =
      psplit_delivered_get(options->delivered, list->ranges, PSPLIT_MOST_RANGES, &list->n);
    MPI_Isend(list, sizeof *list, MPI_BYTE, 0, PSPLIT_I_TAG_FAILURES, MPI_COMM_WORLD, &request);
  }
  code = psplit_i_mpi_wait(&request, options, WHAT, diag);
  if (code != PSPLIT_OK) return code; /* the message may still be under way: the list stays */
  if (rank == 0) psplit_i_delivered_set(options->delivered, list);
  free(list);
  return code;
}

psplit_code psplit_i_mpi_gather(psplit_i_timeline *mine, const psplit_i_run_options *options,
                                uint32_t rank, uint32_t n_ranks, psplit_diag *diag,
                                psplit_i_timeline *out) {
  psplit_code code;
  const int events_bytes = (int)(mine->capacity * sizeof *mine->events),
            sums_bytes = (int)sizeof *mine->sums;
  psplit_i_timeline all = {0};
  MPI_Request request;
  int64_t offset_ns;
  PSPLIT_TRY(clock_offset(rank, n_ranks, options, diag, &offset_ns));
  shift(mine, offset_ns);
  if (rank == 0) PSPLIT_TRY(psplit_i_timeline_init(n_ranks, mine->capacity, diag, &all));
  MPI_Igather(mine->events, events_bytes, MPI_BYTE, all.events, events_bytes, MPI_BYTE, 0,
              MPI_COMM_WORLD, &request);
  PSPLIT_TRY(psplit_i_mpi_wait(&request, options, "collecting the report", diag));
  MPI_Igather(mine->sums, sums_bytes, MPI_BYTE, all.sums, sums_bytes, MPI_BYTE, 0, MPI_COMM_WORLD,
              &request);
  PSPLIT_TRY(psplit_i_mpi_wait(&request, options, "collecting the report", diag));
  for (uint32_t peer = 1; peer < n_ranks && options->on_error == PSPLIT_ON_ERROR_SKIP; peer++)
    if (rank == 0 || rank == peer) PSPLIT_TRY(move_failures(peer, rank == 0, options, diag));
  all.n_micro_batches = mine->sums->n_micro_batches;
  *out = all;
  return PSPLIT_OK;
out:
  psplit_i_timeline_fini(&all);
  return code;
}
