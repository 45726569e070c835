#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <psplit/emit.h>
#include <psplit/file.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "same_file.h"

/* The directory that holds `path`, and the name there; NULL: out of memory. */
static char *holder(const char *path, const char **out_name) {
  const char *slash = strrchr(path, '/');
  *out_name = slash ? slash + 1 : path;
  return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

psplit_code place_make_directory(const char *path, psplit_diag *diag) {
  const char *name;
  if (mkdir(path, 0777) != 0)
    return errno == EEXIST ? PSPLIT_OK
                           : psplit_diag_fail(diag, PSPLIT_IO, "%s: cannot be written: %s", path,
                                              strerror(errno));
  char *home = holder(path, &name);
  if (!home) return cli_nomem(diag);
  const int fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  free(home);
  /* File systems that cannot sync, and directories that cannot be read, are no failure. */
  const bool failed = fd >= 0 && fsync(fd) != 0 && errno != EINVAL && errno != EROFS;
  const int reason = errno;
  if (fd >= 0) close(fd);
  return failed
           ? psplit_diag_fail(diag, PSPLIT_IO, "%s: cannot be written: %s", path, strerror(reason))
           : PSPLIT_OK;
}

/* As models begin: ir_version, which is small, then one of the other fields. */
bool place_holds_model(const char *path) {
  char head[3] = "";
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const bool whole = fd >= 0 && pread(fd, head, sizeof head, 0) == (ssize_t)sizeof head;
  if (fd >= 0) close(fd);
  return whole && head[0] == 0x08 && head[1] > 0 && head[1] < 0x20 &&
         memchr("\x12\x1a\x22\x2a\x32\x3a\x42", head[2], 7);
}

psplit_code place_check_split(const char *path, psplit_diag *diag) {
  psplit_split_place place;
  const psplit_code code = psplit_emit_place(path, diag, &place);
  if (code != PSPLIT_OK || place == PSPLIT_PLACE_FREE) return code;
  if (place == PSPLIT_PLACE_OWN)
    return psplit_diag_fail(diag, PSPLIT_IO, "%s is a file of the split itself; give another name",
                            path);
  cli_warn(
    "%s would be in a split, and onnx-pipeline-split --force does not replace the split until that "
    "is moved",
    path);
  return PSPLIT_OK;
}

static psplit_code check_place(const char *path, const psplit_model *model, psplit_diag *diag) {
  for (uint32_t i = 0; model && i < psplit_model_n_files(model); i++)
    if (cli_same_file(path, psplit_model_file_path(model, i)))
      return psplit_diag_fail(diag, PSPLIT_IO, "%s is a file of the model itself", path);
  const psplit_code code = psplit_file_check(path, diag);
  return code == PSPLIT_OK ? place_check_split(path, diag) : code;
}

psplit_code place_check(const char *path, const psplit_model *model, psplit_diag *diag) {
  const psplit_code code = check_place(path, model, diag);
  if (code != PSPLIT_OK || !place_holds_model(path)) return code;
  return psplit_diag_fail(
    diag, PSPLIT_IO, "%s holds an ONNX model, which a text does not replace; give another name",
    path);
}

psplit_code place_check_new(const char *path, bool replace, const psplit_model *model,
                            psplit_diag *diag) {
  struct stat status;
  if (!replace && stat(path, &status) == 0 && S_ISREG(status.st_mode))
    return psplit_diag_fail(diag, PSPLIT_IO, "%s exists; --force replaces it", path);
  return check_place(path, model, diag);
}

psplit_code place_check_unread(const char *path, const char *input, psplit_diag *diag) {
  if (!cli_same_file(path, input)) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_IO,
                          "%s is read, as %s, and cannot be written as well; give another one",
                          path, input);
}

psplit_code place_check_apart(const char *path, const char *other, psplit_diag *diag) {
  const char *name, *other_name;
  char *a = holder(path, &name);
  if (!a) return cli_nomem(diag);
  char *b = holder(other, &other_name);
  if (!b) {
    free(a);
    return cli_nomem(diag);
  }
  const bool same =
    cli_same_file(path, other) || (strcmp(name, other_name) == 0 && cli_same_file(a, b));
  free(a);
  free(b);
  if (!same) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE, "%s and %s are the same file; give another one", path,
                          other);
}

psplit_code place_check_outside(const char *path, const char *directory, psplit_diag *diag) {
  const char *name;
  char *home = holder(path, &name);
  if (!home) return cli_nomem(diag);
  char *inner = realpath(home, NULL);
  bool no_memory = !inner && errno == ENOMEM;
  char *outer = realpath(directory, NULL); /* which need not be there */
  no_memory |= !outer && errno == ENOMEM;
  const size_t n = outer ? strlen(outer) : 0;
  const bool inside = inner && outer && strncmp(inner, outer, n) == 0 &&
                      (inner[n] == '/' || inner[n] == '\0' || outer[n - 1] == '/');
  free(outer);
  free(inner);
  free(home);
  if (no_memory) return cli_nomem(diag);
  if (!inside) return PSPLIT_OK;
  return psplit_diag_fail(diag, PSPLIT_USAGE,
                          "%s lies in %s, which is replaced as a whole; give another place", path,
                          directory);
}
