/* Bench of the partitioner: published problems (from a directory) and generated ones, one line
 * each.
 *
 *   bench_partition [--dir DIR | --kind KIND --nodes N] [--stages K] [--threads T] [--repeat R]
 *
 * KIND: transformer (repeated blocks), layered (random layers). The published problems are not part
 * of the project; docs/partitioning.md says where they come from. */
#include <dirent.h>
#include <psplit/partition.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

typedef struct bench {
  const char *dir, *kind;
  uint32_t nodes, stages, threads, repeat;
  psplit_partition_options options;
} bench;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double peak_mib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss / 1024;
}

static uint64_t draw(uint64_t *state) {
  *state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = *state;
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Growing arrays of a generated problem. */
typedef struct maker {
  uint32_t n, n_nets, n_pins, most;
  int64_t *time, *send;
  uint32_t *producer, *off, *consumer;
  uint64_t state;
} maker;

static void *need(void *memory) {
  if (!memory) {
    fputs("error: out of memory\n", stderr);
    exit(6);
  }
  return memory;
}

static void make_init(maker *m, uint32_t most) {
  *m = (maker){.most = most, .state = 7};
  m->time = need(malloc((size_t)most * sizeof *m->time));
  m->send = need(malloc((size_t)most * sizeof *m->send));
  m->producer = need(malloc((size_t)most * sizeof *m->producer));
  m->off = need(calloc((size_t)most + 1, sizeof *m->off));
  m->consumer = need(malloc((size_t)most * 8 * sizeof *m->consumer));
}

static uint32_t node(maker *m, int64_t ns) {
  m->time[m->n] = ns + (int64_t)(draw(&m->state) % (uint64_t)(ns / 8 + 1));
  return m->n++;
}

static void net(maker *m, uint32_t producer, int64_t ns, const uint32_t *to, uint32_t n) {
  m->producer[m->n_nets] = producer;
  m->send[m->n_nets] = ns;
  memcpy(m->consumer + m->n_pins, to, n * sizeof *to);
  m->n_pins += n;
  m->off[++m->n_nets] = m->n_pins;
}

/* Attention and feed-forward with residuals: 16 nodes a block, times in ns like a small model's. */
static void make_transformer(maker *m, uint32_t n_nodes) {
  uint32_t in = node(m, 10000);
  while (m->n + 16 <= n_nodes) {
    const uint32_t norm = node(m, 8000), q = node(m, 60000), k = node(m, 60000), v = node(m, 60000);
    const uint32_t kt = node(m, 2000), score = node(m, 40000), scale = node(m, 4000);
    const uint32_t soft = node(m, 9000), mix = node(m, 40000), out = node(m, 60000);
    const uint32_t add = node(m, 3000), norm2 = node(m, 8000), up = node(m, 240000);
    const uint32_t gelu = node(m, 12000), down = node(m, 240000), add2 = node(m, 3000);
    net(m, in, 6000, (uint32_t[]){norm, add}, 2);
    net(m, norm, 6000, (uint32_t[]){q, k, v}, 3);
    net(m, q, 6000, &score, 1);
    net(m, k, 6000, &kt, 1);
    net(m, kt, 6000, &score, 1);
    net(m, v, 6000, &mix, 1);
    net(m, score, 24000, &scale, 1);
    net(m, scale, 24000, &soft, 1);
    net(m, soft, 24000, &mix, 1);
    net(m, mix, 6000, &out, 1);
    net(m, out, 6000, &add, 1);
    net(m, add, 6000, (uint32_t[]){norm2, add2}, 2);
    net(m, norm2, 6000, &up, 1);
    net(m, up, 24000, &gelu, 1);
    net(m, gelu, 24000, &down, 1);
    net(m, down, 6000, &add2, 1);
    in = add2;
  }
}

/* Layers of 100 nodes; each node feeds 1 to 3 of the next layer. */
static void make_layered(maker *m, uint32_t n_nodes) {
  const uint32_t width = n_nodes < 1000 ? 10 : 100;
  while (m->n < n_nodes) node(m, 1000 + (int64_t)(draw(&m->state) % 20000));
  for (uint32_t v = 0; v + 2 * width <= n_nodes; v++) {
    uint32_t to[3], n = 1 + (uint32_t)(draw(&m->state) % 3);
    const uint32_t first = (v / width + 1) * width;
    for (uint32_t i = 0; i < n; i++) to[i] = first + (uint32_t)(draw(&m->state) % width);
    net(m, v, 500 + (int64_t)(draw(&m->state) % 1000), to, n);
  }
}

static void report(const char *name, const psplit_problem *p, const bench *b, double read_seconds) {
  for (uint32_t r = 0; r < b->repeat; r++) {
    psplit_diag diag = {0};
    psplit_solution *s;
    const double start = now();
    const psplit_code code = psplit_partition_solve(p, &b->options, &diag, &s);
    if (code != PSPLIT_OK) {
      printf("%-34s %8u %5u %s: %s\n", name, p->n_nodes, psplit_problem_n_stages(p),
             psplit_code_name(code), diag.message);
      return;
    }
    printf("%-34s %8u %5u %16.6f %16.6f %8.4f %8.3f %8.3f %8.0f %3u %s\n", name, p->n_nodes,
           psplit_problem_n_stages(p), (double)s->objective_ns / p->ticks_per_unit,
           (double)s->lower_bound_ns / p->ticks_per_unit, s->gap_frac * 100, read_seconds,
           now() - start, peak_mib(), b->options.n_threads, s->solver);
    fflush(stdout);
    psplit_solution_destroy(s);
  }
}

static void bench_generated(const bench *b) {
  maker m;
  make_init(&m, b->nodes + 32);
  if (strcmp(b->kind, "layered") == 0)
    make_layered(&m, b->nodes);
  else
    make_transformer(&m, b->nodes);
  const psplit_device device = {.count = b->stages ? b->stages : 16};
  const psplit_problem p = {.n_nodes = m.n,
                            .n_classes = 1,
                            .time_ns = m.time,
                            .n_nets = m.n_nets,
                            .net_producer = m.producer,
                            .net_off = m.off,
                            .net_consumer = m.consumer,
                            .net_send_ns = m.send,
                            .net_recv_ns = m.send,
                            .n_devices = 1,
                            .devices = &device,
                            .comm = PSPLIT_COMM_P2P,
                            .ticks_per_unit = 1};
  report(b->kind, &p, b, 0);
  free(m.time);
  free(m.send);
  free(m.producer);
  free(m.off);
  free(m.consumer);
}

static int is_json(const struct dirent *entry) {
  const size_t n = strlen(entry->d_name);
  return n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static int bench_directory(const bench *b) {
  struct dirent **entries;
  const int n = scandir(b->dir, &entries, is_json, alphasort);
  if (n < 0) {
    fprintf(stderr, "error: %s: cannot read the directory\n", b->dir);
    return 3;
  }
  const double start = now();
  for (int i = 0; i < n; i++) {
    char path[4096];
    psplit_diag diag = {0};
    psplit_problem *p;
    snprintf(path, sizeof path, "%s/%s", b->dir, entries[i]->d_name);
    const double before = now();
    if (psplit_problem_read_json(path, &diag, &p) != PSPLIT_OK) {
      fprintf(stderr, "error: %s\n", diag.message);
      return 4;
    }
    psplit_device devices[8];
    psplit_problem q = *p;
    memcpy(devices, p->devices, (p->n_devices < 8 ? p->n_devices : 8) * sizeof *devices);
    q.devices = devices;
    if (b->stages) devices[0].count = b->stages;
    report(entries[i]->d_name, &q, b, now() - before);
    psplit_problem_destroy(p);
    free(entries[i]);
  }
  free(entries);
  printf("total %.3f s\n", now() - start);
  return 0;
}

int main(int argc, char **argv) {
  bench b = {.kind = "transformer", .nodes = 10000, .repeat = 1};
  psplit_partition_options_init(&b.options);
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *value = argv[i + 1];
    if (strcmp(argv[i], "--dir") == 0) b.dir = value;
    if (strcmp(argv[i], "--kind") == 0) b.kind = value;
    if (strcmp(argv[i], "--nodes") == 0) b.nodes = (uint32_t)strtoul(value, NULL, 10);
    if (strcmp(argv[i], "--stages") == 0) b.stages = (uint32_t)strtoul(value, NULL, 10);
    if (strcmp(argv[i], "--threads") == 0) b.options.n_threads = (uint32_t)strtoul(value, NULL, 10);
    if (strcmp(argv[i], "--repeat") == 0) b.repeat = (uint32_t)strtoul(value, NULL, 10);
    if (strcmp(argv[i], "--time-limit") == 0) {
      b.options.time_limit_s = strtod(value, NULL);
      b.options.limit_by_work = false;
    }
    if (strcmp(argv[i], "--solver") == 0) b.options.solver = value;
  }
  printf("%-34s %8s %5s %16s %16s %8s %8s %8s %8s %3s %s\n", "problem", "nodes", "K", "value",
         "bound", "gap %", "read s", "solve s", "MiB", "thr", "solver");
  if (b.dir) return bench_directory(&b);
  bench_generated(&b);
  return 0;
}
