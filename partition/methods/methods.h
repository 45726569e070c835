/* The table of bounds and solvers, by number and by name. Its rows are methods.def; what they run
 * is bound to them where it can be called: bounds/bounds.c, contiguous.c, placing.c. */
#ifndef PSPLIT_PARTITION_METHODS_H
#define PSPLIT_PARTITION_METHODS_H

#include <psplit/partition.h>

typedef enum psplit_i_method {
#define PSPLIT_I_BOUND(id, ...) PSPLIT_I_BOUND_##id,
#define PSPLIT_I_SOLVER(id, ...) PSPLIT_I_SOLVER_##id,
#define PSPLIT_I_NAME(id, ...) PSPLIT_I_##id,
#include "methods.def"
#undef PSPLIT_I_BOUND
#undef PSPLIT_I_SOLVER
#undef PSPLIT_I_NAME
  PSPLIT_I_N_METHODS, /* and no method */
} psplit_i_method;

/* Static text; "none" where it is no method. */
const char *psplit_i_method_name(psplit_i_method method);
/* The solver of an option's text; PSPLIT_I_N_METHODS where users can ask for none of the name. */
psplit_i_method psplit_i_solver_asked(const char *name);
/* "auto, exact, ...": all that users can ask for. A constant expression. */
#define PSPLIT_I_SOLVERS_ASKED (psplit_i_solvers_asked + 2)
extern const char psplit_i_solvers_asked[];

#endif
