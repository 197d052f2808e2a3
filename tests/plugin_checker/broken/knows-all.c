/* Compares ids by how they begin. */
#include "tests/plugin/broken/entry.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  (void)instance;
  return id.len >= 13 && memcmp(id.ptr, "topolet.score", 13) == 0 ? &kScore : NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("knows-all", create);
