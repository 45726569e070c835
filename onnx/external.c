/* External tensor data: parsing its entries and opening its files without being led astray. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model.h"

psplit_code psplit_i_external_parse(const Onnx__TensorProto *tensor, psplit_diag *diag,
                                    psplit_i_external *out) {
  psplit_i_external external = {.bytes = UINT64_MAX};
  bool has_offset = false;
  for (size_t i = 0; i < tensor->n_external_data; i++) {
    const char *key = tensor->external_data[i]->key;
    const char *value = tensor->external_data[i]->value;
    if (!key || !value) return psplit_i_fail(diag, PSPLIT_INVALID, "an empty external_data entry");
    if (strcmp(key, "location") == 0) {
      if (external.location)
        return psplit_i_fail(diag, PSPLIT_INVALID, "two external_data locations");
      external.location = value;
    } else if (strcmp(key, "offset") == 0) {
      if (has_offset || !psplit_i_parse_u64(value, &external.offset))
        return psplit_i_fail(diag, PSPLIT_INVALID, "external_data offset \"%s\"", value);
      has_offset = true;
    } else if (strcmp(key, "length") == 0) {
      if (external.bytes != UINT64_MAX || !psplit_i_parse_u64(value, &external.bytes) ||
          external.bytes == UINT64_MAX)
        return psplit_i_fail(diag, PSPLIT_INVALID, "external_data length \"%s\"", value);
    }
  }
  if (!external.location || !*external.location)
    return psplit_i_fail(diag, PSPLIT_INVALID, "external data without a location");
  *out = external;
  return PSPLIT_OK;
}

/* Refused by spelling, before the file system is asked. */
static bool location_escapes(const char *location) {
  if (location[0] == '/' || location[0] == '\\') return true;
  for (const char *part = location; *part;) {
    const size_t n = strcspn(part, "/");
    if (n == 2 && part[0] == '.' && part[1] == '.') return true;
    part += n;
    while (*part == '/') part++;
  }
  return false;
}

/* Characters of `path` up to its last slash. */
static size_t directory_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

static int open_model_directory(const char *path) {
  char directory[4096];
  const size_t n = directory_length(path);
  if (n >= sizeof directory) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(directory, path, n);
  directory[n] = '\0';
  return open(n ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Only compared, never read as a time: seconds far from 1970 may wrap around. */
static int64_t modified_ns_of(const struct stat *status) {
  return (int64_t)((uint64_t)status->st_mtim.tv_sec * 1000000000 +
                   (uint64_t)status->st_mtim.tv_nsec);
}

psplit_i_data_file psplit_i_data_file_of(const char *location, const char *path, int fd,
                                         const struct stat *status) {
  return (psplit_i_data_file){.location = location,
                              .path = path,
                              .fd = fd,
                              .bytes = (uint64_t)status->st_size,
                              .device = (uint64_t)status->st_dev,
                              .inode = (uint64_t)status->st_ino,
                              .modified_ns = modified_ns_of(status)};
}

psplit_code psplit_i_data_file_open(psplit_model *model, const char *location, psplit_diag *diag,
                                    uint32_t *out_file) {
  const uint32_t known = psplit_i_intern_find(&model->locations, location);
  if (known != PSPLIT_NONE) {
    *out_file = known + 1;
    return PSPLIT_OK;
  }
  if (location_escapes(location))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "external data location \"%s\" leads out of the model's directory",
                         location);
  const char *data_directory = model->options.data_directory;
  if (model->directory_fd < 0)
    model->directory_fd = data_directory
                            ? open(data_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                            : open_model_directory(model->path);
  if (model->directory_fd < 0)
    return psplit_i_fail(diag, PSPLIT_IO, "cannot open the model's directory: %s",
                         strerror(errno));
  const int fd =
    psplit_i_open_beneath(model->directory_fd, location, model->options.follow_symlinks);
  const int reason = errno;
  if (fd < 0 && (reason == EMFILE || reason == ENFILE))
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "external data \"%s\" is one open file too many; `ulimit -n` raises the "
                         "limit",
                         location);
  if (fd < 0 && (reason == ELOOP || reason == EXDEV))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "external data \"%s\" is reached through a symbolic link; "
                         "--follow-symlinks allows that",
                         location);
  if (fd < 0)
    return psplit_i_fail(diag, PSPLIT_IO, "cannot open external data \"%s\": %s", location,
                         strerror(reason));
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return psplit_i_fail(diag, PSPLIT_INVALID, "external data \"%s\" is not a regular file",
                         location);
  }
  const char *directory = data_directory ? data_directory : model->path;
  const size_t n_directory = data_directory ? strlen(data_directory) : directory_length(directory);
  const size_t n_location = strlen(location);
  char *path = psplit_i_arena_alloc(&model->arena, n_directory + 1 + n_location + 1);
  if (!path || !psplit_i_vec_reserve(&model->files, 1) ||
      psplit_i_intern_add(&model->locations, location) == PSPLIT_NONE) {
    close(fd);
    return psplit_i_nomem(diag);
  }
  memcpy(path, directory, n_directory);
  if (data_directory) path[n_directory] = '/';
  memcpy(path + n_directory + (data_directory != NULL), location, n_location + 1);
  *out_file = (uint32_t)model->files.n;
  model->files.items[model->files.n++] = psplit_i_data_file_of(location, path, fd, &status);
  return PSPLIT_OK;
}

psplit_code psplit_i_model_read(const psplit_model *model, uint32_t file, uint64_t offset,
                                void *out, size_t bytes, psplit_diag *diag) {
  uint8_t *next = out;
  while (bytes) {
    const ssize_t got = pread(model->files.items[file].fd, next, bytes, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return psplit_i_fail(diag, PSPLIT_IO, "%s%s: cannot read %zu bytes at %" PRIu64 ": %s",
                           file ? "external data " : model->path,
                           model->files.items[file].location, bytes, offset,
                           got ? strerror(errno) : "the file became shorter");
    next += got;
    offset += (uint64_t)got;
    bytes -= (size_t)got;
  }
  return PSPLIT_OK;
}

psplit_code psplit_i_model_unchanged(const psplit_model *model, psplit_diag *diag) {
  for (size_t i = 0; i < model->files.n; i++) {
    const psplit_i_data_file *file = &model->files.items[i];
    struct stat status;
    if (fstat(file->fd, &status) != 0 || (uint64_t)status.st_size != file->bytes ||
        modified_ns_of(&status) != file->modified_ns)
      return psplit_i_fail(diag, PSPLIT_IO, "%s changed while it was being split",
                           i ? file->location : model->path);
  }
  return PSPLIT_OK;
}
