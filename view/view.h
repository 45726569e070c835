/* view: snapshots to text, JSON, DOT and HTML. Knows plain data only: no model, no pass, no file.
 *
 * One format, one file; escape.c has what names need to be harmless in each. page/ holds the parts
 * of the HTML page, which the build turns into page_assets.c (base/embed.c). */
#ifndef PSPLIT_VIEW_VIEW_INTERNAL_H
#define PSPLIT_VIEW_VIEW_INTERNAL_H

#include <psplit/view.h>

#include "asset.h"
#include "base.h"

/* A name as one word: spaces, commas, quotes, control bytes, and what is not UTF-8, become \xNN; a
 * backslash becomes two. An empty name is "-", and the name "-" is "\x2d". */
void psplit_i_view_word(psplit_i_text *out, const char *name);
/* Text to the end of a line: only control bytes, what is not UTF-8, and backslashes are escaped. */
void psplit_i_view_line(psplit_i_text *out, const char *text);
/* The escapes of a word alone, for `n` bytes of text. */
void psplit_i_view_escaped(psplit_i_text *out, const char *text, size_t n);

/* A name as a quoted DOT string: always valid UTF-8, and no escape that Graphviz would expand. */
void psplit_i_view_dot_string(psplit_i_text *out, const char *name);

/* Text for HTML, in element content and in quoted attributes. */
void psplit_i_view_html(psplit_i_text *out, const char *text);

/* Every value that the node reads, in order: `value` runs over its inputs, then its captures. */
#define PSPLIT_I_EACH_READ(node, value) \
  PSPLIT_EACH_OF_TWO(value, (node)->inputs, (node)->n_inputs, (node)->captures, (node)->n_captures)

/* One snapshot in a format; out->failed tells of missing memory. */
void psplit_i_view_text(const psplit_snapshot *s, const psplit_view_options *options,
                        psplit_i_text *out);
void psplit_i_view_dot(const psplit_snapshot *s, psplit_view_level level, psplit_i_text *out);
void psplit_i_view_json(const psplit_snapshot *s, psplit_view_level level, psplit_i_text *out);
void psplit_i_view_svg(const psplit_snapshot *s, const char *title, psplit_i_text *out);

/* The parts that JSON and HTML share: an array of the level's items. */
void psplit_i_view_json_nodes(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_values(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_groups(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_edges(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_repeats(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_patterns(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_notes(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_stages(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_transfers(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_plan(psplit_i_json *json, const psplit_snapshot *s);
void psplit_i_view_json_counting(psplit_i_json *json, const psplit_snapshot *s);

/* The page of n snapshots, levels or steps of one model, with all scripts in it. Errors:
 * those of reading JSON (options->trace), NOMEM. */
PSPLIT_MUST_USE psplit_code psplit_i_view_page(const psplit_snapshot *const *snapshots, size_t n,
                                               const psplit_view_options *options,
                                               psplit_diag *diag, psplit_i_text *out);

/* Parts of the page, by the names of their files; the scripts follow each other in this order. */
#define PSPLIT_I_PAGE_SCRIPTS(X) \
  X(base_js)                     \
  X(count_js)                    \
  X(ways_js)                     \
  X(names_js)                    \
  X(pipeline_js)                 \
  X(cuts_js) X(schedule_js) X(panel_js) X(tree_js) X(layers_js) X(model_js) X(main_js)
#define PSPLIT_I_DECLARE_ASSET(name) psplit_i_asset_##name,
extern const psplit_i_asset PSPLIT_I_PAGE_SCRIPTS(PSPLIT_I_DECLARE_ASSET) psplit_i_asset_page_html,
  psplit_i_asset_page_css;

#endif
