/* Building protobuf-c messages in the parser's arena. */
#include <string.h>

#include "parse.h"

void *psplit_i_new_message(psplit_i_parser *parser, const ProtobufCMessageDescriptor *descriptor) {
  ProtobufCMessage *message = psplit_i_arena_alloc(parser->arena, descriptor->sizeof_message);
  if (!message) {
    psplit_i_lexer_fail(&parser->lexer, psplit_i_nomem(parser->lexer.diag));
    message = (ProtobufCMessage *)(void *)parser->spill;
  }
  descriptor->message_init(message);
  return message;
}

/* The arrays have room for a power of two. */
void psplit_i_push(psplit_i_parser *parser, size_t *n, void **items, const void *item,
                   size_t size) {
  if (parser->lexer.code != PSPLIT_OK) return;
  if ((*n & (*n - 1)) == 0) {
    void *more = psplit_i_arena_array(parser->arena, *n ? 2 * *n : 1, size);
    if (!more) {
      psplit_i_lexer_fail(&parser->lexer, psplit_i_nomem(parser->lexer.diag));
      return;
    }
    if (*n) memcpy(more, *items, *n * size);
    *items = more;
  }
  memcpy((char *)*items + *n * size, item, size);
  ++*n;
}
