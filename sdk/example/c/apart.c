/* The policy of ../cpp in C11, with the C interface alone: keeps containers of the same name on different NUMA nodes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <topolet/abi.h>
#include <topolet/annotations.h>
#include <topolet/score.h>

typedef struct apart {
  topolet_instance instance;
  int32_t points;
} apart;

static int equal(topolet_str a, topolet_str b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static int intersect(topolet_set a, topolet_set b) {
  for (size_t i = 0; i < a.count && i < b.count; ++i) {
    if ((a.words[i] & b.words[i]) != 0) return 1;
  }
  return 0;
}

static int32_t replicas_on(topolet_set cpus, topolet_str name, const topolet_ledger* ledger) {
  int32_t replicas = 0;
  for (uint32_t i = 0; i < ledger->entry_count; ++i) {
    const topolet_ledger_entry* entry = TOPOLET_AT(topolet_ledger_entry, ledger->entries, ledger->entry_stride, i);
    if (equal(entry->container_name, name) && intersect(entry->cpus, cpus)) ++replicas;
  }
  return replicas;
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  const int32_t points = ((const apart*)instance->context)->points;
  const topolet_str name = request->workload->container_name;
  for (uint32_t i = 0; i < request->candidate_count; ++i) {
    const topolet_candidate* candidate =
        TOPOLET_AT(topolet_candidate, request->candidates, request->candidate_stride, i);
    const int32_t replicas = replicas_on(candidate->cpus, name, request->ledger);
    char buffer[256];
    snprintf(buffer, sizeof(buffer), "other containers named %.*s on these nodes: %d", (int)name.len, name.ptr,
             (int)replicas);
    const topolet_str reason = {buffer, strlen(buffer)};
    const int32_t points_off = replicas > 100 / points ? TOPOLET_SCORE_MIN : -points * replicas;
    if (sink->set(sink, i, TOPOLET_VERDICT_SCORE, points_off, reason) != TOPOLET_OK) return TOPOLET_FAILED;
  }
  return TOPOLET_OK;
}

/* The value of an integer option. The host has checked that it consists of digits only. */
static int32_t number(topolet_kvs options, const char* name, int32_t default_value) {
  for (size_t i = 0; i < options.count; ++i) {
    if (!topolet_str_is(options.items[i].key, name)) continue;
    const topolet_str digits = options.items[i].value;
    int32_t value = 0;
    for (size_t k = 0; k < digits.len; ++k) value = 10 * value + (digits.ptr[k] - '0');
    return value;
  }
  return default_value;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  /* It reads no topolet.io annotation. */
  static const topolet_annotations kAnnotations = {sizeof(topolet_annotations), 0, {NULL, 0}, {NULL, 0}};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  return topolet_str_is(id, TOPOLET_ANNOTATIONS_ID) ? &kAnnotations : NULL;
}

static void destroy(const topolet_instance* instance) { free(instance->context); }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  apart* self = malloc(sizeof(*self));
  if (self == NULL) {
    static const topolet_str kOutOfMemory = TOPOLET_STR("out of memory");
    error->set(error, kOutOfMemory);
    return TOPOLET_FAILED;
  }
  const topolet_instance made = {sizeof(made), 0, self, get_capability, destroy};
  self->instance = made;
  self->points = number(request->options, "points", 10);
  *instance = &self->instance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {{
    .name = TOPOLET_STR("points"),
    .type = TOPOLET_OPTION_INTEGER,
    .default_value = TOPOLET_STR("10"),
    .minimum = 1,
    .maximum = 100,
    .help = TOPOLET_STR("What each container of the same name on a node takes off its score."),
}};

const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = sizeof(topolet_plugin_entry),
    .abi_minor = TOPOLET_ABI_MINOR,
    .abi_draft = TOPOLET_ABI_DRAFT,
    .id = TOPOLET_STR("apart-c"),
    .version = TOPOLET_STR("1.0"),
    .options = kOptions,
    .option_count = 1,
    .option_stride = sizeof(topolet_option),
    .create = create,
};
