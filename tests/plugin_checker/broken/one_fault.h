/* A plugin without options that is right but for one thing. Whoever includes this defines PLUGIN_ID, `score` and `pick`
 * (or NO_SCORE, NO_PICK) before, `propose` with HAS_PROPOSE, and nothing else. */
#ifndef TOPOLET_TESTS_ONE_FAULT_H
#define TOPOLET_TESTS_ONE_FAULT_H

#include "tests/plugin/broken/entry.h"

#ifndef NO_SCORE
static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink);
#endif
#ifndef NO_PICK
static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink);
#endif
#ifdef HAS_PROPOSE
static int32_t propose(const topolet_instance* instance, const topolet_request* request,
                       const topolet_propose_sink* sink);
#endif
#ifndef IN_CREATE
#define IN_CREATE (void)0
#endif

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
#ifndef NO_SCORE
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
#endif
#ifndef NO_PICK
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick};
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
#endif
#ifdef HAS_PROPOSE
  static const topolet_propose kPropose = {sizeof(topolet_propose), 0, propose};
  if (topolet_str_is(id, TOPOLET_PROPOSE_ID)) return &kPropose;
#endif
  (void)instance, (void)id;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  IN_CREATE;
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY(PLUGIN_ID, create);

#endif
