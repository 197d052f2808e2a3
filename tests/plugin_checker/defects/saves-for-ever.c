/* Saves a value for each container, and removes none. */
#define HOST host
#define AT_NOTIFY save(event)
#include <topolet/events.h>

static void save(const topolet_event* event);
#include "defect.h"

static void save(const topolet_event* event) {
  const topolet_str id = TOPOLET_STR(TOPOLET_STATE_ID), value = TOPOLET_STR("seen");
  const topolet_state* state = (const topolet_state*)host->get_capability(host, id);
  state->set(host, event->workload->pod_uid, value);
}
