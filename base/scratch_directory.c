#include "scratch_directory.h"

#include <stdlib.h>

#include "diag.h"

const char *psplit_i_scratch_place(void) {
  const char *folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

psplit_code psplit_i_scratch_directory(const char *name, psplit_diag *diag, psplit_i_text *out) {
  psplit_code code = PSPLIT_OK;
  psplit_i_text_addf(out, "%s/psplit-%s-XXXXXX", psplit_i_scratch_place(), name);
  if (out->failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  if (!mkdtemp(out->bytes))
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "no directory can be made under %s",
                              psplit_i_scratch_place()));
out:
  if (code != PSPLIT_OK) psplit_i_text_fini(out);
  return code;
}
