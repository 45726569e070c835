#include "mpi_driver.h"

void psplit_i_driver_look(psplit_i_driver *d, bool *out_moved) {
  psplit_diag diag = {0};
  for (uint32_t i = 0; i < d->n_lanes && !atomic_load(&d->host->stopped); i++) {
    bool moved;
    do { /* what has arrived goes all the way, and what comes next may be there too */
      moved = false;
      if (psplit_i_lane_step(&d->lanes[i], &diag, &moved) != PSPLIT_OK)
        d->host->fail(d->host, &diag);
      *out_moved |= moved;
    } while (moved && diag.code == PSPLIT_OK);
  }
}

/* Looks, or leaves it to who has the turn: that one looks again before it goes. */
static bool move(psplit_i_mover *mover) {
  psplit_i_driver *d = (psplit_i_driver *)mover;
  bool moved = false;
  atomic_store(&d->asked, true);
  while (atomic_load(&d->asked) && pthread_mutex_trylock(&d->turn) == 0) {
    if (atomic_exchange(&d->asked, false)) psplit_i_driver_look(d, &moved);
    pthread_mutex_unlock(&d->turn);
  }
  return moved;
}

void psplit_i_driver_init(psplit_i_driver *d, psplit_i_host *host, psplit_i_lane *lanes) {
  *d = (psplit_i_driver){.mover = {move}, .host = host, .lanes = lanes};
  pthread_mutex_init(&d->turn, NULL);
}

void psplit_i_driver_fini(psplit_i_driver *d) { pthread_mutex_destroy(&d->turn); }

void psplit_i_driver_enter(psplit_i_driver *d) { pthread_mutex_lock(&d->turn); }

void psplit_i_driver_leave(psplit_i_driver *d) {
  pthread_mutex_unlock(&d->turn);
  if (atomic_load(&d->asked)) move(&d->mover);
}
