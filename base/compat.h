/* System calls beyond C11 and POSIX, with portable fallbacks. */
#ifndef PSPLIT_BASE_COMPAT_H
#define PSPLIT_BASE_COMPAT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Opens `path` for reading, relative to the directory `dir_fd`, which it must not leave: no
 * absolute path, no "..", and no symbolic link unless `follow_symlinks`. Never blocks on a FIFO or
 * device. Returns a descriptor, or -1 with errno (ELOOP, EXDEV: it would leave). */
int psplit_i_open_beneath(int dir_fd, const char *path, bool follow_symlinks);

/* A descriptor of an unnamed, immutable file with a copy of bytes[n]; -1 with errno. In memory if
 * the system supports it, else in psplit_i_scratch_place(). */
int psplit_i_memory_file(const void *bytes, size_t n);

/* Fills `out` with numbers that the author of a file cannot predict. Not for cryptography. */
void psplit_i_random(void *out, size_t bytes);

/* Exchanges two directory entries atomically; false if unsupported. */
bool psplit_i_exchange(const char *a, const char *b);
bool psplit_i_exchange_at(int dir_fd, const char *a, const char *b); /* in the directory dir_fd */

/* Renames within the directory `dir_fd` (or AT_FDCWD) unless `to` exists: false, errno EEXIST. */
bool psplit_i_rename_new(int dir_fd, const char *from, const char *to);

/* Syncs the file system of `fd` to disk; false with errno. */
bool psplit_i_sync_all(int fd);

/* A caller's flag, a plain int set by any thread or signal handler, as an atomic: gcc and clang use
 * the same representation. NULL stays NULL. */
static inline const atomic_int *psplit_i_flag(const volatile int *flag) {
  _Static_assert(sizeof(atomic_int) == sizeof(int), "an atomic int is an int");
  return (const atomic_int *)(uintptr_t)flag;
}

/* Memory that must not be touched, told to AddressSanitizer; nothing in other builds. */
#if defined(__SANITIZE_ADDRESS__)
#define PSPLIT_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define PSPLIT_HAS_ASAN 1
#endif
#endif
#ifdef PSPLIT_HAS_ASAN
#include <sanitizer/asan_interface.h>
#define PSPLIT_POISON(memory, bytes) __asan_poison_memory_region((memory), (bytes))
#define PSPLIT_UNPOISON(memory, bytes) __asan_unpoison_memory_region((memory), (bytes))
#else
#define PSPLIT_POISON(memory, bytes) ((void)0)
#define PSPLIT_UNPOISON(memory, bytes) ((void)0)
#endif

/* Has memory fetched that is read soon; a hint. */
#if defined(__GNUC__)
#define PSPLIT_PREFETCH(address) __builtin_prefetch(address)
#else
#define PSPLIT_PREFETCH(address) ((void)(address))
#endif

#endif
