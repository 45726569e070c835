/* The built-in passes. */
#include "passes.h"

#define X(identifier) extern const psplit_i_pass psplit_i_pass_##identifier;
#include "passes.def"
#undef X

const psplit_i_pass *const psplit_i_passes[] = {
#define X(identifier) &psplit_i_pass_##identifier,
#include "passes.def"
#undef X
};
const size_t psplit_i_n_passes = sizeof psplit_i_passes / sizeof *psplit_i_passes;
