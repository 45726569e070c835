#include "mpi_driver.h"

#include "mpi_wait.h"

/* A look at all lanes, by who has the turn. */
static void look(psplit_i_driver *d) {
  psplit_diag diag = {0};
  bool busy = false, any = false;
  for (uint32_t i = 0; i < d->n_lanes && !atomic_load(&d->host->stopped); i++) {
    bool moved;
    do { /* what has arrived goes all the way, and what comes next may be there too */
      moved = false;
      if (psplit_i_lane_step(&d->lanes[i], &diag, &moved) != PSPLIT_OK)
        d->host->fail(d->host, &diag);
      any |= moved;
    } while (moved && diag.code == PSPLIT_OK);
    busy |= psplit_i_lane_is_busy(&d->lanes[i]);
  }
  atomic_store(&d->busy, busy);
  if (any) atomic_store(&d->moved_ns, psplit_i_now_ns());
}

/* Looks, or leaves it to who has the turn: that one looks again before it goes. */
static void move(psplit_i_mover *mover) {
  psplit_i_driver *d = (psplit_i_driver *)mover;
  atomic_store(&d->asked, true);
  while (atomic_load(&d->asked) && pthread_mutex_trylock(&d->turn) == 0) {
    if (atomic_exchange(&d->asked, false)) look(d);
    pthread_mutex_unlock(&d->turn);
  }
}

static uint32_t ticket(psplit_i_mover *mover) {
  return psplit_i_doorbell_ticket(((psplit_i_driver *)mover)->doorbell);
}

static void wake(psplit_i_mover *mover) {
  psplit_i_doorbell_ring_here(((psplit_i_driver *)mover)->doorbell, PSPLIT_I_DOORBELL_IDLE);
}

/* How long may be slept, by who looks again soon anyway or not. Where everyone can ring, who does
 * makes an end of it. */
static int64_t nap_ns(const psplit_i_driver *d, bool hurry, int64_t least_ns, int64_t most_ns) {
  static const int64_t US = 1000, MS = 1000000;
  const int64_t idle_ns = psplit_i_now_ns() - atomic_load(&d->moved_ns);
  if (hurry || atomic_load(&d->busy)) return psplit_i_mpi_nap_ns(idle_ns, 20 * US, 200 * US);
  if (psplit_i_doorbell_reaches_all(d->doorbell)) return 20 * MS;
  return psplit_i_mpi_nap_ns(idle_ns, least_ns, most_ns);
}

static void sleep_idle(psplit_i_mover *mover, uint32_t before) {
  static const int64_t LEAST_NS = 20000, MOST_NS = 1000000;
  psplit_i_driver *d = (psplit_i_driver *)mover;
  psplit_i_doorbell_wait(d->doorbell, before, PSPLIT_I_DOORBELL_IDLE,
                         nap_ns(d, false, LEAST_NS, MOST_NS));
}

void psplit_i_driver_stand_by(psplit_i_driver *d, uint32_t before, bool hurry) {
  /* The stage itself looks whenever it has computed, and each look in between takes the core from
   * it: some percent of it, were they all a millisecond apart. */
  static const int64_t LEAST_NS = 1000000, MOST_NS = 5000000;
  psplit_i_doorbell_wait(d->doorbell, before, PSPLIT_I_DOORBELL_STAND_IN,
                         nap_ns(d, hurry, LEAST_NS, MOST_NS));
}

void psplit_i_driver_init(psplit_i_driver *d, psplit_i_host *host, psplit_i_doorbell *doorbell,
                          psplit_i_lane *lanes) {
  *d =
    (psplit_i_driver){.mover = {.move = move, .ticket = ticket, .sleep = sleep_idle, .wake = wake},
                      .host = host,
                      .doorbell = doorbell,
                      .lanes = lanes};
  pthread_mutex_init(&d->turn, NULL);
}

void psplit_i_driver_fini(psplit_i_driver *d) { pthread_mutex_destroy(&d->turn); }

void psplit_i_driver_enter(psplit_i_driver *d) {
  pthread_mutex_lock(&d->turn);
  look(d);
}

void psplit_i_driver_leave(psplit_i_driver *d) {
  pthread_mutex_unlock(&d->turn);
  if (atomic_load(&d->asked)) move(&d->mover);
}
