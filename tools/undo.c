#include "undo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

enum { MOST_ATTEMPTS = 100, NAME_PART = 200 };

/* Gives the file its second name, which is taken for a leftover where this process is killed. */
static psplit_code keep(undo_file *file, psplit_diag *diag) {
  const char *slash = strrchr(file->real, '/'), *name = slash ? slash + 1 : file->real;
  const int home = (int)(name - file->real);
  for (unsigned i = 0; i < MOST_ATTEMPTS; i++) {
    char *kept;
    if (asprintf(&kept, "%.*s.%.*s.psplit-%08lx%08x", home, file->real, NAME_PART, name,
                 (unsigned long)getpid() & 0xffffffff, i) < 0)
      return cli_nomem(diag);
    if (link(file->real, kept) == 0) {
      file->kept = kept;
      file->lock = open(kept, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
      if (file->lock >= 0) (void)!flock(file->lock, LOCK_SH | LOCK_NB);
      return PSPLIT_OK;
    }
    free(kept);
    if (errno != EEXIST) return PSPLIT_OK;
  }
  return PSPLIT_OK;
}

psplit_code undo_keep(undo *u, const char *path, psplit_diag *diag) {
  struct stat status;
  undo_file file = {.path = path, .lock = -1};
  psplit_code code = PSPLIT_OK;
  file.was_there = stat(path, &status) == 0;
  if (file.was_there && S_ISREG(status.st_mode)) {
    file.real = realpath(path, NULL);
    code = file.real ? keep(&file, diag) : errno == ENOMEM ? cli_nomem(diag) : PSPLIT_OK;
  }
  if (code == PSPLIT_OK && u->n < UNDO_MOST)
    u->files[u->n++] = file;
  else
    free(file.real);
  return code;
}

void undo_written(undo *u) {
  if (u->n) u->files[u->n - 1].written = true;
}

static void remove_new(const undo_file *file) {
  struct stat status;
  char place[4096];
  if (stat(file->path, &status) != 0 || !S_ISREG(status.st_mode)) return;
  /* A link that led nowhere stays. */
  const ssize_t n = readlink(file->path, place, sizeof place - 1);
  char *real = n < 0 ? NULL : realpath(file->path, NULL);
  unlink(real ? real : file->path);
  free(real);
}

static void fini(undo *u) {
  for (size_t i = 0; i < u->n; i++) {
    undo_file *file = &u->files[i];
    if (file->kept) unlink(file->kept);
    if (file->lock >= 0) close(file->lock);
    free(file->kept);
    free(file->real);
  }
  u->n = 0;
}

void undo_all(undo *u) {
  for (size_t i = u->n; i-- > 0;) {
    undo_file *file = &u->files[i];
    if (file->written && file->kept && rename(file->kept, file->real) == 0) {
      free(file->kept);
      file->kept = NULL;
    } else if (file->written && !file->was_there) {
      remove_new(file);
    }
  }
  fini(u);
}

void undo_forget(undo *u) { fini(u); }
