/* Loads of stages as bars, for a terminal. */
#ifndef PSPLIT_TOOLS_STAGE_CHART_H
#define PSPLIT_TOOLS_STAGE_CHART_H

#include <psplit/plan.h>

/* When there are bars and colours: on a terminal, always, or bars on a terminal but no colours. */
typedef enum stage_chart_color {
  STAGE_CHART_AUTO,
  STAGE_CHART_ALWAYS,
  STAGE_CHART_NEVER
} stage_chart_color;

/* A bar for each stage to standard output, in parts for receiving, computing and sending, on one
 * scale, and a mark where the lower bound is. Nothing where standard output is no terminal and
 * `color` is not ALWAYS. Colours: ALWAYS, or AUTO unless NO_COLOR is set or TERM is dumb. Blocks in
 * place of letters where the locale's characters are UTF-8. */
void print_stage_chart(const psplit_plan *plan, stage_chart_color color);

#endif
