/* Logs in an exit handler. */
#define HOST host
#define AT_CREATE                                                                  \
  const topolet_str id = TOPOLET_STR(TOPOLET_LOG_ID);                              \
  host_log = (const topolet_log*)request->host->get_capability(request->host, id); \
  atexit(say)
#include <stdlib.h>

#include <topolet/log.h>

static const topolet_log* host_log;
static void say(void);
#include "defect.h"

static void say(void) {
  const topolet_str text = TOPOLET_STR("bye");
  host_log->write(host, TOPOLET_LOG_INFO, text);
}
