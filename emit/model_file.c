#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cancel.h"
#include "emit.h"
#include "wire.h"

void psplit_i_rope_span(psplit_i_rope *rope, const psplit_model *model, const psplit_i_span *span) {
  if (span->has_view)
    psplit_i_rope_range(rope, 0, span->file_offset, span->file_bytes);
  else
    psplit_i_rope_view(rope, model->skeleton.bytes + span->skeleton_offset, span->skeleton_bytes);
}

psplit_code psplit_i_span_content(const psplit_model *model, const psplit_i_span *span,
                                  psplit_diag *diag, uint64_t *out_offset, uint64_t *out_bytes) {
  psplit_code code;
  uint8_t head[2 * PSPLIT_I_VARINT_MAX];
  if (!span->file_bytes)
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                         "a model with an If inlined is only written in stages");
  const size_t n = span->file_bytes < sizeof head ? (size_t)span->file_bytes : sizeof head;
  uint64_t tag, length;
  PSPLIT_TRY(psplit_i_model_read(model, 0, span->file_offset, head, n, diag));
  const unsigned n_tag = psplit_i_varint_read(head, n, &tag);
  const unsigned n_length = psplit_i_varint_read(head + n_tag, n - n_tag, &length);
  if (!n_tag || !n_length || n_tag + n_length + length != span->file_bytes)
    return psplit_i_fail(diag, PSPLIT_INTERNAL, "%s changed since it was opened", model->path);
  *out_offset = span->file_offset + n_tag + n_length;
  *out_bytes = length;
out:
  return code;
}

/* `path` without its last component, malloc'd. */
static char *directory_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static bool same_place(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Not one of the model's files, by whatever links, and where their locations hold. */
static psplit_code check_place(const psplit_model *model, const char *path, psplit_diag *diag) {
  struct stat status;
  if (stat(path, &status) == 0)
    for (size_t f = 0; f < model->files.n; f++)
      if ((uint64_t)status.st_dev == model->files.items[f].device &&
          (uint64_t)status.st_ino == model->files.items[f].inode)
        return psplit_i_fail(diag, PSPLIT_IO, "%s is a file of the model itself", path);
  if (!model->has_external_data) return PSPLIT_OK;
  char *here = directory_of(path), *there = psplit_i_model_data_directory(model);
  const bool known = here && there, same = known && same_place(here, there);
  free(here);
  free(there);
  if (!known) return psplit_i_nomem(diag);
  if (same) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_UNSUPPORTED,
                       "%s: the model has external data, which it finds from its own directory "
                       "alone; write the file beside %s",
                       path, model->path);
}

psplit_code psplit_emit_file_check(const psplit_model *model, const char *path, bool replace,
                                   psplit_diag *diag) {
  const psplit_code code = check_place(model, path, diag);
  if (code != PSPLIT_OK) return code;
  return psplit_i_out_probe(path, &(psplit_i_out_options){.keep = !replace}, diag);
}

psplit_code psplit_i_model_file_write(const psplit_model *model, const psplit_i_rope *rope,
                                      const char *path, const psplit_emit_options *given,
                                      psplit_diag *diag) {
  psplit_code code;
  psplit_i_out_file place = {.fd = -1, .directory_fd = -1};
  psplit_i_file file = {.fd = -1};
  psplit_emit_options options = {.struct_size = sizeof options};
  const psplit_i_held_signal held = psplit_i_hold_size_signal();
  PSPLIT_TRY(PSPLIT_I_TAKE_OPTIONS(psplit_emit_options, given, &options, diag));
  const psplit_i_out_options how = {.keep = !options.replace,
                                    .stop = psplit_i_flag(options.cancel)};
  PSPLIT_TRY(check_place(model, path, diag));
  PSPLIT_TRY(psplit_i_out_begin(path, &how, diag, &place));
  const int fd = fcntl(place.fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0)
    PSPLIT_FAIL(psplit_i_fail(diag, PSPLIT_IO, "cannot write %s: %s", path, strerror(errno)));
  PSPLIT_TRY(psplit_i_file_begin(fd, NULL, path, model, diag, &file));
  file.through = place.directory_fd < 0;
  file.cancel = options.cancel;
  file.activity = options.activity;
  PSPLIT_TRY(psplit_i_file_rope(&file, rope, diag));
  PSPLIT_TRY(psplit_i_file_close(&file, rope->bytes, diag));
  PSPLIT_TRY(psplit_i_model_unchanged(model, diag));
  PSPLIT_TRY(psplit_i_go_on(options.cancel, diag));
  PSPLIT_TRY(psplit_i_out_commit(&place, diag));
out:
  psplit_i_file_abandon(&file);
  psplit_i_out_abandon(&place);
  psplit_i_let_size_signal(&held);
  return code;
}
