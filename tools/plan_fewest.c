/* The fewest stages that fit into the memory that each may have. */
#include "log_once.h"
#include "plan_options.h"

/* Whether a number of stages failed as not all of them can have work. */
static bool too_many(const psplit_diag *why) {
  return why->hint == PSPLIT_HINT_FEWER_STAGES || why->hint == PSPLIT_HINT_INLINE_KNOWN ||
         why->hint == PSPLIT_HINT_INLINE_ASSUMED;
}

/* More stages need no more memory each, or hardly: doubled until they fit or are too many, then
 * halved. */
static psplit_code search(const plan_options *options, const psplit_model *model, psplit_diag *diag,
                          planned *out) {
  enum { MOST_STAGES = 1024 };
  uint32_t low = 0, high = MOST_STAGES + 1; /* low do not fit; high do, or cannot all have work */
  bool found = false;
  psplit_diag why = {0}; /* of low */
  while (high - low > 1) {
    const bool doubles = high > MOST_STAGES;
    const uint32_t n = !doubles ? low + (high - low) / 2 : low ? low * 2 : 1;
    planned tried = {0};
    psplit_diag failed = {0};
    if (n > MOST_STAGES) break;
    const psplit_code code = planned_make(options, model, n, &failed, &tried);
    if (code == PSPLIT_OK) {
      planned_fini(out);
      *out = tried;
      found = true;
      high = n;
      continue;
    }
    planned_fini(&tried);
    if (code != PSPLIT_INFEASIBLE) {
      *diag = failed;
      return code;
    }
    if (n > 1 && too_many(&failed)) {
      high = n;
    } else {
      low = n;
      why = failed;
    }
  }
  if (!found) *diag = why;
  return found ? PSPLIT_OK : PSPLIT_INFEASIBLE;
}

psplit_code planned_make_fewest(plan_options *options, const psplit_model *model, psplit_diag *diag,
                                planned *out) {
  const psplit_logger *logger = options->planner.logger;
  log_once *log = logger ? log_once_create(logger) : NULL;
  if (logger && !log) return cli_nomem(diag);
  if (log) options->planner.logger = log_once_logger(log);
  const psplit_code code = search(options, model, diag, out);
  options->planner.logger = logger;
  out->log = log; /* the planner has it */
  return code;
}
