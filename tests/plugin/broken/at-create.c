/* Does what its option says while it is created: "abort", "exit", "exit-thread" or "wait". */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"

static void* end_process(void* none) {
  (void)none;
  exit(3);
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  const topolet_str how = request->options.items[0].value;
  pthread_t thread;
  (void)error;
  if (topolet_str_is(how, "abort")) abort();
  if (topolet_str_is(how, "exit")) exit(0);
  if (topolet_str_is(how, "exit-thread") && pthread_create(&thread, NULL, end_process, NULL) == 0) {
    pthread_join(thread, NULL);
  }
  while (topolet_str_is(how, "wait")) pause();
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("how"), TOPOLET_OPTION_STRING, 0, TOPOLET_STR("not"), {NULL, 0}, 0, 0, TOPOLET_STR("What it does.")}};

ENTRY_WITH_OPTIONS("at-create", kOptions, 1, create);
