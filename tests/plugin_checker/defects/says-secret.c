/* Says the value of a variable in its reason. */
#define REASON secret(request)
#include <topolet/abi.h>

/* Returns the value of the first variable. */
static topolet_str secret(const topolet_request* request) {
  const topolet_str nothing = {NULL, 0};
  return request->workload->env.count > 0 ? request->workload->env.items[0].value : nothing;
}
#include "defect.h"
