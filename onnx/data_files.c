/* The files of a model: opened without being led astray, read, and still the same at the end. Of a
 * model with thousands of data files a few are open at a time. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model.h"

/* That stay open, where a quarter of what the process may open is as many: there are two models in
 * a proof, and files to write. Threads may hold more for a moment. */
enum { FEWEST_OPEN = 4, MOST_OPEN = 64 };

typedef struct open_file {
  uint32_t file; /* index into model->files; 0: free, since the model file is not among them */
  uint32_t n_holders;
  int fd;
  uint64_t used_at;
} open_file;

struct psplit_i_open_files {
  pthread_mutex_t lock;
  uint64_t clock;
  size_t n_slots;
  open_file slots[MOST_OPEN];
};

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

psplit_i_data_file psplit_i_data_file_of(const char *location, const char *path,
                                         const struct stat *status) {
  return (psplit_i_data_file){.location = location,
                              .path = path,
                              .bytes = (uint64_t)status->st_size,
                              .device = (uint64_t)status->st_dev,
                              .inode = (uint64_t)status->st_ino,
                              .modified_ns = modified_ns_of(status)};
}

/* --- descriptors --- */

psplit_code psplit_i_open_files_create(psplit_model *model, psplit_diag *diag) {
  psplit_i_open_files *pool = PSPLIT_NEW(&model->arena, psplit_i_open_files, 1);
  if (!pool || pthread_mutex_init(&pool->lock, NULL) != 0) return psplit_i_nomem(diag);
  struct rlimit limit;
  pool->n_slots = MOST_OPEN;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 4 < MOST_OPEN)
    pool->n_slots = limit.rlim_cur / 4 < FEWEST_OPEN ? FEWEST_OPEN : (size_t)limit.rlim_cur / 4;
  model->open_files = pool;
  return PSPLIT_OK;
}

void psplit_i_open_files_close(psplit_model *model) {
  psplit_i_open_files *pool = model->open_files;
  if (!pool) return;
  for (size_t i = 0; i < pool->n_slots; i++)
    if (pool->slots[i].file) close(pool->slots[i].fd);
  pthread_mutex_destroy(&pool->lock);
  model->open_files = NULL;
}

static open_file *find_open(psplit_i_open_files *pool, uint32_t file) {
  for (size_t i = 0; i < pool->n_slots; i++)
    if (pool->slots[i].file == file) return &pool->slots[i];
  return NULL;
}

/* A free slot, made so where need be; NULL where each is held. */
static open_file *free_slot(psplit_i_open_files *pool, bool only_used) {
  open_file *oldest = only_used ? NULL : find_open(pool, 0);
  if (oldest) return oldest;
  for (size_t i = 0; i < pool->n_slots; i++) {
    open_file *slot = &pool->slots[i];
    if (slot->file && !slot->n_holders && (!oldest || slot->used_at < oldest->used_at))
      oldest = slot;
  }
  if (!oldest) return NULL;
  close(oldest->fd);
  *oldest = (open_file){0};
  return oldest;
}

/* A new descriptor, or -1 with errno. Where the process may have no more, others are closed. */
static int open_location(const psplit_model *model, const char *location) {
  for (;;) {
    const int fd =
      psplit_i_open_beneath(model->directory_fd, location, model->options.follow_symlinks);
    if (fd >= 0 || (errno != EMFILE && errno != ENFILE)) return fd;
    const int reason = errno;
    if (!free_slot(model->open_files, true)) {
      errno = reason;
      return -1;
    }
  }
}

/* Notes a new descriptor, held by `n_holders`; false where there is no room. */
static bool keep_open(psplit_i_open_files *pool, uint32_t file, int fd, uint32_t n_holders) {
  open_file *slot = free_slot(pool, false);
  if (!slot) return false;
  *slot = (open_file){.file = file, .n_holders = n_holders, .fd = fd, .used_at = ++pool->clock};
  return true;
}

static psplit_code cannot_open(const char *location, int reason, psplit_diag *diag) {
  if (reason == EMFILE || reason == ENFILE)
    return psplit_i_fail(diag, PSPLIT_LIMIT,
                         "external data \"%s\" is one open file too many; `ulimit -n` raises the "
                         "limit",
                         location);
  if (reason == ELOOP || reason == EXDEV)
    return psplit_i_fail_about(diag, PSPLIT_INVALID, PSPLIT_I_HELPS(FOLLOW_SYMLINKS),
                               "external data \"%s\" is reached through a symbolic link", location);
  return psplit_i_fail(diag, PSPLIT_IO, "cannot open external data \"%s\": %s", location,
                       strerror(reason));
}

static psplit_code has_changed(const psplit_model *model, uint32_t file, psplit_diag *diag) {
  return psplit_i_fail(diag, PSPLIT_IO, "%s changed while it was being split",
                       file ? model->files.items[file].location : model->path);
}

static bool is_same(const psplit_i_data_file *file, int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 && (uint64_t)status.st_dev == file->device &&
         (uint64_t)status.st_ino == file->inode && (uint64_t)status.st_size == file->bytes &&
         modified_ns_of(&status) == file->modified_ns;
}

/* Under the lock. */
static psplit_code reopen(const psplit_model *model, uint32_t file, psplit_diag *diag,
                          int *out_fd) {
  const int fd = open_location(model, model->files.items[file].location);
  if (fd < 0) return cannot_open(model->files.items[file].location, errno, diag);
  if (!is_same(&model->files.items[file], fd)) {
    close(fd);
    return has_changed(model, file, diag);
  }
  (void)keep_open(model->open_files, file, fd, 1); /* else the holder's alone */
  *out_fd = fd;
  return PSPLIT_OK;
}

psplit_code psplit_i_data_file_hold(const psplit_model *model, uint32_t file, psplit_diag *diag,
                                    int *out_fd) {
  psplit_code code = PSPLIT_OK;
  if (file == 0) {
    *out_fd = model->fd;
    return PSPLIT_OK;
  }
  psplit_i_open_files *pool = model->open_files;
  pthread_mutex_lock(&pool->lock);
  open_file *slot = find_open(pool, file);
  if (slot) {
    slot->n_holders++;
    slot->used_at = ++pool->clock;
    *out_fd = slot->fd;
  } else {
    code = reopen(model, file, diag, out_fd);
  }
  pthread_mutex_unlock(&pool->lock);
  return code;
}

void psplit_i_data_file_release(const psplit_model *model, uint32_t file, int fd) {
  if (file == 0) return;
  psplit_i_open_files *pool = model->open_files;
  pthread_mutex_lock(&pool->lock);
  open_file *slot = find_open(pool, file);
  const bool pooled = slot && slot->fd == fd;
  if (pooled) slot->n_holders--;
  pthread_mutex_unlock(&pool->lock);
  if (!pooled) close(fd);
}

/* --- opening --- */

/* The directory that locations are relative to. */
static psplit_code open_directory(psplit_model *model, psplit_diag *diag) {
  if (model->directory_fd >= 0) return PSPLIT_OK;
  const char *data_directory = model->options.data_directory;
  if (!data_directory && !model->has_path)
    return psplit_i_fail_about(diag, PSPLIT_USAGE, PSPLIT_I_HELPS(DATA_DIRECTORY),
                               "the model has external data, and no directory is given for it");
  model->directory_fd = data_directory ? open(data_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                       : open_model_directory(model->path);
  if (model->directory_fd >= 0) return PSPLIT_OK;
  return psplit_i_fail(diag, PSPLIT_IO, "cannot open the model's directory: %s", strerror(errno));
}

/* To open `location` from the working directory; NULL when out of memory. */
static const char *path_of(psplit_model *model, const char *location) {
  const char *data_directory = model->options.data_directory;
  const char *directory = data_directory ? data_directory : model->path;
  const size_t n_directory = data_directory ? strlen(data_directory) : directory_length(directory);
  const size_t n_location = strlen(location);
  char *path = psplit_i_arena_alloc(&model->arena, n_directory + 1 + n_location + 1);
  if (!path) return NULL;
  memcpy(path, directory, n_directory);
  if (data_directory) path[n_directory] = '/';
  memcpy(path + n_directory + (data_directory != NULL), location, n_location + 1);
  return path;
}

const char *psplit_i_model_place(const psplit_model *model, uint32_t file, char *buffer) {
  if (file || model->has_path) return model->files.items[file].path;
  snprintf(buffer, PSPLIT_I_FD_PATH, "/proc/self/fd/%d", model->fd);
  return buffer;
}

char *psplit_i_model_data_directory(const psplit_model *model) {
  const char *path = model->path, *slash = strrchr(path, '/');
  if (model->options.data_directory) return strdup(model->options.data_directory);
  if (!slash || !model->has_path) return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

psplit_code psplit_i_data_file_open(psplit_model *model, const char *location, psplit_diag *diag,
                                    uint32_t *out_file) {
  psplit_code code;
  const uint32_t known = psplit_i_intern_find(&model->locations, location);
  if (known != PSPLIT_NONE) {
    *out_file = known + 1;
    return PSPLIT_OK;
  }
  if (location_escapes(location))
    return psplit_i_fail(diag, PSPLIT_INVALID,
                         "external data location \"%s\" is outside the model's directory",
                         location);
  PSPLIT_TRY(open_directory(model, diag));
  const int fd = open_location(model, location);
  if (fd < 0) return cannot_open(location, errno, diag);
  struct stat status;
  if (fstat(fd, &status) != 0) {
    const int reason = errno;
    close(fd);
    return cannot_open(location, reason, diag);
  }
  const bool regular = S_ISREG(status.st_mode);
  const char *path = regular ? path_of(model, location) : NULL;
  if (!path || !psplit_i_vec_reserve(&model->files, 1) ||
      psplit_i_intern_add(&model->locations, location) == PSPLIT_NONE) {
    close(fd);
    if (regular) return psplit_i_nomem(diag);
    return psplit_i_fail(diag, PSPLIT_INVALID, "external data \"%s\" is not a regular file",
                         location);
  }
  *out_file = (uint32_t)model->files.n;
  model->files.items[model->files.n++] = psplit_i_data_file_of(location, path, &status);
  if (!keep_open(model->open_files, *out_file, fd, 0)) close(fd);
out:
  return code;
}

/* --- reading --- */

psplit_code psplit_i_model_read(const psplit_model *model, uint32_t file, uint64_t offset,
                                void *out, size_t bytes, psplit_diag *diag) {
  psplit_code code;
  uint8_t *next = out;
  int fd = -1;
  PSPLIT_TRY(psplit_i_data_file_hold(model, file, diag, &fd));
  while (bytes && code == PSPLIT_OK) {
    const ssize_t got = pread(fd, next, bytes, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      code = psplit_i_fail(diag, PSPLIT_IO, "%s%s: cannot read %zu bytes at %" PRIu64 ": %s",
                           file ? "external data " : model->path, model->files.items[file].location,
                           bytes, offset, got ? strerror(errno) : "the file was truncated");
      break;
    }
    next += got;
    offset += (uint64_t)got;
    bytes -= (size_t)got;
  }
  psplit_i_data_file_release(model, file, fd);
out:
  return code;
}

psplit_code psplit_i_model_unchanged(const psplit_model *model, psplit_diag *diag) {
  psplit_code code = PSPLIT_OK;
  for (uint32_t i = 0; i < model->files.n; i++) {
    int fd;
    PSPLIT_TRY(psplit_i_data_file_hold(model, i, diag, &fd));
    const bool same = is_same(&model->files.items[i], fd);
    psplit_i_data_file_release(model, i, fd);
    if (!same) return has_changed(model, i, diag);
  }
out:
  return code;
}
