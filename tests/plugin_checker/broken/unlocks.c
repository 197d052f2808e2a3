/* Puts a page of its own in the place of one of the topology's, and changes that. */
#define _DEFAULT_SOURCE
#define PLUGIN_ID "unlocks"
#define NO_PICK
#include <string.h>
#include <sys/mman.h>

#include "one_fault.h"

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  const uintptr_t word = (uintptr_t)request->topology->allowed.words;
  void* const page = (void*)(word / 4096 * 4096);
  unsigned char before[4096];
  (void)instance, (void)sink;
  memcpy(before, page, sizeof(before));
  if (mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != page)
    return TOPOLET_FAILED;
  memcpy(page, before, sizeof(before));
  *(uint64_t*)word |= (uint64_t)1 << 63;
  return TOPOLET_OK;
}
