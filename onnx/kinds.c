#include "kinds.h"

#include <string.h>
#include <strings.h>
#include <sys/types.h>
#include <unistd.h>

#include "diag.h"
#include "foreign.h"
#include "text.h"

enum { HEAD_BYTES = 512 };

static const char EXPORT[] = "; torch.onnx.export makes a model of the module that it is for";

/* What stands at a place of such a file. Rows of the same bytes: the first whose `holds` stands
 * within the head counts. */
typedef struct kind {
  uint16_t at, n;
  const char *bytes;
  const char *holds; /* or NULL */
  const char *is, *helps;
} kind;

static const kind KINDS[] = {
  {0, 4, "PK\3\4", "data.pkl", "a PyTorch checkpoint (ZIP)", EXPORT},
  {0, 4, "PK\3\4", ".npy", "an .npz archive of arrays", ""},
  {0, 2, "\x80\2", NULL, "a Python pickle, as PyTorch's old checkpoints are", EXPORT},
  {0, 2, "\x80\3", NULL, "a Python pickle", EXPORT},
  {0, 2, "\x80\4", NULL, "a Python pickle", EXPORT},
  {0, 2, "\x80\5", NULL, "a Python pickle", EXPORT},
  {0, 4, "\x89HDF", NULL, "an HDF5 file, such as Keras writes", "; tf2onnx makes a model of one"},
  {4, 4, "TFL3", NULL, "a TensorFlow Lite model", "; tf2onnx makes a model of one"},
  {4, 4, "ORTM", NULL, "in ONNX Runtime's own format (.ort)", "; give the .onnx it was made from"},
  {0, 4, "GGUF", NULL, "a GGUF file of llama.cpp", ""},
  {8, 1, "{", "\"dtype\"", "a safetensors file, which holds weights alone", EXPORT},
  {8, 1, "{", "__metadata__", "a safetensors file, which holds weights alone", EXPORT},
  {0, 6, "\x93NUMPY", NULL, "a NumPy array (.npy)", ""},
  {0, 4, "\x89PNG", NULL, "a picture (PNG)", ""},
  {0, 3, "\xff\xd8\xff", NULL, "a picture (JPEG)", ""},
  {0, 4,
   "\x7f"
   "ELF",
   NULL, "a program or library (ELF)", ""},
  {0, 4, "%PDF", NULL, "a PDF document", ""},
};

/* Whether `head` is text, wholly or in its beginning, which ends with a NUL then. */
static bool is_text(char *head, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const bool blank = head[i] == '\n' || head[i] == '\r' || head[i] == '\t';
    if (((unsigned char)head[i] < ' ' && !blank) || head[i] == 0x7f) return false;
  }
  /* A letter of several bytes may be cut by the end of the head. */
  for (size_t cut = 0; cut < 4 && cut < n; cut++) {
    head[n - cut] = '\0';
    if (psplit_i_is_utf8(head)) return true;
  }
  return false;
}

static bool begins(const char *text, const char *word) {
  return strncasecmp(text, word, strlen(word)) == 0;
}

static void kind_of_text(const char *text, const char **out_is, const char **out_helps) {
  text += strspn(text, " \t\r\n");
  *out_helps = "";
  if (begins(text, "<?xml"))
    *out_is = "XML, such as OpenVINO writes";
  else if (*text == '{' || *text == '[')
    *out_is = "JSON";
  else if (strstr(text, "ir_version") || strstr(text, "opset_import") || strstr(text, "=>"))
    *out_is = "the text of a model", *out_helps = "; docs/text-form.md shows how to convert it";
  else
    *out_is = "text";
}

static const kind *find_kind(const char *head, size_t n) {
  for (size_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++) {
    const kind *row = &KINDS[k];
    if (n < (size_t)row->at + row->n || memcmp(head + row->at, row->bytes, row->n) != 0) continue;
    if (!row->holds || memmem(head, n, row->holds, strlen(row->holds))) return row;
  }
  return NULL;
}

/* What the n bytes of `head` are, *out_is; left alone where they do not say. */
static void tell(char *head, size_t n, const char **out_is, const char **out_helps) {
  const size_t mark = strncmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  const kind *found = find_kind(head, n);
  const psplit_i_foreign *foreign = found ? NULL : psplit_i_foreign_find(head + mark, n - mark);
  if (found) {
    *out_is = found->is;
    *out_helps = found->helps;
  } else if (foreign) {
    *out_is = foreign->is;
    *out_helps = foreign->helps;
  } else if (is_text(head, n)) {
    kind_of_text(head + mark, out_is, out_helps);
  }
}

psplit_code psplit_i_tell_kind(int fd, psplit_code code, psplit_diag *diag) {
  char head[HEAD_BYTES + 1] = {0};
  const ssize_t got = pread(fd, head, HEAD_BYTES, 0);
  if (code != PSPLIT_MALFORMED || got <= 0 || !diag) return code;
  const char *is = NULL, *helps = "";
  tell(head, (size_t)got, &is, &helps);
  if (!is) return code;
  *diag = (psplit_diag){0};
  return psplit_i_fail(diag, code, "not an ONNX model: the file is %s%s", is, helps);
}
