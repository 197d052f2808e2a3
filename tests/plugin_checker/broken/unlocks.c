/* Makes the topology writable, and changes it. */
#define PLUGIN_ID "unlocks"
#define NO_PICK
#include <sys/mman.h>

#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  const uintptr_t word = (uintptr_t)request->topology->allowed.words;
  (void)instance, (void)sink;
  if (mprotect((void*)(word / 4096 * 4096), 4096, PROT_READ | PROT_WRITE) != 0) return TOPOLET_FAILED;
  *(uint64_t*)word |= (uint64_t)1 << 63;
  return TOPOLET_OK;
}
