/* Fuzz target: the wire scan alone. What it accepts must keep its promises and unpack. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "fuzz.h"
#include "onnx.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  const int fd = fuzz_file(data, n);
  psplit_i_skeleton skeleton;
  psplit_diag diag = {0};
  const psplit_code code = psplit_i_skeleton_scan(fd, n, 64 << 20, NULL, NULL, &diag, &skeleton);
  if ((code == PSPLIT_OK) == (diag.message[0] != '\0')) abort();
  if (code == PSPLIT_OK) {
    check_skeleton(&skeleton, data, n);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, skeleton.n_bytes, skeleton.bytes);
    if (!model) abort();
    onnx__model_proto__free_unpacked(model, NULL);
  }
  psplit_i_skeleton_fini(&skeleton);
  close(fd);
  return 0;
}
