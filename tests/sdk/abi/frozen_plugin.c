/* A plugin built with the frozen headers: tells today's host in words what it read of a request. */
#include <stdarg.h>
#include <stdio.h>
#include <topolet/abi.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/score.h>

static char greeting[32];

static topolet_str words(char* buffer, size_t size, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(buffer, size, format, arguments); /* NOLINT: nobody has vsnprintf_s */
  va_end(arguments);
  const topolet_str text = {buffer, (size_t)length < size ? (size_t)length : size - 1};
  return text;
}

static int lowest(topolet_set set) {
  for (uint32_t i = 0; i < 64 * (uint32_t)set.count; ++i) {
    if (topolet_set_has(set, i)) return (int)i;
  }
  return -1;
}

static uint32_t count(topolet_set set) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < 64 * (uint32_t)set.count; ++i) found += (uint32_t)topolet_set_has(set, i);
  return found;
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance;
  const topolet_topology* machine = request->topology;
  const topolet_ledger* ledger = request->ledger;
  const topolet_workload* work = request->workload;
  for (uint32_t i = 0; i < request->candidate_count; ++i) {
    const topolet_candidate* candidate =
        TOPOLET_AT(topolet_candidate, request->candidates, request->candidate_stride, i);
    const topolet_pu* last_pu = TOPOLET_AT(topolet_pu, machine->pus, machine->pu_stride, machine->pu_count - 1);
    const topolet_node* node = TOPOLET_AT(topolet_node, machine->nodes, machine->node_stride, i % machine->node_count);
    char buffer[512];
    const topolet_str reason = words(
        buffer, sizeof(buffer),
        "%s %u exclusive=%u candidate %u of kind %d from cpu %d free %u distance %u; pu %u core %u node %u; node %u "
        "bytes %lld far %u; %.*s attempt %u milli %lld; allowed %u entries %u cpu %d",
        greeting, request->exclusive_cpus, request->exclusive, i, candidate->kind, lowest(candidate->cpus),
        count(candidate->usable), candidate->distance, last_pu->os_index, last_pu->core, last_pu->node, node->os_index,
        (long long)node->memory_bytes, machine->distances[1], (int)work->container_name.len, work->container_name.ptr,
        work->attempt, (long long)work->demand->cpu_request_milli, count(ledger->allowed), ledger->entry_count,
        ledger->entry_count == 0
            ? -1
            : lowest(TOPOLET_AT(topolet_ledger_entry, ledger->entries, ledger->entry_stride, 0)->cpus));
    const int32_t said =
        sink->set(sink, i, i == 2 ? TOPOLET_VERDICT_REJECT : TOPOLET_VERDICT_SCORE, 10 * (int32_t)i, reason);
    if (said != TOPOLET_OK) return TOPOLET_FAILED;
  }
  return TOPOLET_OK;
}

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  (void)instance;
  char buffer[128];
  const uint32_t first = (uint32_t)lowest(request->usable);
  const uint32_t order[] = {first + 1, first};
  sink->reason(sink, words(buffer, sizeof(buffer), "candidate %u, %u usable, %u candidates", request->candidate,
                           count(request->usable), request->request->candidate_count));
  sink->narrow(sink, request->usable);
  return sink->order(sink, order, 2);
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  (void)instance;
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick};
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  static const topolet_str kLogId = TOPOLET_STR(TOPOLET_LOG_ID);
  static const topolet_str kNoLog = TOPOLET_STR("the host has no log");
  const topolet_log* log = (const topolet_log*)request->host->get_capability(request->host, kLogId);
  if (log == NULL || !TOPOLET_HAS(log, write)) {
    error->set(error, kNoLog);
    return TOPOLET_FAILED;
  }
  if (request->options.count != 1) return TOPOLET_FAILED;
  const topolet_str value = request->options.items[0].value;
  words(greeting, sizeof(greeting), "%.*s", (int)value.len, value.ptr);
  log->write(request->host, TOPOLET_LOG_INFO, value);
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_option kOptions[] = {{
    .name = TOPOLET_STR("greeting"),
    .type = TOPOLET_OPTION_STRING,
    .default_value = TOPOLET_STR("hello"),
    .help = TOPOLET_STR("What every reason begins with."),
}};

TOPOLET_EXPORT const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = sizeof(topolet_plugin_entry),
    .abi_minor = TOPOLET_ABI_MINOR,
    .abi_draft = TOPOLET_ABI_DRAFT,
    .id = TOPOLET_STR("frozen"),
    .version = TOPOLET_STR("1"),
    .options = kOptions,
    .option_count = 1,
    .option_stride = sizeof(topolet_option),
    .create = create,
};
