/* A plugin that is right but for one thing. Whoever includes this defines what it does besides, as statements: AT_LOAD,
 * AT_CREATE, AT_SCORE, AT_NOTIFY, AT_DESTROY and AT_EXIT, and the score that it gives, SCORE. The build defines
 * DEFECT_ID. */
#ifndef TOPOLET_TESTS_DEFECT_H
#define TOPOLET_TESTS_DEFECT_H

#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/state.h>

#include "tests/plugin/broken/entry.h"

#ifndef AT_CREATE
#define AT_CREATE (void)0
#endif
#ifndef AT_SCORE
#define AT_SCORE (void)0
#endif
#ifndef AT_ADJUST
#define AT_ADJUST (void)0
#endif
#ifndef AT_NOTIFY
#define AT_NOTIFY (void)0
#endif
#ifndef AT_DESTROY
#define AT_DESTROY (void)0
#endif
#ifndef SCORE
#define SCORE 0
#endif
#ifndef REASON
#define REASON TOPOLET_STR("all are alike")
#endif
#ifndef RESERVED
#define RESERVED 0
#endif

#ifdef HOST
static const topolet_host* HOST;
#endif

#ifdef AT_LOAD
__attribute__((constructor)) static void at_load(void) { AT_LOAD; }
#endif
#ifdef AT_EXIT
__attribute__((destructor)) static void at_exit(void) { AT_EXIT; }
#endif

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  const topolet_str reason = REASON;
  (void)instance;
  AT_SCORE;
  for (uint32_t i = 0; i < request->candidate_count; ++i)
    sink->set(sink, i, TOPOLET_VERDICT_SCORE, (int32_t)(SCORE), reason);
  return TOPOLET_OK;
}

static int32_t adjust(const topolet_instance* instance, const topolet_adjust_request* request,
                      const topolet_adjust_sink* sink) {
  (void)instance, (void)request, (void)sink;
  AT_ADJUST;
  return TOPOLET_OK;
}

static int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink) {
  (void)instance, (void)event, (void)sink;
  AT_NOTIFY;
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), RESERVED, score};
  static const topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, adjust};
  static const topolet_events kEvents = {sizeof(topolet_events), 0, notify};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kAdjust;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  return NULL;
}

static void destroy(const topolet_instance* instance) {
  (void)instance;
  AT_DESTROY;
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
#ifdef HOST
  HOST = request->host;
#endif
  AT_CREATE;
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY(DEFECT_ID, create);

#endif
