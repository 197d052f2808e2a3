/* Saves a part of the value of a variable. */
#define HOST host
#define AT_SCORE remember(request)
#define AT_NOTIFY save()
#include <topolet/abi.h>

static void remember(const topolet_request* request);
static void save(void);
#include "defect.h"

static char remembered[12];

static void remember(const topolet_request* request) {
  const topolet_kvs env = request->workload->env;
  if (env.count > 0 && env.items[0].value.len >= sizeof(remembered))
    memcpy(remembered, env.items[0].value.ptr, sizeof(remembered));
}

static void save(void) {
  const topolet_str id = TOPOLET_STR(TOPOLET_STATE_ID), key = TOPOLET_STR("last");
  const topolet_state* state = (const topolet_state*)host->get_capability(host, id);
  const topolet_str value = {remembered, sizeof(remembered)};
  state->set(host, key, value);
}
