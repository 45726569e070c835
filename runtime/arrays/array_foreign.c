/* Files that are no arrays. */
#include "arrays.h"
#include "foreign.h"

psplit_code psplit_i_array_foreign(const char *path, const char *what, const unsigned char *data,
                                   size_t n, psplit_diag *diag) {
  const psplit_i_foreign *foreign = psplit_i_foreign_find((const char *)data, n);
  return psplit_i_fail(diag, PSPLIT_MALFORMED, "%s: %s%s%s%s", path, what,
                       foreign ? ": it is " : "", foreign ? foreign->is : "",
                       foreign ? foreign->helps : "");
}
