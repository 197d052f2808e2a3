/* Sets an annotation to the value of a variable: whoever may list pods can read it. */
#define AT_ADJUST pass_on(request, sink)
#include <topolet/adjust.h>

static void pass_on(const topolet_adjust_request* request, const topolet_adjust_sink* sink) {
  const topolet_kvs env = request->request->workload->env;
  const topolet_str key = TOPOLET_STR("example.org/copy");
  if (env.count > 0) sink->annotation(sink, key, env.items[0].value);
}
#include "defect.h"
