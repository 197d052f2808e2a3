/* Capability "topolet.events/1" of a plugin: it is told what happens to containers. Nothing that a plugin does here can
 * fail or delay the container. */
#ifndef TOPOLET_EVENTS_H
#define TOPOLET_EVENTS_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_EVENTS_ID "topolet.events/1"

/* Kinds that are newer than the plugin's abi_minor are not reported to it. */
typedef enum topolet_event_kind {
  TOPOLET_EVENT_PLACED = 0,   /* the runtime has the container where it was decided */
  TOPOLET_EVENT_STARTED = 1,  /* it runs */
  TOPOLET_EVENT_MOVED = 2,    /* its CPUs, withheld CPUs or memory nodes changed */
  TOPOLET_EVENT_RESIZED = 3,  /* its demand changed, and perhaps its CPUs with it */
  TOPOLET_EVENT_RELEASED = 4, /* it no longer has CPUs or memory nodes; the sets are those that it had */
  /* It has ended; the sets are those that it had, which may be kept for its next attempt for a while. */
  TOPOLET_EVENT_EXITED = 5,
  /* The pod's sandbox is gone. Of the workload only what is the pod's is told; the sets are empty, `mode` says nothing.
   */
  TOPOLET_EVENT_POD_REMOVED = 6,
  TOPOLET_EVENT_DENIED = 7,  /* its creation was denied for `reason`; the sets are empty */
  TOPOLET_EVENT_UNPINNED = 8 /* it runs without a placement; the sets are empty */
} topolet_event_kind;

#define TOPOLET_EVENT_ADOPTED 1u           /* the container was found, such as after a restart of the host */
#define TOPOLET_EVENT_EXIT_CODE_UNKNOWN 2u /* of TOPOLET_EVENT_EXITED */

/* One thing that happened to one container or pod. After a restart the host reports the containers that it finds as
 * placed again, marked as adopted, and does not report those that ended meanwhile. */
typedef struct topolet_event {
  uint32_t struct_size;
  int32_t kind;                     /* topolet_event_kind */
  const topolet_workload* workload; /* borrowed for the call, as is this struct; `env` is always empty */
  int32_t mode;                     /* topolet_mode; of what was denied or is unpinned, the one that it asked for */
  uint32_t flags;                   /* TOPOLET_EVENT_ADOPTED, … */
  topolet_set cpus;                 /* that it may run on */
  topolet_set withheld;             /* kept idle for it */
  topolet_set mems;                 /* memory nodes that it is bound to; empty: not bound */
  const topolet_topology* topology; /* borrowed for the call */
  /* Grows by one with each event of the host's life, from 1, whether this plugin is told or not: a gap says that it was
   * not told of some. */
  uint64_t sequence;
  topolet_str container_id; /* the runtime's; empty where there is none */
  topolet_str reason;       /* for people; of TOPOLET_EVENT_DENIED, and empty or not of others */
  int32_t exit_code;        /* of TOPOLET_EVENT_EXITED, unless flags say that it is unknown; else 0 */
  uint32_t reserved;
} topolet_event;

/* Where notify() says what went wrong. Owned by the host. Outside the call and its thread its functions do
 * nothing and return TOPOLET_LATE. */
typedef struct topolet_event_sink topolet_event_sink;
struct topolet_event_sink {
  uint32_t struct_size;
  uint32_t reserved;
  void* context; /* the host's own */

  /* Says why notify() is about to return TOPOLET_FAILED, for the log. Copies the message, and cuts it beyond 1,024
   * bytes; the last call counts. Returns TOPOLET_OK, or TOPOLET_LATE when the host has abandoned the call. [event] */
  int32_t (*error)(const topolet_event_sink* sink, topolet_str message);
};

typedef struct topolet_events {
  uint32_t struct_size;
  uint32_t reserved;

  /* Reports one event. Events come in the order in which they happened. `event` and `sink` are borrowed for the call.
   * Saved state may be written. Returns TOPOLET_OK or TOPOLET_FAILED. [event] */
  int32_t (*notify)(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink);
} topolet_events;

#ifdef __cplusplus
}
#endif

#endif
