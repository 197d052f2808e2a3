/* Capability "topolet.codes/1" of a plugin: the codes that it gives the reasons of its answers, for programs. A
 * reason's text may change with each version of a plugin; its code stays. Shown as "ID/CODE", with the plugin's id. */
#ifndef TOPOLET_CODES_H
#define TOPOLET_CODES_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_CODES_ID "topolet.codes/1"

/* How many codes a plugin may have, and how long each and its help may be, in bytes. */
#define TOPOLET_CODES_MAX 64u
#define TOPOLET_CODES_MAX_LENGTH 64u
#define TOPOLET_CODES_MAX_HELP 1024u

typedef struct topolet_codes {
  uint32_t struct_size;
  uint32_t reserved;

  /* {code, help}: each code once, in any order. A code is made of words of a-z and 0-9 with one '-' between two
   * ("no-local-memory"); help says in a sentence what it means. They stay as they are while the instance lives. Read
   * once, after create(). The functions code() of topolet_score_sink and topolet_pick_sink take no others. */
  topolet_kvs codes;
} topolet_codes;

#ifdef __cplusplus
}
#endif

#endif
