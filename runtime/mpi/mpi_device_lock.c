#include "mpi_device_lock.h"

#include <stdlib.h>
#include <string.h>

#include "mpi_shared.h"

struct psplit_i_device_lock {
  psplit_i_shared *shared;
  pthread_mutex_t *mine;
};

static bool same_device(const psplit_i_manifest *manifest, uint32_t a, uint32_t b) {
  return strcmp(manifest->stages[a].device, manifest->stages[b].device) == 0;
}

static bool any_has_several(const psplit_i_manifest *manifest) {
  for (uint32_t a = 0; a < manifest->n_stages; a++)
    for (uint32_t b = 0; b < a; b++)
      if (same_device(manifest, a, b)) return true;
  return false;
}

/* Between processes; whoever waits gets it where the one that holds it is killed. */
static bool make_turn(pthread_mutex_t *turn) {
  pthread_mutexattr_t how;
  if (pthread_mutexattr_init(&how)) return false;
  const bool good = !pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED) &&
                    !pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST) &&
                    !pthread_mutex_init(turn, &how);
  pthread_mutexattr_destroy(&how);
  return good;
}

/* That of the first rank of this host with the same device, if this is not the only one. */
static pthread_mutex_t *find(const psplit_i_shared *shared, const psplit_i_manifest *manifest,
                             uint32_t rank) {
  pthread_mutex_t *first = NULL;
  uint32_t n = 0;
  for (uint32_t r = 0; r < manifest->n_stages; r++) {
    uint64_t n_bytes;
    pthread_mutex_t *turn = psplit_i_shared_of(shared, r, &n_bytes);
    if (!turn || !same_device(manifest, r, rank)) continue;
    if (!n++) first = turn;
  }
  return n > 1 ? first : NULL;
}

psplit_code psplit_i_device_lock_create(const psplit_i_manifest *manifest, uint32_t rank,
                                        psplit_diag *diag, psplit_i_device_lock **out) {
  psplit_code code;
  uint64_t n_bytes;
  if (!any_has_several(manifest)) return PSPLIT_OK;
  psplit_i_device_lock *lock = calloc(1, sizeof *lock);
  if (!lock) return psplit_i_nomem(diag);
  PSPLIT_TRY(
    psplit_i_shared_create(manifest->n_stages, sizeof(pthread_mutex_t), diag, &lock->shared));
  pthread_mutex_t *own = psplit_i_shared_of(lock->shared, rank, &n_bytes);
  if (own && !(psplit_i_shared_reserve(own, sizeof(pthread_mutex_t)) && make_turn(own)))
    PSPLIT_FAIL(psplit_i_nomem(diag));
  psplit_i_shared_meet(lock->shared); /* none is taken before it is made */
  lock->mine = find(lock->shared, manifest, rank);
  *out = lock;
  return PSPLIT_OK;
out:
  free(lock); /* the caller ends all ranks */
  return code;
}

void psplit_i_device_lock_destroy(psplit_i_device_lock *lock) {
  if (lock) psplit_i_shared_destroy(lock->shared);
  free(lock);
}

pthread_mutex_t *psplit_i_device_lock_mine(const psplit_i_device_lock *lock) {
  return lock ? lock->mine : NULL;
}
