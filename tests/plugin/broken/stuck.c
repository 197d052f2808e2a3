/* Waits in score() until its pipe is closed, whatever it is told. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"

static int g_fd = -1;

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  static const topolet_str kReason = TOPOLET_STR("at last");
  char byte = 0;
  (void)instance;
  while (read(g_fd, &byte, 1) > 0) {
  }
  /* The inputs of an abandoned call must still be there. */
  if (request->workload->container_name.len == 0 || request->candidate_count == 0) abort();
  if (sink->set(sink, 0, TOPOLET_VERDICT_SCORE, 1, kReason) != TOPOLET_LATE) abort();
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  (void)instance;
  return topolet_str_is(id, TOPOLET_SCORE_ID) ? &kScore : NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)error;
  g_fd = atoi(request->options.items[0].value.ptr);
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("fd"), TOPOLET_OPTION_INTEGER, 0, TOPOLET_STR("0"), {NULL, 0}, 0, 65535, TOPOLET_STR("The pipe.")}};

ENTRY_WITH_OPTIONS("stuck", kOptions, 1, create);
