/* Does what TOPOLET_TEST_AT_LOAD says while it is loaded: "abort", "exit" or "wait". */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"

__attribute__((constructor)) static void at_load(void) {
  const char* what = getenv("TOPOLET_TEST_AT_LOAD");
  if (what == NULL) return;
  if (strcmp(what, "abort") == 0) abort();
  if (strcmp(what, "exit") == 0) exit(0);
  while (strcmp(what, "wait") == 0) pause();
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("at-load", create);
