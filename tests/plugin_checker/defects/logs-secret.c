/* Logs the value of a variable. */
#define HOST host
#define AT_SCORE log_value(request)
#include <topolet/abi.h>

static void log_value(const topolet_request* request);
#include "defect.h"

static void log_value(const topolet_request* request) {
  const topolet_str id = TOPOLET_STR(TOPOLET_LOG_ID);
  const topolet_log* log = (const topolet_log*)host->get_capability(host, id);
  if (request->workload->env.count > 0) log->write(host, TOPOLET_LOG_DEBUG, request->workload->env.items[0].value);
}
