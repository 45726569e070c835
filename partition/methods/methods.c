#include "methods.h"

#include <string.h>

enum { INSIDE = PSPLIT_METHOD_SOLVER, ASKED = PSPLIT_METHOD_SOLVER | PSPLIT_METHOD_OPTION };

static const psplit_method METHODS[] = {
#define PSPLIT_I_BOUND(id, title, text, of, when, share, rate, run) \
  {PSPLIT_METHOD_BOUND, title, text},
#define PSPLIT_I_SOLVER(id, title, may_be_asked, text, stages, placement) \
  {may_be_asked, title, text},
#define PSPLIT_I_NAME(id, what, title, text) {PSPLIT_METHOD_##what, title, text},
#include "methods.def"
};

enum { N_NAMED = sizeof METHODS / sizeof *METHODS };

const psplit_method *psplit_partition_methods(size_t *out_n) {
  *out_n = N_NAMED;
  return METHODS;
}

const char *psplit_i_method_name(psplit_i_method method) {
  return (uint32_t)method < N_NAMED ? METHODS[method].name : "none";
}

psplit_i_method psplit_i_solver_asked(const char *name) {
  uint32_t i = 0;
  while (i < N_NAMED &&
         (!name || !(METHODS[i].kind & PSPLIT_METHOD_OPTION) || strcmp(METHODS[i].name, name) != 0))
    i++;
  return i < N_NAMED ? (psplit_i_method)i : PSPLIT_I_N_METHODS;
}

const char psplit_i_solvers_asked[] = ""
#define INSIDE(name)
#define ASKED(name) ", " name
#define PSPLIT_I_SOLVER(id, title, may_be_asked, ...) may_be_asked(title)
#include "methods.def"
  ;
