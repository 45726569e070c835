/* Libraries that onnx-pipeline-run must refuse: one without OrtGetApiBase, and with OLD one that
 * answers only versions of ONNX Runtime before those that are needed. */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef OLD
static const void *get_api(uint32_t version) {
  static const void *const TABLE[16];
  return version <= 16 ? TABLE : NULL;
}
static const char *get_version(void) { return "1.16.3"; }

typedef struct base {
  const void *(*get_api)(uint32_t);
  const char *(*get_version)(void);
} base;

EXPORT const base *OrtGetApiBase(void);
const base *OrtGetApiBase(void) {
  static const base BASE = {get_api, get_version};
  return &BASE;
}
#else
EXPORT int psplit_not_onnxruntime(void);
int psplit_not_onnxruntime(void) { return 0; }
#endif
