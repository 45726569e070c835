/* base: utilities for all other folders: arenas, diagnostics, checked sizes, growable arrays,
 * string interning, hashing, number formatting, JSON input and output, input and output files,
 * routes over links. Knows no graphs and no file formats.
 *
 * Conventions: functions that can fail return psplit_code and describe the first failure in a
 * caller-owned psplit_diag. There is no global or static mutable state. */
#ifndef PSPLIT_BASE_BASE_H
#define PSPLIT_BASE_BASE_H

#include "arena.h"
#include "cancel.h"
#include "checked.h"
#include "compat.h"
#include "diag.h"
#include "each.h"
#include "hash.h"
#include "in_file.h"
#include "intern.h"
#include "json.h"
#include "json_read.h"
#include "number.h"
#include "options.h"
#include "out_file.h"
#include "route.h"
#include "text.h"
#include "units.h"
#include "unknown.h"
#include "vec.h"

#endif
