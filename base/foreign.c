#include "foreign.h"

#include <string.h>
#include <strings.h>

#define AS_UTF8 "; save it as UTF-8"

/* What stands at a place. UTF-32 begins as UTF-16 does. */
static const struct {
  uint16_t at, n;
  const char *bytes;
  psplit_i_foreign foreign;
} MARKS[] = {
  {0, 4, "\xff\xfe\0\0", {"UTF-32 text", AS_UTF8}},
  {0, 4, "\0\0\xfe\xff", {"UTF-32 text", AS_UTF8}},
  {0, 2, "\xff\xfe", {"UTF-16 text", AS_UTF8}},
  {0, 2, "\xfe\xff", {"UTF-16 text", AS_UTF8}},
  {0, 3, "\xef\xbb\xbf", {"text behind a byte order mark", "; save it as UTF-8 without one"}},
  {0, 4, "PK\3\4", {"a ZIP archive", "; unpack it first"}},
  {0, 2, "\x1f\x8b", {"compressed by gzip", "; gunzip it first"}},
  {0, 3, "BZh", {"compressed by bzip2", "; bunzip2 it first"}},
  {0, 6, "\xfd\x37zXZ\0", {"compressed by xz", "; unxz it first"}},
  {0, 4, "\x28\xb5\x2f\xfd", {"compressed by zstd", "; unzstd it first"}},
  {257, 5, "ustar", {"a tar archive", "; unpack it first"}},
  {0,
   40,
   "version https://git-lfs.github.com/spec/",
   {"a pointer of Git LFS", "; `git lfs pull` fetches the file itself"}},
};

/* Letters with a NUL before or behind each; more NULs are of something else. */
static bool is_wide(const char *text, size_t n) {
  const size_t nul = n && !text[0] ? 0 : 1,
               looked = n < PSPLIT_I_FOREIGN_BYTES ? n : PSPLIT_I_FOREIGN_BYTES;
  if (n < 2 || n % 2) return false;
  for (size_t i = 0; i < looked; i++)
    if ((i % 2 == nul) != !text[i]) return false;
  return true;
}

static bool is_page(const char *text, size_t n) {
  static const char DOCTYPE[] = "<!doctype html", HTML[] = "<html";
  while (n && memchr(" \t\r\n", *text, 4)) text++, n--;
  return (n >= sizeof DOCTYPE - 1 && strncasecmp(text, DOCTYPE, sizeof DOCTYPE - 1) == 0) ||
         (n >= sizeof HTML - 1 && strncasecmp(text, HTML, sizeof HTML - 1) == 0);
}

/* The fields of a ModelProto that stand first: ir_version, a small number, then one of the
 * others. */
static bool is_model(const char *text, size_t n) {
  return n > 3 && text[0] == 0x08 && text[1] > 0 && text[1] < 0x20 &&
         memchr("\x12\x1a\x22\x2a\x32\x3a\x42", text[2], 7);
}

/* A control character or two are a mistake in a text, with a place of its own. */
static bool is_binary(const char *text, size_t n) {
  size_t n_controls = 0;
  for (size_t i = 0; i < n; i++)
    n_controls += (unsigned char)text[i] < ' ' && !memchr("\t\n\v\f\r\033", text[i], 6);
  return n_controls > 2 && n_controls > n / 32;
}

const psplit_i_foreign *psplit_i_foreign_marked(const char *text, size_t n) {
  static const psplit_i_foreign MODEL = {"an ONNX model", ""};
  const psplit_i_foreign *found = psplit_i_foreign_find(text, n);
  return found || !is_model(text, n < PSPLIT_I_FOREIGN_BYTES ? n : PSPLIT_I_FOREIGN_BYTES) ? found
                                                                                           : &MODEL;
}

const psplit_i_foreign *psplit_i_foreign_to_text(const char *text, size_t n) {
  static const psplit_i_foreign BINARY = {"not a text", ""};
  const psplit_i_foreign *found = psplit_i_foreign_marked(text, n);
  return found || !is_binary(text, n < PSPLIT_I_FOREIGN_BYTES ? n : PSPLIT_I_FOREIGN_BYTES)
           ? found
           : &BINARY;
}

const psplit_i_foreign *psplit_i_foreign_find(const char *text, size_t n) {
  static const psplit_i_foreign WIDE = {"UTF-16 text", AS_UTF8};
  static const psplit_i_foreign PAGE = {"a web page (HTML), as failed downloads leave", ""};
  static const psplit_i_foreign EMPTY = {"empty", ""}, NULS = {"NUL bytes", ""};
  const size_t looked = n < PSPLIT_I_FOREIGN_BYTES ? n : PSPLIT_I_FOREIGN_BYTES;
  size_t nuls = 0;
  if (!n) return &EMPTY;
  for (size_t k = 0; k < sizeof MARKS / sizeof *MARKS; k++)
    if (looked >= (size_t)MARKS[k].at + MARKS[k].n &&
        memcmp(text + MARKS[k].at, MARKS[k].bytes, MARKS[k].n) == 0)
      return &MARKS[k].foreign;
  while (nuls < looked && !text[nuls]) nuls++;
  if (nuls == looked) return &NULS;
  if (is_wide(text, n)) return &WIDE;
  return is_page(text, looked) ? &PAGE : NULL;
}

const char *psplit_foreign_text(const char *bytes, size_t n, const char **out_helps) {
  const psplit_i_foreign *found = psplit_i_foreign_to_text(bytes, n);
  *out_helps = found ? found->helps : "";
  return found ? found->is : NULL;
}
