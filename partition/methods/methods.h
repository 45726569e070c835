/* The table of bounds and solvers, by number and by name. Its rows are methods.def; what they run
 * is bound to them where it can be called: bounds/bounds.c, portfolio.c, placing.c. */
#ifndef PSPLIT_PARTITION_METHODS_H
#define PSPLIT_PARTITION_METHODS_H

#include <psplit/partition.h>

typedef enum psplit_i_method {
#define PSPLIT_I_BOUND(id, ...) PSPLIT_I_BOUND_##id,
#define PSPLIT_I_SOLVER(id, ...) PSPLIT_I_SOLVER_##id,
#define PSPLIT_I_NAME(id, ...) PSPLIT_I_##id,
#define PSPLIT_I_RULE(id) PSPLIT_I_RULE_##id,
#include "methods.def"
  PSPLIT_I_N_METHODS, /* and no method */
} psplit_i_method;

/* What a problem and its options have; sets are bits. */
typedef enum psplit_i_feature {
#define PSPLIT_I_FEATURE(id, name) PSPLIT_I_FEATURE_##id,
#include "capabilities.def"
  PSPLIT_I_N_FEATURES,
} psplit_i_feature;

/* O(nodes). Numbered copies: replicas where a stage's number means more than an order; the device
 * automaton takes the feature away where it counts stages and devices apart. */
uint32_t psplit_i_features_of(const psplit_problem *problem,
                              const psplit_partition_options *options);
/* Whether the method may run, and its word be taken, with all of these features. */
bool psplit_i_takes(psplit_i_method method, uint32_t features);
/* Features that no solver handles together. Errors: UNSUPPORTED. */
PSPLIT_MUST_USE psplit_code psplit_i_features_check(uint32_t features, psplit_diag *diag);

/* Static text; "none" where it is no method. */
const char *psplit_i_method_name(psplit_i_method method);
/* The solver of an option's text; PSPLIT_I_N_METHODS where users can ask for none of the name. */
psplit_i_method psplit_i_solver_asked(const char *name);
/* "auto, exact, ...": all that users can ask for. A constant expression. */
#define PSPLIT_I_SOLVERS_ASKED (psplit_i_solvers_asked + 2)
extern const char psplit_i_solvers_asked[];

#endif
