/* Capability "topolet.reads/1" of a plugin: it names the environment variables and foreign annotations of containers
 * that its answers depend on, and says whether they depend on measured load. The values of variables and annotations
 * may be secrets: a host that records decisions (daemon.record) leaves out all that no enabled plugin names. It shows a
 * plugin all of them nevertheless. */
#ifndef TOPOLET_READS_H
#define TOPOLET_READS_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_READS_ID "topolet.reads/1"

/* How many patterns of each kind a plugin may give, and how long each may be. */
#define TOPOLET_READS_MAX_PATTERNS 256u
#define TOPOLET_READS_MAX_LENGTH 317u

/* Flags of what a plugin reads. LOAD: topolet_request.load, or it lets containers run beside their homes, which goes by
 * that. Load is measured while a plugin reads it. */
#define TOPOLET_READS_LOAD 1u

/* A plugin that reads none of it needs no such capability. */
typedef struct topolet_reads {
  uint32_t struct_size;
  uint32_t flags; /* TOPOLET_READS_…; a host ignores those that it does not know */

  /* Patterns of whole names, in which '*' is any text, also none, and no other character is special. They stay as they
   * are while the instance lives. Read once, after create(). */
  topolet_strs env;
  topolet_strs annotations; /* of the keys as pods have them; those of topolet.io/ are in topolet.annotations/1 */
} topolet_reads;

#ifdef __cplusplus
}
#endif

#endif
