#include "outputs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

psplit_code psplit_i_outputs_begin(const char *directory, const psplit_i_pipe *pipe,
                                   uint32_t n_micro_batches, bool index, psplit_diag *diag) {
  if (mkdir(directory, 0777) != 0 && errno != EEXIST)
    return psplit_i_fail(diag, PSPLIT_IO, "%s: cannot be made: %s", directory, strerror(errno));
  if (!index) return PSPLIT_OK;
  psplit_text text = {0}, path = {0};
  psplit_json json;
  psplit_i_json_init(&json, &text);
  psplit_i_json_open(&json, '{');
  psplit_i_json_key(&json, "micro_batches");
  psplit_i_json_uint(&json, n_micro_batches);
  psplit_i_json_key(&json, "outputs");
  psplit_i_json_open(&json, '[');
  for (uint32_t o = 0; o < pipe->manifest.n_outputs; o++)
    psplit_i_json_string(&json, pipe->manifest.outputs[o]);
  psplit_i_json_close(&json, ']');
  psplit_i_json_close(&json, '}');
  psplit_i_text_puts(&text, "\n");
  psplit_i_text_addf(&path, "%s/outputs.json", directory);
  const psplit_code code = text.failed || path.failed
                             ? psplit_i_nomem(diag)
                             : psplit_i_file_write(path.bytes, &text, diag);
  psplit_i_text_fini(&path);
  psplit_i_text_fini(&text);
  return code;
}

psplit_code psplit_i_outputs_write(void *user, uint32_t micro_batch, uint32_t output,
                                   psplit_i_tensor *tensor, psplit_diag *diag) {
  const psplit_i_output_directory *to = user;
  psplit_text stem = {0};
  psplit_i_text_addf(&stem, "%s/%u-%u", to->directory, micro_batch, output);
  const psplit_code code =
    stem.failed ? psplit_i_nomem(diag) : psplit_i_array_write(tensor, stem.bytes, diag);
  psplit_i_text_fini(&stem);
  return code;
}
