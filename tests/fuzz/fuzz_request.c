/* Fuzz target: requests of the inference protocol. The first byte says how many bytes at the end
 * are binary data; what is taken for a request lies within what was given, and is freed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "protocol.h"

/* Every byte that it says there is can be read. */
static unsigned touch(const serve_request *request) {
  unsigned sum = 0;
  for (uint32_t i = 0; i < request->n_inputs; i++) {
    const psplit_tensor_view *tensor = &request->inputs[i].tensor;
    const unsigned char *bytes = tensor->data;
    if (tensor->n_bytes && !bytes) abort();
    for (uint64_t k = 0; k < tensor->n_bytes; k++) sum += bytes[k];
    for (uint32_t d = 0; d < tensor->n_dims; d++) sum += tensor->dims[d] != 0;
    sum += (unsigned)strlen(request->inputs[i].name);
  }
  for (size_t i = 0; i < request->n_wanted; i++) sum += (unsigned)strlen(request->wanted[i].name);
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  psplit_diag diag = {0};
  serve_request request = {0};
  if (!n) return 0;
  const size_t n_body = n - 1, n_binary = data[0] < n_body ? data[0] : n_body;
  char *body = malloc(n_body + 1); /* of its own, for sanitizers to see its ends */
  if (!body) return 0;
  memcpy(body, data + 1, n_body);
  const psplit_code code = serve_request_parse(body, n_body, n_body - n_binary, &diag, &request);
  if ((code == PSPLIT_OK) == (*diag.message != '\0')) abort();
  static volatile unsigned seen;
  if (code == PSPLIT_OK) seen = touch(&request);
  (void)seen;
  serve_request_fini(&request);
  free(body);
  return 0;
}
