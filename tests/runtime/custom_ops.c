/* Custom operators for ONNX Runtime, without its headers: Twice of the domain "test.ops" doubles a
 * tensor of floats. -DOTHER=1: Thrice of "test.other" instead. */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum { CREATE_DOMAIN = 26, ADD_OPERATOR, ADD_DOMAIN, GET_DATA = 51, COUNT = 64, SHAPE_OF = 65 };
enum { GET_DIMENSION_COUNT = 61, GET_DIMENSIONS, INPUT = 90, OUTPUT = 91, RELEASE_SHAPE = 99 };
enum { FLOAT = 1, MOST_RANK = 8, API = 17 };

typedef void entry(void);
typedef struct base {
  const void *(*get_api)(uint32_t);
  const char *(*get_version)(void);
} base;

/* OrtCustomOp of version 8; what later ones have is not called. */
typedef struct operator{
  uint32_t version;
  void *(*create)(const struct operator*, const void *api, const void *info);
  const char *(*name)(const struct operator*);
  const char *(*provider)(const struct operator*);
  int (*input_type)(const struct operator*, size_t);
  size_t (*n_inputs)(const struct operator*);
  int (*output_type)(const struct operator*, size_t);
  size_t (*n_outputs)(const struct operator*);
  void (*compute)(void *kernel, void *context);
  void (*destroy)(void *kernel);
  int (*input_is)(const struct operator*, size_t);
  int (*output_is)(const struct operator*, size_t);
  void *later[24];
}
operator;

static entry *const *api;

#ifdef OTHER
static const char NAME[] = "Thrice", DOMAIN[] = "test.other";
static const float FACTOR = 3;
#else
static const char NAME[] = "Twice", DOMAIN[] = "test.ops";
static const float FACTOR = 2;
#endif

static void *create(const operator* self, const void *table, const void *info) {
  (void)self, (void)table, (void)info;
  return (void *)(uintptr_t)&api;
}
static const char *name(const operator* self) { return (void)self, NAME; }
static const char *provider(const operator* self) { return (void)self, NULL; }
static int type(const operator* self, size_t i) { return (void)self, (void)i, FLOAT; }
static size_t one(const operator* self) { return (void)self, (size_t)1; }
static int required(const operator* self, size_t i) { return (void)self, (void)i, 0; }
static void destroy(void *kernel) { (void)kernel; }

static void compute(void *kernel, void *context) {
  const void *given = NULL;
  void *made = NULL, *shape = NULL;
  float *from = NULL, *to = NULL;
  int64_t dims[MOST_RANK];
  size_t rank = 0, n = 0;
  (void)kernel;
  ((void *(*)(const void *, size_t, const void **))api[INPUT])(context, 0, &given);
  ((void *(*)(const void *, void **))api[SHAPE_OF])(given, &shape);
  ((void *(*)(const void *, size_t *))api[GET_DIMENSION_COUNT])(shape, &rank);
  ((void *(*)(const void *, int64_t *, size_t))api[GET_DIMENSIONS])(shape, dims, rank);
  ((void *(*)(const void *, size_t *))api[COUNT])(shape, &n);
  ((void (*)(void *))api[RELEASE_SHAPE])(shape);
  ((void *(*)(void *, size_t, const int64_t *, size_t, void **))api[OUTPUT])(context, 0, dims, rank,
                                                                             &made);
  ((void *(*)(const void *, float **))api[GET_DATA])(given, &from);
  ((void *(*)(void *, float **))api[GET_DATA])(made, &to);
  for (size_t i = 0; i < n; i++) to[i] = FACTOR * from[i];
}

EXPORT void *RegisterCustomOps(void *options, const base *of);
EXPORT void *RegisterCustomOps(void *options, const base *of) {
  static const operator kOperator = {
    .version = 8,
    .create = create,
    .name = name,
    .provider = provider,
    .input_type = type,
    .n_inputs = one,
    .output_type = type,
    .n_outputs = one,
    .compute = compute,
    .destroy = destroy,
    .input_is = required,
    .output_is = required,
  };
  void *domain = NULL;
  api = (entry *const *)of->get_api(API);
  void *failed = ((void *(*)(const char *, void **))api[CREATE_DOMAIN])(DOMAIN, &domain);
  if (!failed) failed = ((void *(*)(void *, const operator*))api[ADD_OPERATOR])(domain, &kOperator);
  if (!failed) failed = ((void *(*)(void *, void *))api[ADD_DOMAIN])(options, domain);
  return failed;
}
