/* ONNX Runtime that behaves as providers and models do on other machines: opens the library that
 * ODD_LIBRARY names and hands it on, but for what ODD says, "WHAT [FILE [N]]":
 *
 *   hang-open, hang-run, hang-close   of sessions whose file's name has FILE in it: never returns
 *   slow-run     runs take N ms longer
 *   fail-run     run N, from 0, fails
 *   slow-once    run N, from 0, takes a second longer
 *   die-of       a process that is given a first number of 1e30 or more is killed
 *   die-open     a process is killed that opens a session
 *   alone        has WebGPU, and dies where two sessions are at work at once
 *   copies       FILE is a provider, cpu or cuda, where cuda is the CPU with memory of its own;
 *                says at the end how many bytes of inputs past... and outputs present... were
 *                copied between runs, how many were given as they had come, and which devices,
 *                of the first 32, outputs stayed on */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
  CREATE_STATUS = 0,
  CREATE_SESSION = 7,
  RUN = 9,
  GET_DATA = 51,
  RELEASE_SESSION = 95,
  N_ENTRIES = 413
};
enum { GET_PROVIDERS = 125, RELEASE_PROVIDERS = 126, APPEND_PROVIDER = 216, MOST_SESSIONS = 64 };
typedef void entry(void);
typedef struct base {
  const void *(*get_api)(uint32_t);
  const char *(*get_version)(void);
} base;

static const base *real;
static entry *table[N_ENTRIES], *of[N_ENTRIES];
static char what[32], file[64];
static int number;
static _Atomic(void *) chosen[MOST_SESSIONS];
static atomic_int n_chosen, n_runs, n_at_work;

static int is(const char *name) { return strcmp(what, name) == 0; }
static int is_chosen(const void *session) {
  for (int i = 0; i < n_chosen; i++)
    if (chosen[i] == session) return 1;
  return 0;
}
static void hang(void) {
  for (;;) pause();
}
static void nap(int ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL); }
static void enter(void) {
  if (!is("alone")) return;
  if (atomic_fetch_add(&n_at_work, 1)) {
    static const char LINE[] = "two sessions at once\n";
    if (write(STDERR_FILENO, LINE, sizeof LINE - 1) < 0) abort();
    abort();
  }
  nap(2);
}
static void leave(void) {
  if (is("alone")) atomic_fetch_sub(&n_at_work, 1);
}

static void *create_session(const void *env, const char *path, const void *options, void **out) {
  const int here = *file && strstr(path, file);
  if (here && is("hang-open")) hang();
  if (here && is("die-open")) raise(SIGKILL);
  enter();
  void *status = ((void *(*)(const void *, const char *, const void *, void **))of[CREATE_SESSION])(
    env, path, options, out);
  leave();
  if (here && !status && n_chosen < MOST_SESSIONS) chosen[n_chosen++] = *out;
  return status;
}

static int is_deadly(const void *value) {
  float *data = NULL;
  ((void *(*)(const void *, float **))of[GET_DATA])(value, &data);
  return data && (*data >= 1e30F || *data <= -1e30F);
}

static void *run(void *session, const void *options, const char *const *input_names,
                 const void *const *inputs, size_t n_inputs, const char *const *output_names,
                 size_t n_outputs, void **outputs) {
  const int here = is_chosen(session);
  if (here && is("hang-run")) hang();
  if (here && is("die-of") && is_deadly(inputs[0])) raise(SIGKILL);
  if (here && is("slow-run")) nap(number);
  if (here && is("slow-once") && atomic_fetch_add(&n_runs, 1) == number) nap(1000);
  if (here && is("fail-run") && atomic_fetch_add(&n_runs, 1) == number)
    return ((void *(*)(int, const char *))of[CREATE_STATUS])(1, "it fails, as it was told");
  enter();
  void *status = ((void *(*)(void *, const void *, const char *const *, const void *const *, size_t,
                             const char *const *, size_t, void **))of[RUN])(
    session, options, input_names, inputs, n_inputs, output_names, n_outputs, outputs);
  leave();
  return status;
}

static void release_session(void *session) {
  if (is_chosen(session) && is("hang-close")) hang();
  enter();
  ((void (*)(void *))of[RELEASE_SESSION])(session);
  leave();
}

static void *get_providers(char ***out, int *n) {
  static char web[] = "WebGpuExecutionProvider", cpu[] = "CPUExecutionProvider";
  static char *names[] = {web, cpu};
  *out = names;
  *n = 2;
  return NULL;
}
static void *release_providers(char **names, int n) {
  (void)names;
  (void)n;
  return NULL;
}
static void *append_provider(void *options, const char *name, const char *const *keys,
                             const char *const *values, size_t n) {
  (void)options;
  (void)name;
  (void)keys;
  (void)values;
  (void)n;
  return NULL;
}

/* --- copies --- */

enum {
  SHAPE_COUNT = 64,
  GET_SHAPE = 65,
  CPU_MEMORY = 69,
  MEMORY_NAME = 71,
  MEMORY_ID = 72,
  RELEASE_VALUE = 96,
  RELEASE_SHAPE = 99,
  BIND_INPUT = 136,
  BIND_OUTPUT = 138,
  BOUND_OUTPUTS = 140,
  CLEAR_OUTPUTS = 142,
  APPEND_CUDA = 204,
  CREATE_CUDA = 205,
  UPDATE_CUDA = 206,
  RELEASE_CUDA = 208,
  MOST_STATES = 4096,
  MOST_OUTPUTS = 256
};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const void *states[MOST_STATES]; /* outputs present... that are not released yet */
static int on_device[MOST_STATES];
static long long to_host, to_device, as_it_came;
static unsigned devices_used; /* bit N: device N */
/* What a thread has bound for its next run. */
static _Thread_local int bound[MOST_OUTPUTS]; /* 1: a state, 2: on the device */
static _Thread_local size_t n_bound;

static long long bytes_of(const void *value) {
  void *shape = NULL;
  size_t n = 0;
  ((void *(*)(const void *, void **))of[GET_SHAPE])(value, &shape);
  ((void *(*)(const void *, size_t *))of[SHAPE_COUNT])(shape, &n);
  ((void (*)(void *))of[RELEASE_SHAPE])(shape);
  return (long long)n * 4;
}
static int find_state(const void *value) {
  for (int i = 0; i < MOST_STATES; i++)
    if (states[i] == value) return i;
  return -1;
}
static void look_at_input(const char *name, const void *value, int device) {
  if (strncmp(name, "past", 4) != 0) return;
  const long long n = bytes_of(value);
  pthread_mutex_lock(&mutex);
  const int at = find_state(value);
  if (at >= 0 && on_device[at] == device)
    as_it_came += n;
  else
    to_device += n;
  pthread_mutex_unlock(&mutex);
}
static void look_at_state(const void *value, int device) {
  const long long n = bytes_of(value);
  pthread_mutex_lock(&mutex);
  const int at = find_state(NULL);
  if (at >= 0) {
    states[at] = value;
    on_device[at] = device;
  }
  if (!device && strcmp(file, "cuda") == 0) to_host += n;
  pthread_mutex_unlock(&mutex);
}
static void release_value(void *value) {
  pthread_mutex_lock(&mutex);
  const int at = value ? find_state(value) : -1;
  if (at >= 0) states[at] = NULL;
  pthread_mutex_unlock(&mutex);
  ((void (*)(void *))of[RELEASE_VALUE])(value);
}
static void *run_counted(void *session, const void *options, const char *const *input_names,
                         const void *const *inputs, size_t n_inputs,
                         const char *const *output_names, size_t n_outputs, void **outputs) {
  for (size_t i = 0; i < n_inputs; i++) look_at_input(input_names[i], inputs[i], 0);
  void *status =
    run(session, options, input_names, inputs, n_inputs, output_names, n_outputs, outputs);
  for (size_t o = 0; o < n_outputs && !status; o++)
    if (strncmp(output_names[o], "present", 7) == 0) look_at_state(outputs[o], 0);
  return status;
}
static void *bind_input(void *binding, const char *name, const void *value) {
  look_at_input(name, value, 1);
  return ((void *(*)(void *, const char *, const void *))of[BIND_INPUT])(binding, name, value);
}
static void *bind_output(void *binding, const char *name, const void *memory) {
  static void *cpu;
  const char *where = "";
  int device = 0;
  ((void *(*)(const void *, const char **))of[MEMORY_NAME])(memory, &where);
  ((void *(*)(const void *, int *))of[MEMORY_ID])(memory, &device);
  pthread_mutex_lock(&mutex);
  if (strcmp(where, "Cuda") == 0) devices_used |= 1U << (device & 31);
  if (!cpu) ((void *(*)(int, int, void **))of[CPU_MEMORY])(0, 0, &cpu);
  pthread_mutex_unlock(&mutex);
  if (n_bound == MOST_OUTPUTS) abort();
  bound[n_bound++] = (strncmp(name, "present", 7) == 0) | (strcmp(where, "Cuda") == 0 ? 2 : 0);
  return ((void *(*)(void *, const char *, const void *))of[BIND_OUTPUT])(binding, name, cpu);
}
static void *bound_outputs(const void *binding, void *allocator, void ***values, size_t *n) {
  void *status = ((void *(*)(const void *, void *, void ***, size_t *))of[BOUND_OUTPUTS])(
    binding, allocator, values, n);
  for (size_t i = 0; i < *n && !status; i++)
    if (bound[i] & 1) look_at_state((*values)[i], bound[i] >> 1);
  return status;
}
static void clear_outputs(void *binding) {
  n_bound = 0;
  ((void (*)(void *))of[CLEAR_OUTPUTS])(binding);
}
static void *get_cuda(char ***out, int *n) {
  static char cuda[] = "CUDAExecutionProvider", cpu[] = "CPUExecutionProvider";
  static char *names[] = {cuda, cpu};
  *out = names;
  *n = 2;
  return NULL;
}
static void *create_cuda(void **out) {
  *out = &states;
  return NULL;
}
static void *do_nothing(void) { return NULL; }
static void count_copies(void) {
  table[RUN] = (entry *)run_counted;
  table[RELEASE_VALUE] = (entry *)release_value;
  if (strcmp(file, "cuda") != 0) return;
  table[BIND_INPUT] = (entry *)bind_input;
  table[BIND_OUTPUT] = (entry *)bind_output;
  table[BOUND_OUTPUTS] = (entry *)bound_outputs;
  table[CLEAR_OUTPUTS] = (entry *)clear_outputs;
  table[GET_PROVIDERS] = (entry *)get_cuda;
  table[RELEASE_PROVIDERS] = (entry *)release_providers;
  table[CREATE_CUDA] = (entry *)create_cuda;
  table[UPDATE_CUDA] = table[APPEND_CUDA] = table[RELEASE_CUDA] = (entry *)do_nothing;
}
__attribute__((destructor)) static void tell_copies(void) {
  if (!is("copies")) return;
  fprintf(stderr, "state: %lld bytes to the host, %lld to the device, %lld as it came\n", to_host,
          to_device, as_it_came);
  fprintf(stderr, "devices:");
  for (int i = 0; i < 32; i++)
    if (devices_used >> i & 1U) fprintf(stderr, " %d", i);
  fprintf(stderr, "\n");
}

static const void *get_api(uint32_t version) {
  const void *found = real->get_api(version);
  if (!found) return NULL;
  memcpy(of, found, sizeof of);
  memcpy(table, of, sizeof table);
  table[CREATE_SESSION] = (entry *)create_session;
  table[RUN] = (entry *)run;
  table[RELEASE_SESSION] = (entry *)release_session;
  if (is("alone")) {
    table[GET_PROVIDERS] = (entry *)get_providers;
    table[RELEASE_PROVIDERS] = (entry *)release_providers;
    table[APPEND_PROVIDER] = (entry *)append_provider;
  }
  if (is("copies")) count_copies();
  return table;
}

EXPORT const base *OrtGetApiBase(void);
const base *OrtGetApiBase(void) {
  static base mine;
  const char *told = getenv("ODD"), *path = getenv("ODD_LIBRARY");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  union {
    void *object;
    const base *(*function)(void);
  } get = {library ? dlsym(library, "OrtGetApiBase") : NULL};
  if (!get.function) return NULL;
  if (told) sscanf(told, "%31s %63s %d", what, file, &number);
  real = get.function();
  mine = (base){get_api, real->get_version};
  return &mine;
}
