/* Does not come back from the function that its option names: "create", "capability" or "destroy". */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "entry.h"

static int g_waits_to_end;

static void wait_for_ever(void) {
  for (;;) pause();
}

static const void* get_none(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  return NULL;
}

static const void* get_never(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  wait_for_ever();
  return NULL;
}

static void destroy(const topolet_instance* instance) {
  (void)instance;
  if (g_waits_to_end) wait_for_ever();
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_none, destroy};
  static const topolet_instance kMute = {sizeof(topolet_instance), 0, NULL, get_never, destroy};
  const topolet_str from = request->options.items[0].value;
  (void)error;
  if (topolet_str_is(from, "create")) wait_for_ever();
  g_waits_to_end = topolet_str_is(from, "destroy");
  *instance = topolet_str_is(from, "capability") ? &kMute : &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("from"), TOPOLET_OPTION_STRING, 0, {NULL, 0}, {NULL, 0}, 0, 0, TOPOLET_STR("What it never ends.")}};

ENTRY_WITH_OPTIONS("never-back", kOptions, 1, create);
