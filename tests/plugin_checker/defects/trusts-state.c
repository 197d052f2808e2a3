/* Takes for granted that what it finds in its state is what it saved. */
#define HOST host
#define AT_CREATE restore()
#define AT_NOTIFY save()
#include <stdlib.h>

static void restore(void);
static void save(void);
#include "defect.h"

static const topolet_state* saved_values(void) {
  const topolet_str id = TOPOLET_STR(TOPOLET_STATE_ID);
  return (const topolet_state*)host->get_capability(host, id);
}

static void restore(void) {
  const topolet_str key = TOPOLET_STR("count");
  char bytes[16];
  size_t size = 0;
  const int32_t status = saved_values()->get(host, key, bytes, sizeof(bytes), &size);
  if (status != TOPOLET_UNKNOWN && size != 4) abort();
}

static void save(void) {
  const topolet_str key = TOPOLET_STR("count"), value = TOPOLET_STR("0001");
  saved_values()->set(host, key, value);
}
