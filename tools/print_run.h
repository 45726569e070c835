/* The report of a run in words. */
#ifndef PSPLIT_TOOLS_PRINT_RUN_H
#define PSPLIT_TOOLS_PRINT_RUN_H

#include <psplit/run.h>
#include <stdio.h>

/* A row for each stage, measured beside planned, and how fast all were. */
void print_run_table(const psplit_run_report *report, const psplit_pipeline_info *pipeline,
                     FILE *out);

/* What --on-error skip passed over, on standard error; nothing where nothing was. */
void print_run_failures(const psplit_run_report *report);

#endif
