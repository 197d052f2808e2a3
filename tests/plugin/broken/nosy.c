/* Logs all of the configuration that it is shown. */
#include <stdio.h>
#include <topolet/log.h>

#include "entry.h"

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  (void)instance, (void)id;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  static const topolet_str kLog = TOPOLET_STR(TOPOLET_LOG_ID);
  const topolet_log* log = request->host->get_capability(request->host, kLog);
  char text[512];
  (void)error;
  for (size_t i = 0; i < request->configuration.count; ++i) {
    const topolet_kv* pair = &request->configuration.items[i];
    const int length = snprintf(text, sizeof(text), "%.*s is %.*s", (int)pair->key.len, pair->key.ptr,
                                (int)pair->value.len, pair->value.ptr);
    const topolet_str message = {text, (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1};
    log->write(request->host, TOPOLET_LOG_INFO, message);
  }
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("nosy", create);
