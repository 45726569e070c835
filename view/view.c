#include "view.h"

bool psplit_view_has(psplit_view_format format) { return format <= PSPLIT_VIEW_SVG; }

psplit_code psplit_view(const psplit_snapshot *const *snapshots, size_t n_snapshots,
                        const psplit_view_options *given, psplit_diag *diag, char **out_text,
                        size_t *out_n) {
  psplit_i_text out = {0};
  psplit_view_options taken;
  const psplit_view_options *options = &taken;
  psplit_view_options_init(&taken);
  psplit_code code = PSPLIT_I_TAKE_OPTIONS(psplit_view_options, given, &taken, diag);
  if (code != PSPLIT_OK) return code;
  const bool page = options->format == PSPLIT_VIEW_HTML;
  if (!psplit_view_has(options->format))
    return psplit_i_fail(diag, PSPLIT_UNSUPPORTED, "there is no such format");
  if (n_snapshots == 0 || (n_snapshots > 1 && !page))
    return psplit_i_fail(diag, PSPLIT_USAGE, "only an HTML page shows several plans at once");
  if (!page && options->level == PSPLIT_VIEW_STAGES && !snapshots[0]->plan)
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "there are no stages at this point: the pass partition makes them");
  if (!page && options->level == PSPLIT_VIEW_PATTERNS) {
    if (options->format == PSPLIT_VIEW_DOT || options->format == PSPLIT_VIEW_SVG)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "patterns are shown as text or JSON, not as a graph");
    if (!snapshots[0]->patterns)
      return psplit_i_fail(diag, PSPLIT_USAGE,
                           "patterns have not been matched at this point: the pass fuse does that");
  }
  if (options->format == PSPLIT_VIEW_SVG &&
      (options->level == PSPLIT_VIEW_OPERATORS || !(snapshots[0]->facts & PSPLIT_SNAPSHOT_COSTS)))
    return psplit_i_fail(diag, PSPLIT_USAGE,
                         "an SVG shows how long supernodes take: operators, and models without "
                         "costs yet, are for DOT");
  switch (options->format) {
    case PSPLIT_VIEW_TEXT: psplit_i_view_text(snapshots[0], options, &out); break;
    case PSPLIT_VIEW_JSON: psplit_i_view_json(snapshots[0], options->level, &out); break;
    case PSPLIT_VIEW_DOT: psplit_i_view_dot(snapshots[0], options->level, &out); break;
    case PSPLIT_VIEW_SVG:
      psplit_i_view_svg(snapshots[0], options->title ? options->title : "model", &out);
      break;
    case PSPLIT_VIEW_HTML:
      PSPLIT_TRY(psplit_i_view_page(snapshots, n_snapshots, options, diag, &out));
      break;
  }
  if (out.failed) PSPLIT_FAIL(psplit_i_nomem(diag));
  *out_text = out.bytes;
  if (out_n) *out_n = out.n;
  out.bytes = NULL;
out:
  psplit_i_text_fini(&out);
  return code;
}
