/* The SVG format: the pipeline as the page draws it, a column for each stage, its supernodes in the
 * plan's order and as high as they take time; what crosses in bands as thick as sending takes; the
 * lower bound. Without a plan all is one column. Coordinates are whole tenths of a pixel, so that
 * the same plan gives the same bytes everywhere. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

enum {
  TOP = 640,
  TALL = 4600,
  WIDE = 1900,
  GAP = 700,
  SIDE = 160,
  FOOT = 260,
  LANE = 100,
  THIN = 25,
  LINE = 130
};

typedef struct canvas {
  const psplit_snapshot *s;
  psplit_i_text *out;
  uint32_t n_columns;
  int64_t most_ns;    /* what TALL stands for; at least 1 */
  int64_t *send_at;   /* [n_columns] where sending begins, ns from the top */
  uint32_t *lane_end; /* [n_transfers] for each lane the stage that its last band goes to */
} canvas;

/* Tenths as "12.5". */
static void put_number(psplit_i_text *out, int64_t tenths) {
  psplit_i_text_addf(out, "%" PRId64 ".%d", tenths / 10, (int)(tenths % 10));
}

static void put_attribute(psplit_i_text *out, const char *name, int64_t tenths) {
  psplit_i_text_addf(out, " %s=\"", name);
  put_number(out, tenths);
  psplit_i_text_puts(out, "\"");
}

static int64_t height_of(const canvas *c, uint32_t column, int64_t ns) {
  if (c->s->plan && column != PSPLIT_NONE) ns /= c->s->plan->stages[column].n_replicas;
  return (int64_t)((double)ns / (double)c->most_ns * TALL);
}

static int64_t left_of(uint32_t column) { return SIDE + (int64_t)column * (WIDE + GAP); }

/* The end of a name, in about `room` characters: it tells more than the start. */
static void put_end(psplit_i_text *out, const char *name, size_t room) {
  size_t n = 0;
  const char *at = name + strlen(name);
  for (; at > name && n < room; n++) do
      at--;
    while (at > name && ((unsigned char)*at & 0xc0) == 0x80);
  if (at > name) psplit_i_text_puts(out, "\xe2\x80\xa6");
  psplit_i_view_html(out, at);
}

/* As much of the start of a name as there is room for. */
static void put_start(psplit_i_text *out, const char *name, size_t room) {
  size_t n = 0;
  const char *at = name;
  char start[256];
  for (; *at && n < room; n++) do
      at++;
    while (((unsigned char)*at & 0xc0) == 0x80);
  const size_t bytes = (size_t)(at - name) < sizeof start ? (size_t)(at - name) : sizeof start - 1;
  memcpy(start, name, bytes);
  start[bytes] = '\0';
  psplit_i_view_html(out, start);
  if (name[bytes]) psplit_i_text_puts(out, "\xe2\x80\xa6");
}

static void open_text(psplit_i_text *out, const char *class_name, int64_t x, int64_t y) {
  psplit_i_text_addf(out, "<text class=\"%s\"", class_name);
  put_attribute(out, "x", x);
  put_attribute(out, "y", y);
  psplit_i_text_puts(out, ">");
}

static void put_text(psplit_i_text *out, const char *class_name, int64_t x, int64_t y,
                     const char *text) {
  open_text(out, class_name, x, y);
  psplit_i_view_html(out, text);
  psplit_i_text_puts(out, "</text>\n");
}

/* A part of a column from `from_ns` on; `end` of its title follows the words. */
static void put_part(const canvas *c, uint32_t column, const char *class_name, int64_t from_ns,
                     int64_t ns, const char *words, const char *name) {
  char time[PSPLIT_I_UNIT_BYTES];
  const int64_t y = TOP + height_of(c, column, from_ns),
                end = TOP + height_of(c, column, from_ns + ns);
  const int64_t h = end - y;
  if (ns <= 0) return;
  psplit_i_text_addf(c->out, "<g><rect class=\"%s\"", class_name);
  put_attribute(c->out, "x", left_of(column));
  put_attribute(c->out, "y", y);
  put_attribute(c->out, "width", WIDE);
  put_attribute(c->out, "height", h > 30 ? h - 8 : h > 1 ? h : 1);
  psplit_i_text_puts(c->out, "/><title>");
  psplit_i_view_html(c->out, words);
  psplit_i_text_puts(c->out, *words && *name ? " " : "");
  psplit_i_view_html(c->out, name);
  psplit_i_text_addf(c->out, ": %s</title>", psplit_i_in_seconds(ns, time));
  if (h >= LINE) {
    open_text(c->out, "on", left_of(column) + 60, y + h / 2 + 40);
    const size_t used = strlen(words), room = 23;
    if (*name) psplit_i_text_puts(c->out, "<tspan class=\"kind\">");
    put_start(c->out, words, used > room + 1 ? room - 1 : used);
    if (*name) psplit_i_text_puts(c->out, "</tspan>");
    if (*name && used + 5 < room) {
      psplit_i_text_puts(c->out, " ");
      put_end(c->out, name, room - used - 2);
    }
    psplit_i_text_puts(c->out, "</text>");
  }
  psplit_i_text_puts(c->out, "</g>\n");
}

/* The class that takes most of a supernode's time; of a normalisation in parts, what they are
 * together. */
static const char *class_of(const psplit_snapshot *s, const psplit_snapshot_group *group) {
  if (strcmp(group->kind, "LayerNorm") == 0 || strcmp(group->kind, "RMSNorm") == 0) return "norm";
  const psplit_snapshot_node *best = NULL;
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const psplit_snapshot_node *node = &s->nodes[group->nodes[i]];
    if (!best || node->cost_ns > best->cost_ns) best = node;
  }
  return best && best->class_name ? best->class_name : "other";
}

/* Supernodes of a stage, or all; those too thin to be seen go together. */
static int64_t put_supernodes(const canvas *c, uint32_t column, int64_t from_ns) {
  const psplit_snapshot *s = c->s;
  int64_t at = from_ns, thin_ns = 0;
  uint32_t n_thin = 0, n_left = 0;
  const char *thin_class = "other";
  char words[40];
  for (uint32_t i = 0; i < s->n_groups; i++)
    n_left += !s->plan || s->groups[s->order[i]].stage == column;
  for (uint32_t i = 0; i < s->n_groups; i++) {
    const psplit_snapshot_group *group = &s->groups[s->order[i]];
    if (s->plan && group->stage != column) continue;
    n_left--;
    const bool thin = height_of(c, column, group->cost_ns) < THIN;
    if (thin) {
      thin_class = n_thin++ ? thin_class : class_of(s, group);
      thin_ns += group->cost_ns;
    }
    if (n_thin && (!thin || !n_left || height_of(c, column, thin_ns) >= 2 * THIN)) {
      snprintf(words, sizeof words, "%" PRIu32 " supernode%s", n_thin, n_thin == 1 ? "" : "s");
      put_part(c, column, thin_class, at, thin_ns, words, "");
      at += thin_ns;
      thin_ns = n_thin = 0;
    }
    if (thin) continue;
    put_part(c, column, class_of(s, group), at, group->cost_ns, group->kind, group->title);
    at += group->cost_ns;
  }
  return at;
}

static void put_track(const canvas *c, uint32_t column) {
  psplit_i_text_puts(c->out, "<rect class=\"track\"");
  put_attribute(c->out, "x", left_of(column));
  put_attribute(c->out, "y", TOP);
  put_attribute(c->out, "width", WIDE);
  put_attribute(c->out, "height", TALL);
  psplit_i_text_puts(c->out, "/>\n");
}

static void put_stage(canvas *c, uint32_t column) {
  const psplit_plan_stage *stage = &c->s->plan->stages[column];
  const uint64_t limit = c->s->memory_limit_bytes[column];
  char a[PSPLIT_I_UNIT_BYTES], b[PSPLIT_I_UNIT_BYTES], line[160];
  const bool slowest = stage->turn_ns >= c->s->plan->bottleneck_ns;
  put_track(c, column);
  open_text(c->out, "stage", left_of(column), 150);
  psplit_i_text_addf(c->out, "%" PRIu32 " \xc2\xb7 ", column);
  put_end(c->out, stage->device, 20);
  if (stage->n_replicas > 1) psplit_i_text_addf(c->out, " x%" PRIu32, stage->n_replicas);
  psplit_i_text_puts(c->out, "</text>\n");
  snprintf(line, sizeof line, "%s%s", psplit_i_in_seconds(stage->turn_ns, a),
           slowest ? ", slowest" : "");
  put_text(c->out, slowest ? "big hot" : "big", left_of(column), 370, line);
  snprintf(line, sizeof line, "%s%s%s", psplit_i_in_bytes(stage->memory_bytes, a),
           limit == UINT64_MAX ? "" : " of ",
           limit == UINT64_MAX ? "" : psplit_i_in_bytes(limit, b));
  put_text(c->out, limit != UINT64_MAX && stage->memory_bytes > limit ? "small hot" : "small",
           left_of(column), 530, line);
  put_part(c, column, "recv", 0, stage->recv_ns, "receive", "");
  int64_t at = put_supernodes(c, column, stage->recv_ns);
  const int64_t computed = stage->recv_ns + stage->compute_ns - stage->layout_ns;
  put_part(c, column, "other", at, computed - at, "computed again here", "");
  at = computed > at ? computed : at;
  put_part(c, column, "layout", at, stage->layout_ns, "layouts", "");
  c->send_at[column] = at + stage->layout_ns;
  put_part(c, column, "send", c->send_at[column], stage->send_ns, "send", "");
}

/* One end of a band: its side of a column, where it begins there and how high. */
typedef struct band_end {
  int64_t x, y, h;
} band_end;

static void put_points(psplit_i_text *out, const char *command, const int64_t *points, int n) {
  psplit_i_text_puts(out, command);
  for (int i = 0; i < n; i++) {
    put_number(out, points[i]);
    psplit_i_text_puts(out, i + 1 == n ? "" : i % 2 ? " " : ",");
  }
}

/* From one height to another, turning `apart` from the middle. */
static void put_bend(psplit_i_text *out, int64_t x1, int64_t y1, int64_t x2, int64_t y2,
                     int64_t apart) {
  const int64_t middle = (x1 + x2) / 2 + apart;
  put_points(out, " C", (const int64_t[]){middle, y1, middle, y2, x2, y2}, 6);
}

/* Where it is steep, too, a band is as wide as it is thick: its sides turn apart. Past stages it
 * goes below them, at `lane`; 0: to the next. */
static void put_band(const canvas *c, band_end a, band_end z, int64_t lane) {
  psplit_i_text *out = c->out;
  const int64_t thick = a.h > z.h ? a.h : z.h;
  const int64_t apart =
    (thick < GAP / 2 ? thick : GAP / 2) * 6 / 10 * (!lane && z.y > a.y ? -1 : 1);
  psplit_i_text_puts(out, "<path class=\"band\" d=\"");
  put_points(out, "M", (const int64_t[]){a.x, a.y}, 2);
  if (!lane) {
    put_bend(out, a.x, a.y, z.x, z.y, -apart);
    put_points(out, " L", (const int64_t[]){z.x, z.y + z.h}, 2);
    put_bend(out, z.x, z.y + z.h, a.x, a.y + a.h, apart);
  } else {
    const int64_t down = a.x + GAP, up = z.x - GAP, h = thick < LANE - 30 ? thick : LANE - 30;
    put_bend(out, a.x, a.y, down, lane, 0);
    put_points(out, " L", (const int64_t[]){up, lane}, 2);
    put_bend(out, up, lane, z.x, z.y, -h * 6 / 10);
    put_points(out, " L", (const int64_t[]){z.x, z.y + z.h}, 2);
    put_bend(out, z.x, z.y + z.h, up, lane + h, h * 6 / 10);
    put_points(out, " L", (const int64_t[]){down, lane + h}, 2);
    put_bend(out, down, lane + h, a.x, a.y + a.h, 0);
  }
  psplit_i_text_puts(out, " Z\"/>");
}

/* All that goes from one stage to another. */
typedef struct bundle {
  uint32_t from, to, n;
  uint64_t bytes;
  bool known;
} bundle;

static bundle bundle_of(const psplit_plan *plan, uint32_t from, uint32_t to) {
  bundle b = {.from = from, .to = to, .known = true};
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    const psplit_plan_transfer *transfer = &plan->transfers[t];
    if (transfer->from != from || transfer->to != to) continue;
    b.bytes = psplit_i_sat_add_u64(b.bytes, transfer->bytes);
    b.known = b.known && transfer->bytes_known;
    b.n++;
  }
  return b;
}

/* Bytes that a stage sends and receives, and how many of them bands have been drawn for. */
typedef struct traffic {
  uint64_t sent, received, given, taken;
} traffic;

/* A part of `whole` that stands for `bytes` of `all`. */
static int64_t share(int64_t whole, uint64_t bytes, uint64_t all) {
  return all ? (int64_t)((double)bytes / (double)all * (double)whole) : 0;
}

/* The first lane below the columns that is free from stage `from` on, from 1; `inout_n` of them are
 * used. */
static uint32_t take_lane(const canvas *c, const bundle *b, uint32_t *inout_n) {
  uint32_t lane = 0;
  if (b->to == b->from + 1) return 0;
  while (lane < *inout_n && c->lane_end[lane] > b->from) lane++;
  if (lane == *inout_n) ++*inout_n;
  c->lane_end[lane] = b->to;
  return lane + 1;
}

static uint32_t count_lanes(const canvas *c) {
  uint32_t n = 0;
  for (uint32_t from = 0; c->s->plan && from < c->n_columns; from++)
    for (uint32_t to = from + 2; to < c->n_columns; to++) {
      const bundle b = bundle_of(c->s->plan, from, to);
      if (b.n) (void)take_lane(c, &b, &n);
    }
  return n;
}

static void put_bundle(const canvas *c, const bundle *b, uint32_t lane, traffic *from,
                       traffic *to) {
  enum { LEAST = 30 };
  const int64_t send = height_of(c, b->from, c->s->plan->stages[b->from].send_ns);
  const int64_t recv = height_of(c, b->to, c->s->plan->stages[b->to].recv_ns);
  const int64_t y1 =
    TOP + height_of(c, b->from, c->send_at[b->from]) + share(send, from->given, from->sent);
  const int64_t y2 = TOP + share(recv, to->taken, to->received);
  const int64_t h1 = share(send, b->bytes, from->sent), h2 = share(recv, b->bytes, to->received);
  char amount[PSPLIT_I_UNIT_BYTES], label[PSPLIT_I_UNIT_BYTES + 1];
  psplit_i_text_puts(c->out, "<g>");
  put_band(c, (band_end){left_of(b->from) + WIDE, y1, h1 > LEAST ? h1 : LEAST},
           (band_end){left_of(b->to), y2, h2 > LEAST ? h2 : LEAST},
           lane ? TOP + TALL + 60 + (int64_t)(lane - 1) * LANE : 0);
  snprintf(label, sizeof label, "%s%s", b->known ? "" : "~", psplit_i_in_bytes(b->bytes, amount));
  psplit_i_text_addf(
    c->out, "<title>stage %" PRIu32 " to %" PRIu32 ": %s, %" PRIu32 " tensor%s</title></g>\n",
    b->from, b->to, label, b->n, b->n == 1 ? "" : "s");
  if (b->to == b->from + 1)
    put_text(c->out, "label", left_of(b->to) - GAP / 2, (y1 + y2) / 2, label);
  from->given += b->bytes;
  to->taken += b->bytes;
}

static void put_bands(const canvas *c) {
  const psplit_plan *plan = c->s->plan;
  traffic *by_stage = calloc((size_t)c->n_columns + 1, sizeof *by_stage);
  if (!by_stage) {
    c->out->failed = true;
    return;
  }
  for (uint32_t t = 0; t < plan->n_transfers; t++) {
    by_stage[plan->transfers[t].from].sent += plan->transfers[t].bytes;
    by_stage[plan->transfers[t].to].received += plan->transfers[t].bytes;
  }
  uint32_t n_lanes = 0;
  for (uint32_t from = 0; from < c->n_columns; from++)
    for (uint32_t to = from + 1; to < c->n_columns; to++) {
      const bundle b = bundle_of(plan, from, to);
      if (!b.n) continue;
      put_bundle(c, &b, take_lane(c, &b, &n_lanes), &by_stage[from], &by_stage[to]);
    }
  free(by_stage);
}

static void put_bound(const canvas *c, int64_t width) {
  const psplit_plan *plan = c->s->plan;
  char time[PSPLIT_I_UNIT_BYTES], line[64];
  const int64_t y = TOP + height_of(c, PSPLIT_NONE, plan->lower_bound_ns);
  if (plan->lower_bound_ns <= 0 || plan->objective[0] != 't') return;
  psplit_i_text_puts(c->out, "<line class=\"bound\"");
  put_attribute(c->out, "x1", 0);
  put_attribute(c->out, "x2", width);
  put_attribute(c->out, "y1", y);
  put_attribute(c->out, "y2", y);
  snprintf(line, sizeof line, "lower bound %s", psplit_i_in_seconds(plan->lower_bound_ns, time));
  psplit_i_text_puts(c->out, "/>\n");
  put_text(c->out, "bound", width - 40, y + 130, line);
}

/* As the page's, for light and for dark. */
static const char STYLE[] =
  "<style>\n"
  "svg { background: #f5f6f8 } text { font: 12px system-ui, sans-serif; fill: #18212c }\n"
  ".on { fill: #16202b } .stage, .kind { font-weight: 600 } .big { font-size: 18px; font-weight: "
  "600 }\n"
  ".small { font-size: 11px; fill: #5d6978 } .hot { fill: #b3261e } .track { fill: #e9edf1 }\n"
  ".label { font-size: 11px; text-anchor: middle } .band { fill: #e08a52; opacity: .5 }\n"
  "line.bound { stroke: #1f7a44; stroke-width: 1.4; stroke-dasharray: 6 4 }\n"
  "text.bound { fill: #1f7a44; font-size: 11px; text-anchor: end }\n"
  ".recv { fill: #e3b04b } .send { fill: #e08a52 } .layout { fill: #b9a3c9 }\n"
  ".conv { fill: #8db7e8 } .depthwise { fill: #b5d3f3 } .matmul { fill: #a9a4ea }\n"
  ".attention { fill: #d39ae0 } .rnn { fill: #e5a3c6 } .norm { fill: #f2cf7f }\n"
  ".pool { fill: #9fd3c4 } .reduce { fill: #bfe0b0 } .elementwise { fill: #cfdba0 }\n"
  ".resize { fill: #dcbf9f } .quant { fill: #f0b0a8 } .search { fill: #e8938a }\n"
  ".control { fill: #d57c74 } .move { fill: #c9d2db }\n"
  ".other, .shape, .view, .constant { fill: #d6dbe1 }\n"
  "@media (prefers-color-scheme: dark) {\n"
  "svg { background: #0e1217 } text { fill: #e6ebf1 } .small { fill: #9eabba } .on { fill: #16202b "
  "}\n"
  ".track { fill: #1d242d } .hot { fill: #ff8f83 } line.bound { stroke: #74d39a } text.bound { "
  "fill: #74d39a }\n"
  "}\n</style>\n";

static void put_all(canvas *c, const char *title) {
  const psplit_snapshot *s = c->s;
  const uint32_t n_lanes = count_lanes(c);
  const int64_t width = left_of(c->n_columns) - GAP + SIDE,
                height = TOP + TALL + FOOT + (int64_t)n_lanes * LANE;
  psplit_i_text_puts(c->out,
                     "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 ");
  put_number(c->out, width);
  psplit_i_text_puts(c->out, " ");
  put_number(c->out, height);
  psplit_i_text_puts(c->out, "\"");
  put_attribute(c->out, "width", width);
  put_attribute(c->out, "height", height);
  psplit_i_text_puts(c->out, ">\n<title>");
  psplit_i_view_html(c->out, title);
  psplit_i_text_addf(c->out, ", %" PRIu32 " stage%s</title>\n%s", c->n_columns,
                     c->n_columns == 1 ? "" : "s", STYLE);
  if (!s->plan) {
    char time[PSPLIT_I_UNIT_BYTES];
    put_track(c, 0);
    put_text(c->out, "stage", left_of(0), 150, "not split");
    put_text(c->out, "big", left_of(0), 370, psplit_i_in_seconds(c->most_ns, time));
    (void)put_supernodes(c, 0, 0);
  }
  for (uint32_t i = 0; s->plan && i < c->n_columns; i++) put_stage(c, i);
  if (s->plan) {
    put_bands(c);
    put_bound(c, width);
  }
  psplit_i_text_puts(c->out, "</svg>\n");
}

/* All that a stage does stands one below the other, also where it is done at once. */
static int64_t drawn_ns(const psplit_plan_stage *stage) {
  const int64_t n = stage->n_replicas;
  const int64_t ns =
    psplit_i_sat_add_i64(stage->compute_ns, psplit_i_sat_add_i64(stage->recv_ns, stage->send_ns));
  return ns / n + (ns % n > 0);
}

void psplit_i_view_svg(const psplit_snapshot *s, const char *title, psplit_i_text *out) {
  canvas c = {.s = s, .out = out, .n_columns = s->plan ? s->n_stages : 1};
  for (uint32_t g = 0; !s->plan && g < s->n_groups; g++)
    c.most_ns = psplit_i_sat_add_i64(c.most_ns, s->groups[g].cost_ns);
  for (uint32_t i = 0; s->plan && i < s->n_stages; i++) {
    const int64_t ns = drawn_ns(&s->plan->stages[i]);
    if (ns > c.most_ns) c.most_ns = ns;
  }
  if (c.most_ns < 1) c.most_ns = 1;
  c.send_at = calloc((size_t)c.n_columns + 1, sizeof *c.send_at);
  c.lane_end = calloc((s->plan ? s->plan->n_transfers : 0) + (size_t)1, sizeof *c.lane_end);
  if (c.send_at && c.lane_end)
    put_all(&c, title);
  else
    out->failed = true;
  free(c.send_at);
  free(c.lane_end);
}
