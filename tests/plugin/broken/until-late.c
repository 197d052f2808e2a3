/* Works on until it is told that it is late, as a well-behaved slow plugin does. */
#include "entry.h"

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  static const topolet_str kReason = TOPOLET_STR("still looking");
  (void)instance, (void)request;
  while (sink->reason(sink, kReason) != TOPOLET_LATE) {
  }
  return TOPOLET_FAILED;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick};
  (void)instance;
  return topolet_str_is(id, TOPOLET_PICK_ID) ? &kPick : NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("until-late", create);
