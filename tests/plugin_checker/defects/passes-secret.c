/* Adds the value of a variable to the environment by another name. */
#define AT_ADJUST pass_on(request, sink)
#include <topolet/adjust.h>

static void pass_on(const topolet_adjust_request* request, const topolet_adjust_sink* sink) {
  const topolet_kvs env = request->request->workload->env;
  const topolet_str name = TOPOLET_STR("COPY");
  if (env.count > 0) sink->env(sink, name, env.items[0].value);
}
#include "defect.h"
