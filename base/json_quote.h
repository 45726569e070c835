/* Strings as JSON has them (RFC 8259, section 7), their quotes included: characters that may be
 * shown as they are (psplit_i_printable_length) stand for themselves, others are escaped, and what
 * is not valid UTF-8 is U+FFFD. All that writes JSON, or YAML, does it here; into a stream
 * psplit_json_print does (psplit/base.h). */
#ifndef PSPLIT_BASE_JSON_QUOTE_H
#define PSPLIT_BASE_JSON_QUOTE_H

#include "text.h"

void psplit_i_json_quote(psplit_i_text *out, const char *value);
/* What stands between the quotes, of n bytes, which may hold NULs. */
void psplit_i_json_escape(psplit_i_text *out, const char *bytes, size_t n);

#endif
