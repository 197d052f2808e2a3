/* Prefers candidates with many free CPUs. Change score() to what you want. */
#include <stdio.h>
#include <stdlib.h>
#include <topolet/abi.h>
#include <topolet/annotations.h>
#include <topolet/score.h>

typedef struct policy {
  topolet_instance instance;
  int32_t most;
} policy;

static uint32_t count(topolet_set set) {
  uint32_t bits = 0;
  for (size_t i = 0; i < set.count; ++i) {
    for (uint64_t word = set.words[i]; word != 0; word &= word - 1) ++bits;
  }
  return bits;
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  const policy* self = instance->context;
  for (uint32_t i = 0; i < request->candidate_count; ++i) {
    const topolet_candidate* candidate =
        TOPOLET_AT(topolet_candidate, request->candidates, request->candidate_stride, i);
    const uint32_t usable = count(candidate->usable);
    const uint32_t all = count(candidate->cpus);
    char text[64];
    const int length = snprintf(text, sizeof(text), "%u CPUs are free", usable);
    const topolet_str reason = {text, (size_t)length};
    const int32_t points = all == 0 ? 0 : (int32_t)((uint32_t)self->most * usable / all);
    sink->set(sink, i, TOPOLET_VERDICT_SCORE, points, reason);
  }
  return TOPOLET_OK;
}

/* The value of an integer option. The host has checked that it consists of digits only. */
static int32_t number(topolet_kvs options, const char* name) {
  int32_t value = 0;
  for (size_t i = 0; i < options.count; ++i) {
    if (!topolet_str_is(options.items[i].key, name)) continue;
    for (size_t k = 0; k < options.items[i].value.len; ++k) value = 10 * value + (options.items[i].value.ptr[k] - '0');
  }
  return value;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  /* The topolet.io annotations that it reads, without that prefix: none. */
  static const topolet_annotations kAnnotations = {sizeof(topolet_annotations), 0, {NULL, 0}, {NULL, 0}};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  return topolet_str_is(id, TOPOLET_ANNOTATIONS_ID) ? &kAnnotations : NULL;
}

static void destroy(const topolet_instance* instance) { free(instance->context); }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_str kOutOfMemory = TOPOLET_STR("out of memory");
  policy* self = malloc(sizeof(*self));
  if (self == NULL) {
    error->set(error, kOutOfMemory);
    return TOPOLET_FAILED;
  }
  const topolet_instance made = {sizeof(made), 0, self, get_capability, destroy};
  self->instance = made;
  self->most = number(request->options, "most");
  *instance = &self->instance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {{
    .name = TOPOLET_STR("most"),
    .type = TOPOLET_OPTION_INTEGER,
    .default_value = TOPOLET_STR("10"),
    .minimum = 1,
    .maximum = 100,
    .help = TOPOLET_STR("The highest score."),
}};

const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = sizeof(topolet_plugin_entry),
    .abi_minor = TOPOLET_ABI_MINOR,
    .abi_draft = TOPOLET_ABI_DRAFT,
    .id = TOPOLET_STR("__NAME__"),
    .version = TOPOLET_STR("0.1"),
    .options = kOptions,
    .option_count = 1,
    .option_stride = sizeof(topolet_option),
    .create = create,
};
