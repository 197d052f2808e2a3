/* Capability "topolet.events/1" of a plugin: it is told what happens to containers. Nothing that a plugin does here can
 * fail or delay the container. */
#ifndef TOPOLET_EVENTS_H
#define TOPOLET_EVENTS_H

#include <topolet/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPOLET_EVENTS_ID "topolet.events/1"

typedef enum topolet_event_kind {
  TOPOLET_EVENT_PLACED = 0,  /* the runtime has the container where it was decided */
  TOPOLET_EVENT_STARTED = 1, /* it runs */
  TOPOLET_EVENT_MOVED = 2,   /* its CPUs, withheld CPUs or memory nodes changed */
  TOPOLET_EVENT_RESIZED = 3, /* its demand changed, and perhaps its CPUs with it */
  TOPOLET_EVENT_RELEASED = 4 /* it no longer has CPUs or memory nodes; the sets are those that it had */
} topolet_event_kind;

/* One thing that happened to one container. After a restart the host reports the containers that it finds as
 * placed again, and does not report those that ended meanwhile. */
typedef struct topolet_event {
  uint32_t struct_size;
  int32_t kind;                     /* topolet_event_kind */
  const topolet_workload* workload; /* borrowed for the call, as is this struct; `env` is always empty */
  int32_t mode;                     /* topolet_mode */
  uint32_t padding;
  topolet_set cpus;
  topolet_set withheld;
  topolet_set mems;                 /* empty: not bound */
  const topolet_topology* topology; /* borrowed for the call */
} topolet_event;

/* Where notify() says what went wrong. Owned by the host, valid during the call and on its thread only. */
typedef struct topolet_event_sink topolet_event_sink;
struct topolet_event_sink {
  uint32_t struct_size;
  uint32_t padding;
  void* context; /* the host's own */

  /* Says why notify() is about to return TOPOLET_FAILED, for the log. Copies the message. Returns TOPOLET_OK, or
   * TOPOLET_LATE when the host has abandoned the call. [event] */
  int32_t (*error)(const topolet_event_sink* sink, topolet_str message);
};

typedef struct topolet_events {
  uint32_t struct_size;
  uint32_t padding;

  /* Reports one event. Events come in the order in which they happened. `event` and `sink` are borrowed for the call.
   * Saved state may be written. Returns TOPOLET_OK or TOPOLET_FAILED. [event] */
  int32_t (*notify)(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink);
} topolet_events;

#ifdef __cplusplus
}
#endif

#endif
