/* Capability "topolet.annotations/1" of a plugin: it names the annotations that it reads. With the names of all plugins
 * the host can tell people which annotation they have misspelt, and leave out what a pod may not use. */
#ifndef TOPOLET_ANNOTATIONS_H
#define TOPOLET_ANNOTATIONS_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_ANNOTATIONS_ID "topolet.annotations/1"

/* How many names a plugin may give, and how long each may be. */
#define TOPOLET_ANNOTATIONS_MAX_NAMES 64u
#define TOPOLET_ANNOTATIONS_MAX_LENGTH 63u

/* A plugin that reads no annotation has this capability too, without any name. A plugin that lacks the capability may
 * read any annotation as far as the host knows. */
typedef struct topolet_annotations {
  uint32_t struct_size;
  uint32_t reserved;

  /* The names, in any order, as they are in topolet_workload.settings: without "topolet.io/". Those that an option
   * makes the plugin ignore are among them. Each consists of letters, digits, '-', '_' and '.', and begins and ends
   * with a letter or digit. Read once, after create(). */
  topolet_strs names;

  /* Those by which a container gets more from others than it requests, such as threads that are kept idle for it: key =
   * one of `names`, value = the value that does, or empty for any. Where the namespace of a pod may not have that
   * (placement.exclusive-namespaces), the host leaves them out of topolet_workload.settings and says so, so that the
   * plugin needs no rule of its own. At most TOPOLET_ANNOTATIONS_MAX_NAMES. */
  topolet_kvs taking;
} topolet_annotations;

#ifdef __cplusplus
}
#endif

#endif
