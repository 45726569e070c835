/* JSON strings (RFC 8259, section 7) with quotes: printable characters (psplit_i_printable_length)
 * are written as they are, others are escaped, and invalid UTF-8 becomes U+FFFD. Used by all JSON
 * and YAML output; the version for streams is psplit_json_print (psplit/base.h). */
#ifndef PSPLIT_BASE_JSON_QUOTE_H
#define PSPLIT_BASE_JSON_QUOTE_H

#include "text.h"

void psplit_i_json_quote(psplit_i_text *out, const char *value);
/* The same without quotes, for n bytes, which may contain NULs. */
void psplit_i_json_escape(psplit_i_text *out, const char *bytes, size_t n);

#endif
