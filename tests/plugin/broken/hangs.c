/* Waits in score() until something can be read from the file that its option names. Must not be destroyed meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "entry.h"

static char g_path[256];
static atomic_int g_inside;

struct hanging {
  topolet_instance instance;
  atomic_int inside;
};

/* Nor may the exit handlers run meanwhile. */
__attribute__((destructor)) static void end(void) {
  if (atomic_load(&g_inside) > 0) abort();
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  struct hanging* self = instance->context;
  char byte = 0;
  (void)request, (void)sink;
  if (g_path[0] != '\0') {
    atomic_fetch_add(&g_inside, 1);
    const int fd = open(g_path, O_RDONLY);
    atomic_fetch_add(&self->inside, 1);
    (void)!read(fd, &byte, 1);
    atomic_fetch_sub(&self->inside, 1);
    close(fd);
    atomic_fetch_sub(&g_inside, 1);
  }
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  (void)instance;
  return topolet_str_is(id, TOPOLET_SCORE_ID) ? &kScore : NULL;
}

static void destroy(const topolet_instance* instance) {
  struct hanging* self = instance->context;
  if (atomic_load(&self->inside) > 0) abort();
  free(self);
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  struct hanging* self = NULL;
  const topolet_str path = request->options.items[0].value;
  (void)error;
  if (path.len >= sizeof(g_path)) return TOPOLET_FAILED;
  memset(g_path, 0, sizeof(g_path));
  if (path.len > 0) memcpy(g_path, path.ptr, path.len);
  self = calloc(1, sizeof(*self));
  if (self == NULL) return TOPOLET_FAILED;
  self->instance = (topolet_instance){sizeof(topolet_instance), 0, self, get_capability, destroy};
  *instance = &self->instance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("on"), TOPOLET_OPTION_STRING, 0, {NULL, 0}, {NULL, 0}, 0, 0, TOPOLET_STR("A file to wait for.")}};

ENTRY_WITH_OPTIONS("hangs", kOptions, 1, create);
