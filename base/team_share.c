/* The one parallel region that there is. In a file of its own: compilers call the runtime from the
 * first line of a function with a region in it, and may put that function into others. */
#include "team_share.h"

#include <omp.h>
#include <stdatomic.h>

void psplit_i_team_share(int n_threads, size_t begin, size_t end,
                         void (*work)(void *with, size_t i, int thread), void *with) {
  atomic_size_t next = begin;
#pragma omp parallel num_threads(n_threads)
  for (size_t i; (i = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed)) < end;)
    work(with, i, omp_get_thread_num());
}
