#include "same_file.h"

bool cli_leads_to(const char *path, const struct stat *of) {
  struct stat found;
  return (S_ISREG(of->st_mode) || S_ISDIR(of->st_mode)) && stat(path, &found) == 0 &&
         found.st_dev == of->st_dev && found.st_ino == of->st_ino;
}

bool cli_same_file(const char *a, const char *b) {
  struct stat of;
  return stat(b, &of) == 0 && cli_leads_to(a, &of);
}
