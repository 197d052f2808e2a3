/* A host built with the frozen headers: loads one of today's plugins and asks it about a machine of two nodes, with CPU
 * 0 taken. Usage: sdk_frozen_host PLUGIN.so [WORDS]; WORDS must be in one of the reasons. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/score.h>

enum { kCpus = 8, kCandidates = 3 };

static const char* wanted;
static int found;

#define CHECK(condition, ...)           \
  do {                                  \
    if (!(condition)) {                 \
      fprintf(stderr, "FAILED: "); /**/ \
      fprintf(stderr, __VA_ARGS__);     \
      fputc('\n', stderr);              \
      exit(1);                          \
    }                                   \
  } while (0)

static void hear(const char* from, topolet_str text) {
  char line[1025];
  const size_t length = text.len < sizeof(line) ? text.len : sizeof(line) - 1;
  if (length > 0) memcpy(line, text.ptr, length); /* NOLINT: nobody has memcpy_s */
  line[length] = '\0';
  printf("%s: %s\n", from, line);
  if (wanted != NULL && strstr(line, wanted) != NULL) found = 1;
}

static void write_log(const topolet_host* host, int32_t level, topolet_str message) {
  (void)host;
  (void)level;
  hear("log", message);
}

static const void* get_host_capability(const topolet_host* host, topolet_str id) {
  static const topolet_log kLog = {sizeof(topolet_log), 0, write_log};
  (void)host;
  return topolet_str_is(id, TOPOLET_LOG_ID) ? &kLog : NULL;
}

static int32_t hear_error(const topolet_error_sink* sink, topolet_str message) {
  (void)sink;
  hear("create", message);
  return TOPOLET_OK;
}

static int32_t hear_score(const topolet_score_sink* sink, uint32_t candidate, int32_t kind, int32_t score,
                          topolet_str reason) {
  (void)sink;
  CHECK(candidate < kCandidates, "scored candidate %u", candidate);
  CHECK(kind >= TOPOLET_VERDICT_ABSTAIN && kind <= TOPOLET_VERDICT_SCORE, "said a verdict of kind %d", kind);
  CHECK(score >= TOPOLET_SCORE_MIN && score <= TOPOLET_SCORE_MAX, "scored %d", score);
  printf("candidate %u: kind %d, %d\n", candidate, kind, score);
  hear("score", reason);
  return TOPOLET_OK;
}

static int32_t hear_score_error(const topolet_score_sink* sink, topolet_str message) {
  (void)sink;
  hear("score failed", message);
  return TOPOLET_OK;
}

static int32_t hear_code(const topolet_score_sink* sink, uint32_t candidate, topolet_str code) {
  (void)sink;
  CHECK(candidate < kCandidates, "gave a code for candidate %u", candidate);
  hear("code", code);
  return TOPOLET_OK;
}

static int32_t hear_set(const topolet_pick_sink* sink, topolet_set cpus) {
  const uint64_t usable = *(const uint64_t*)sink->context;
  for (size_t i = 0; i < cpus.count; ++i) {
    CHECK((cpus.words[i] & ~(i == 0 ? usable : 0)) == 0, "named CPUs that are not usable");
  }
  return TOPOLET_OK;
}

static int32_t hear_order(const topolet_pick_sink* sink, const uint32_t* os_indices, size_t count) {
  (void)sink;
  for (size_t i = 0; i < count; ++i) CHECK(os_indices[i] < kCpus, "ordered CPU %u", os_indices[i]);
  return TOPOLET_OK;
}

static int32_t hear_share(const topolet_pick_sink* sink, topolet_set cpus, uint32_t count) {
  CHECK(count > 0, "a share of no CPU");
  return hear_set(sink, cpus);
}

static int32_t hear_reason(const topolet_pick_sink* sink, topolet_str reason) {
  (void)sink;
  hear("pick", reason);
  return TOPOLET_OK;
}

static const topolet_plugin_entry* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL, "%s", dlerror());
  const topolet_plugin_entry* entry = (const topolet_plugin_entry*)dlsym(library, TOPOLET_ENTRY_SYMBOL);
  CHECK(entry != NULL, "%s exports no %s", path, TOPOLET_ENTRY_SYMBOL);
  CHECK(TOPOLET_HAS(entry, create), "the entry has %u bytes", entry->struct_size);
  CHECK(entry->abi_draft == TOPOLET_ABI_DRAFT, "draft %u of the ABI; the frozen headers are draft %u", entry->abi_draft,
        TOPOLET_ABI_DRAFT);
  return entry;
}

static const topolet_instance* create(const topolet_plugin_entry* entry, const topolet_host* host) {
  topolet_kv options[16];
  CHECK(entry->option_count <= 16, "%u options", entry->option_count);
  for (uint32_t i = 0; i < entry->option_count; ++i) {
    const topolet_option* option = TOPOLET_AT(topolet_option, entry->options, entry->option_stride, i);
    options[i].key = option->name;
    options[i].value = option->default_value;
  }
  const topolet_create_request request = {sizeof(request), 0,    host, {options, entry->option_count},
                                          {NULL, 0},       NULL, 0,    0};
  const topolet_error_sink errors = {sizeof(errors), 0, NULL, hear_error};
  const topolet_instance* instance = NULL;
  CHECK(entry->create(&request, &errors, &instance) == TOPOLET_OK && instance != NULL, "create");
  return instance;
}

static const void* capability(const topolet_instance* instance, const char* id) {
  const topolet_str text = {id, strlen(id)};
  return instance->get_capability(instance, text);
}

static void ask(const topolet_instance* instance, const topolet_request* request) {
  const topolet_score* score = (const topolet_score*)capability(instance, TOPOLET_SCORE_ID);
  if (score != NULL) {
    const topolet_score_sink sink = {sizeof(sink), 0, NULL, hear_score, hear_score_error, hear_code};
    CHECK(score->score(instance, request, &sink) == TOPOLET_OK, "score()");
  }
  const topolet_pick* pick = (const topolet_pick*)capability(instance, TOPOLET_PICK_ID);
  if (pick != NULL) {
    uint64_t usable = request->candidates[0].usable.words[0];
    const topolet_pick_request what = {sizeof(what), 0, request, {&usable, 1}, {NULL, 0}, request->exclusive_cpus, 0};
    const topolet_pick_sink sink = {sizeof(sink), 0,           &usable,     hear_set,    hear_set,
                                    hear_order,   hear_reason, hear_reason, hear_reason, hear_share,
                                    hear_reason,  hear_reason, NULL,        NULL};
    CHECK(pick->pick(instance, &what, &sink) == TOPOLET_OK, "pick()");
  }
  CHECK(capability(instance, "topolet.no-such-capability/1") == NULL, "has a capability that does not exist");
}

static void ask_about_two_nodes(const topolet_instance* instance) {
  static const uint64_t kAll = 0xff, kLow = 0x0f, kHigh = 0xf0, kPool = 0xfe, kFreeLow = 0x0e, kNodes = 3, kNode0 = 1,
                        kNode1 = 2, kCpu0 = 1;
  static const uint64_t kCoreWords[] = {0x03, 0x0c, 0x30, 0xc0};
  static const uint32_t kDistances[] = {10, 21, 21, 10};
#define SET(word) \
  { &(word), 1 }
  const topolet_set cores[] = {SET(kCoreWords[0]), SET(kCoreWords[1]), SET(kCoreWords[2]), SET(kCoreWords[3])};
  const topolet_set packages[] = {SET(kAll)};
  topolet_pu pus[kCpus];
  for (uint32_t i = 0; i < kCpus; ++i) {
    const topolet_pu pu = {i, i / 2, TOPOLET_NONE, TOPOLET_NONE, i / 4, 0};
    pus[i] = pu;
  }
  const topolet_node nodes[] = {{.os_index = 0, .cpus = SET(kLow), .memory_bytes = 1 << 30},
                                {.os_index = 1, .cpus = SET(kHigh), .memory_bytes = 1 << 30}};
  const topolet_domain domains[] = {{TOPOLET_DOMAIN_NODE, 0, SET(kLow), SET(kNode0)},
                                    {TOPOLET_DOMAIN_NODE, 0, SET(kHigh), SET(kNode1)},
                                    {TOPOLET_DOMAIN_PACKAGE, 0, SET(kAll), SET(kNodes)}};
  const topolet_topology machine = {.struct_size = sizeof(machine),
                                    .distances_known = 1,
                                    .pus = pus,
                                    .pu_count = kCpus,
                                    .pu_stride = sizeof(topolet_pu),
                                    .nodes = nodes,
                                    .node_count = 2,
                                    .node_stride = sizeof(topolet_node),
                                    .domains = domains,
                                    .domain_count = 3,
                                    .domain_stride = sizeof(topolet_domain),
                                    .cores = cores,
                                    .core_count = 4,
                                    .packages = packages,
                                    .package_count = 1,
                                    .distances = kDistances,
                                    .online = SET(kAll),
                                    .allowed = SET(kAll)};
  const topolet_demand demand = {.struct_size = sizeof(demand), .cpu_request_milli = 2000, .cpu_limit_milli = 2000};
  const topolet_workload work = {.struct_size = sizeof(work),
                                 .pod_uid = TOPOLET_STR("uid-1"),
                                 .pod_name = TOPOLET_STR("web"),
                                 .container_name = TOPOLET_STR("web"),
                                 .demand = &demand};
  const topolet_ledger_entry entries[] = {{.pod_uid = TOPOLET_STR("uid-2"),
                                           .container_name = TOPOLET_STR("batch"),
                                           .mode = TOPOLET_MODE_EXCLUSIVE,
                                           .cpus = SET(kCpu0),
                                           .demand = &demand}};
  const topolet_ledger ledger = {.struct_size = sizeof(ledger),
                                 .allowed = SET(kAll),
                                 .pool = SET(kPool),
                                 .exclusive = SET(kCpu0),
                                 .entries = entries,
                                 .entry_count = 1,
                                 .entry_stride = sizeof(topolet_ledger_entry)};
  const topolet_candidate candidates[kCandidates] = {
      {TOPOLET_DOMAIN_NODE, 1, SET(kNode0), SET(kLow), SET(kFreeLow), SET(kFreeLow), 10, 0},
      {TOPOLET_DOMAIN_NODE, 1, SET(kNode1), SET(kHigh), SET(kHigh), SET(kHigh), 10, 0},
      {TOPOLET_DOMAIN_PACKAGE, 1, SET(kNodes), SET(kAll), SET(kPool), SET(kPool), 62, 0}};
  const topolet_request request = {.struct_size = sizeof(request),
                                   .exclusive = 1,
                                   .exclusive_cpus = 2,
                                   .candidate_count = kCandidates,
                                   .candidates = candidates,
                                   .candidate_stride = sizeof(topolet_candidate),
                                   .workload = &work,
                                   .topology = &machine,
                                   .ledger = &ledger};
  ask(instance, &request);
}

int main(int argc, char** argv) {
  CHECK(argc >= 2, "usage: sdk_frozen_host PLUGIN.so [WORDS]");
  wanted = argc > 2 ? argv[2] : NULL;
  const topolet_host host = {sizeof(host),        TOPOLET_ABI_MINOR,     NULL,
                             get_host_capability, TOPOLET_STR("frozen"), TOPOLET_STR("1")};
  const topolet_instance* instance = create(load(argv[1]), &host);
  ask_about_two_nodes(instance);
  instance->destroy(instance);
  CHECK(wanted == NULL || found, "nothing it said has '%s' in it", wanted);
  return 0;
}
