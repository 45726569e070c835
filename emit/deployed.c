/* Common parts of configurations for servers and clusters: a model's name, and whether a stage
 * needs a GPU. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base_name.h"
#include "emit.h"

void psplit_i_deployed_name(const char *path, char joint, char *out, size_t bytes) {
  const char *name = psplit_i_base_name(path);
  const char *dot = strrchr(name, '.');
  size_t n = 0;
  for (; *name && name != dot && n + 1 < bytes; name++) {
    const unsigned char c = (unsigned char)*name;
    if (isalnum(c) && c < 0x80)
      out[n++] = (char)tolower(c);
    else if (n && out[n - 1] != joint)
      out[n++] = joint;
  }
  while (n && out[n - 1] == joint) n--;
  out[n] = '\0';
  if (!n && bytes > sizeof "model") memcpy(out, "model", sizeof "model");
}

bool psplit_i_deployed_on_gpu(const psplit_session *session) {
  static const char *const PROVIDERS[] = {"CUDA", "Tensorrt", "NvTensorRT"};
  bool found = false;
  for (size_t i = 0; i < sizeof PROVIDERS / sizeof *PROVIDERS && session && session->provider; i++)
    found |= strncasecmp(session->provider, PROVIDERS[i], strlen(PROVIDERS[i])) == 0;
  return found;
}
