/* Prints lines that look like results of `topolet simulate --json`, whenever its code runs. */
#include <stdio.h>
#include <unistd.h>

#include "entry.h"

#define FORGED "{\"op\":\"create\",\"outcome\":\"forged\"}\n"

static void forge(void) {
  printf(FORGED);
  (void)!write(STDOUT_FILENO, FORGED, sizeof(FORGED) - 1);
}

__attribute__((constructor)) static void at_load(void) { forge(); }

__attribute__((destructor)) static void at_exit(void) { forge(); }

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance, (void)request, (void)sink;
  forge();
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  (void)instance;
  return topolet_str_is(id, TOPOLET_SCORE_ID) ? &kScore : NULL;
}

static void destroy(const topolet_instance* instance) {
  (void)instance;
  forge();
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  (void)request, (void)error;
  forge();
  *instance = &kInstance;
  return TOPOLET_OK;
}

ENTRY("forges", create);
