/* A library for LD_PRELOAD under which one allocation of this project's own code fails, in one
 * process of several: those that ONNX Runtime and MPI make are left alone. Places that allocate are
 * counted as they are first reached, so that one that a loop calls is one.
 *
 *   PSPLIT_FAIL_RANK=R     the process that MPI numbers so; without it, any
 *   PSPLIT_FAIL_PLACE=N    the N-th place fails the first time, from 1; 0: none
 *   PSPLIT_FAIL_COUNT=FILE where the number of places that were reached is written in the end */
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

enum { MOST_RANGES = 16, MOST_PLACES = 4096 };

static struct { uintptr_t begin, end; } ranges[MOST_RANGES]; /* of code that is ours */
static uintptr_t places[MOST_PLACES];
static int n_ranges, n_places, failing;
static bool counting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int add_ranges(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size, (void)user;
  if (*info->dlpi_name && !strstr(info->dlpi_name, "/libpsplit")) return 0;
  for (int i = 0; i < info->dlpi_phnum && n_ranges < MOST_RANGES; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
    ranges[n_ranges].begin = begin;
    ranges[n_ranges++].end = begin + part->p_memsz;
  }
  return 0;
}

__attribute__((constructor)) static void begin(void) {
  const char *rank = getenv("PSPLIT_FAIL_RANK"), *place = getenv("PSPLIT_FAIL_PLACE");
  const char *own = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  if (!place || (rank && (!own || strcmp(own, rank) != 0))) return;
  failing = atoi(place);
  dl_iterate_phdr(add_ranges, NULL);
  counting = true;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("PSPLIT_FAIL_COUNT");
  FILE *file = counting && path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "%d\n", n_places);
  fclose(file);
}

static bool is_ours(uintptr_t caller) {
  for (int i = 0; i < n_ranges; i++)
    if (caller >= ranges[i].begin && caller < ranges[i].end) return true;
  return false;
}

static bool fails(const void *from) {
  const uintptr_t caller = (uintptr_t)from;
  if (!counting || !is_ours(caller)) return false;
  pthread_mutex_lock(&lock);
  int i = 0;
  while (i < n_places && places[i] != caller) i++;
  const bool is_new = i == n_places && n_places < MOST_PLACES;
  if (is_new) places[n_places++] = caller;
  const bool now = is_new && n_places == failing;
  pthread_mutex_unlock(&lock);
  return now;
}

#define FROM __builtin_return_address(0)

void *malloc(size_t bytes) { return fails(FROM) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return fails(FROM) ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *memory, size_t bytes) {
  return fails(FROM) ? NULL : __libc_realloc(memory, bytes);
}

char *strdup(const char *text) {
  const size_t n = strlen(text) + 1;
  char *copy = fails(FROM) ? NULL : __libc_malloc(n);
  return copy ? memcpy(copy, text, n) : NULL;
}
