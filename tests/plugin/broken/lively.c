/* Has adjust, events and tick, and does there what its option names: "good" things or a wrong one. */
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/state.h>
#include <topolet/tick.h>

#include <stdio.h>
#include <string.h>

#include "entry.h"

static topolet_str g_answer;
static char g_text[32];
static const topolet_host* g_host;
static const topolet_state* g_state;

static const topolet_str kReason = TOPOLET_STR("because");
static const topolet_str kName = TOPOLET_STR("NAME");
static const topolet_str kValue = TOPOLET_STR("value");

static int answers(const char* text) { return topolet_str_is(g_answer, text); }
static int32_t expect(int as_expected) { return as_expected ? TOPOLET_OK : 43; }

/* "#memory MODE NODES FLAGS", where NODES are bits, "#scheduler CLASS NICE" or "#io CLASS PRIORITY". */
static void set_as_told(const topolet_adjust_sink* sink) {
  char told[64] = "";
  int first = 0;
  int second = 0;
  unsigned flags = 0;
  unsigned long long nodes = 0;
  if (g_answer.len >= sizeof(told)) return;
  memcpy(told, g_answer.ptr, g_answer.len);
  if (sscanf(told, "#memory %d %llu %u", &first, &nodes, &flags) == 3) {
    const uint64_t word = nodes;
    const topolet_set set = {nodes == 0 ? NULL : &word, nodes == 0 ? 0 : 1};
    sink->memory_policy(sink, first, set, flags);
  }
  if (sscanf(told, "#scheduler %d %d", &first, &second) == 2) sink->scheduler(sink, first, second);
  if (sscanf(told, "#io %d %d", &first, &second) == 2) sink->io_priority(sink, first, second);
}

static int32_t adjust(const topolet_instance* instance, const topolet_adjust_request* request,
                      const topolet_adjust_sink* sink) {
  static const uint64_t kWord = 1;
  static const topolet_str kBad = TOPOLET_STR("A=B");
  static const topolet_str kAddress = TOPOLET_STR("0000:65:00.0");
  static const topolet_str kUnplugged = TOPOLET_STR("0000:65:00.1");
  static const topolet_str kOther = TOPOLET_STR("other");
  static const topolet_str kNotUtf8 = TOPOLET_STR("\xff");
  static const topolet_str kPath = TOPOLET_STR("PATH");
  static const topolet_str kMemoryHigh = TOPOLET_STR("memory.high");
  static const topolet_str kBytes = TOPOLET_STR("4096");
  static const topolet_str kPreload = TOPOLET_STR("LD_PRELOAD");
  static char g_long[TOPOLET_ADJUST_MAX_VALUE + 1];
  const topolet_set zero = {&kWord, 1};
  (void)instance;
  if (answers("good")) {
    sink->mems(sink, request->memory);
    sink->env(sink, kName, kValue);
    sink->annotation(sink, kName, kValue);
    return sink->reason(sink, kReason);
  }
  if (answers("mems-twice")) {
    sink->mems(sink, zero);
    return expect(sink->mems(sink, zero) == TOPOLET_DUPLICATE);
  }
  if (answers("env-twice")) {
    sink->env(sink, kName, kValue);
    return expect(sink->env(sink, kName, kValue) == TOPOLET_DUPLICATE);
  }
  if (answers("env-bad-name")) return expect(sink->env(sink, kBad, kValue) == TOPOLET_INVALID);
  if (answers("env-no-name")) return expect(sink->env(sink, (topolet_str){NULL, 0}, kValue) == TOPOLET_INVALID);
  if (answers("too-long")) {
    return expect(sink->annotation(sink, kName, (topolet_str){g_long, sizeof(g_long)}) == TOPOLET_OUT_OF_RANGE);
  }
  if (answers("uses-a-device")) {
    sink->uses(sink, kName);
    return expect(sink->uses(sink, kAddress) == TOPOLET_OK);
  }
  if (answers("uses-unplugged")) {
    if (sink->uses(sink, kUnplugged) != TOPOLET_UNKNOWN || sink->uses(sink, kUnplugged) != TOPOLET_UNKNOWN) return 43;
    return expect(sink->uses(sink, kName) == TOPOLET_OK);
  }
  if (answers("tags")) {
    sink->tag(sink, kName, kValue);
    return expect(sink->tag(sink, kOther, (topolet_str){NULL, 0}) == TOPOLET_OK);
  }
  if (answers("tag-twice")) {
    sink->tag(sink, kName, kValue);
    return expect(sink->tag(sink, kName, kValue) == TOPOLET_DUPLICATE);
  }
  memset(g_long, 'x', sizeof(g_long));
  if (answers("tag-no-key")) return expect(sink->tag(sink, (topolet_str){"", 0}, kValue) == TOPOLET_INVALID);
  if (answers("tag-long-key"))
    return expect(sink->tag(sink, (topolet_str){g_long, 250}, (topolet_str){NULL, 0}) == TOPOLET_OUT_OF_RANGE);
  if (answers("tag-long-value"))
    return expect(sink->tag(sink, kName, (topolet_str){g_long, 257}) == TOPOLET_OUT_OF_RANGE);
  if (answers("tag-full-length"))
    return expect(sink->tag(sink, (topolet_str){g_long, 249}, (topolet_str){g_long, 256}) == TOPOLET_OK);
  if (answers("tag-not-utf8")) return expect(sink->tag(sink, kName, kNotUtf8) == TOPOLET_INVALID);
  if (answers("tags-too-many")) {
    char key = 'A';
    for (; key < 'A' + TOPOLET_ADJUST_MAX_TAGS; ++key) sink->tag(sink, (topolet_str){&key, 1}, kValue);
    return expect(sink->tag(sink, kName, kValue) == TOPOLET_OUT_OF_RANGE);
  }
  if (answers("files")) {
    sink->unified(sink, kMemoryHigh, kBytes);
    return expect(sink->rdt_class(sink, kValue) == TOPOLET_OK);
  }
  if (answers("file-unsupported")) return expect(sink->unified(sink, kOther, kNotUtf8) == TOPOLET_UNSUPPORTED);
  if (answers("file-twice")) {
    sink->unified(sink, kMemoryHigh, kBytes);
    return expect(sink->unified(sink, kMemoryHigh, kBytes) == TOPOLET_DUPLICATE);
  }
  if (answers("class-twice")) {
    sink->rdt_class(sink, kValue);
    return expect(sink->rdt_class(sink, kValue) == TOPOLET_DUPLICATE);
  }
  if (answers("class-unsupported")) return expect(sink->rdt_class(sink, kName) == TOPOLET_UNSUPPORTED);
  if (answers("class-unnamed")) return expect(sink->rdt_class(sink, (topolet_str){NULL, 0}) == TOPOLET_INVALID);
  if (answers("class-unprintable")) return expect(sink->rdt_class(sink, kNotUtf8) == TOPOLET_INVALID);
  if (g_answer.len > 0 && g_answer.ptr[0] == '=')
    sink->unified(sink, kMemoryHigh, (topolet_str){g_answer.ptr + 1, g_answer.len - 1});
  if (g_answer.len > 0 && g_answer.ptr[0] == '#') set_as_told(sink);
  if (answers("settings")) {
    sink->memory_policy(sink, TOPOLET_MEMORY_BIND, zero, TOPOLET_MEMORY_STATIC_NODES | TOPOLET_MEMORY_NUMA_BALANCING);
    sink->scheduler(sink, TOPOLET_SCHEDULER_BATCH, -3);
    return expect(sink->io_priority(sink, TOPOLET_IO_BEST_EFFORT, 6) == TOPOLET_OK);
  }
  if (answers("settings-unsupported")) {
    return expect(sink->memory_policy(sink, TOPOLET_MEMORY_BIND, zero, 0) == TOPOLET_UNSUPPORTED &&
                  sink->scheduler(sink, TOPOLET_SCHEDULER_IDLE, 0) == TOPOLET_UNSUPPORTED &&
                  sink->io_priority(sink, TOPOLET_IO_IDLE, 0) == TOPOLET_UNSUPPORTED);
  }
  if (answers("settings-of-a-later-minor")) {
    return expect(sink->memory_policy(sink, 0, zero, 0) == TOPOLET_UNSUPPORTED &&
                  sink->memory_policy(sink, 7, zero, 0) == TOPOLET_UNSUPPORTED &&
                  sink->memory_policy(sink, TOPOLET_MEMORY_BIND, zero, 8) == TOPOLET_UNSUPPORTED &&
                  sink->scheduler(sink, 1, 0) == TOPOLET_UNSUPPORTED &&
                  sink->io_priority(sink, 0, 0) == TOPOLET_UNSUPPORTED);
  }
  if (answers("memory-policy-twice")) {
    sink->memory_policy(sink, TOPOLET_MEMORY_BIND, zero, 0);
    return expect(sink->memory_policy(sink, TOPOLET_MEMORY_BIND, zero, 0) == TOPOLET_DUPLICATE);
  }
  if (answers("scheduler-twice")) {
    sink->scheduler(sink, TOPOLET_SCHEDULER_IDLE, 0);
    return expect(sink->scheduler(sink, TOPOLET_SCHEDULER_OTHER, 1) == TOPOLET_DUPLICATE);
  }
  if (answers("io-priority-twice")) {
    sink->io_priority(sink, TOPOLET_IO_IDLE, 0);
    return expect(sink->io_priority(sink, TOPOLET_IO_IDLE, 0) == TOPOLET_DUPLICATE);
  }
  if (answers("memory-policy-null"))
    return expect(sink->memory_policy(sink, TOPOLET_MEMORY_BIND, (topolet_set){NULL, 1}, 0) == TOPOLET_INVALID);
  if (answers("search-paths")) {
    sink->env(sink, kPath, kValue);
    sink->env(sink, kName, kValue);
    return expect(sink->env(sink, kPreload, kValue) == TOPOLET_OK);
  }
  if (g_answer.len > 0 && g_answer.ptr[0] == '+')
    sink->annotation(sink, (topolet_str){g_answer.ptr + 1, g_answer.len - 1}, kValue);
  if (answers("uses-it-twice")) {
    sink->uses(sink, kName);
    return expect(sink->uses(sink, kName) == TOPOLET_DUPLICATE);
  }
  if (answers("uses-no-name")) return expect(sink->uses(sink, (topolet_str){"", 0}) == TOPOLET_INVALID);
  if (answers("too-many")) {
    char name[3] = "AA";
    int i = 0;
    for (; i < TOPOLET_ADJUST_MAX_FIELDS; ++i) {
      name[0] = (char)('A' + i / 16);
      name[1] = (char)('A' + i % 16);
      sink->env(sink, (topolet_str){name, 2}, kValue);
    }
    return expect(sink->annotation(sink, kName, kValue) == TOPOLET_OUT_OF_RANGE);
  }
  if (answers("writes-state")) return expect(g_state->set(g_host, kName, kValue) == TOPOLET_FORBIDDEN);
  if (answers("fails")) {
    sink->error(sink, kReason);
    return TOPOLET_FAILED;
  }
  return TOPOLET_OK;
}

/* Keeps the kind of the last event of each container, and of the last event all else that it says. */
static int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink) {
  char kind = (char)('0' + event->kind);
  (void)instance;
  if (answers("stuck")) {
    while (sink->error(sink, kReason) != TOPOLET_LATE) {
    }
    return expect(g_state->set(g_host, kName, kValue) == TOPOLET_LATE);
  }
  if (answers("fails")) {
    sink->error(sink, kReason);
    return TOPOLET_FAILED;
  }
  if (event->workload->env.count != 0 || event->reserved != 0) return 43;
  if (answers("all-of-it")) {
    char all[128];
    const int size = snprintf(all, sizeof(all), "%u %.*s %d %u %.*s", (unsigned)event->sequence,
                              (int)event->container_id.len, event->container_id.ptr, (int)event->exit_code,
                              (unsigned)event->flags, (int)event->reason.len, event->reason.ptr);
    g_state->set(g_host, kName, (topolet_str){all, (size_t)size});
  }
  return g_state->set(g_host, event->workload->container_name, (topolet_str){&kind, 1});
}

static int32_t tick(const topolet_instance* instance, const topolet_tick_request* request,
                    const topolet_tick_sink* sink) {
  (void)instance;
  if (answers("tick-stuck")) {
    while (sink->error(sink, kReason) != TOPOLET_LATE) {
    }
    return TOPOLET_OK;
  }
  if (answers("tick-unknown") && (sink->replace(sink, request->ledger->entry_count, 0, kReason) != TOPOLET_UNKNOWN ||
                                  sink->replace(sink, UINT32_MAX, 0, kReason) != TOPOLET_UNKNOWN)) {
    return 43;
  }
  if (answers("tick-foreign")) return expect(sink->replace(sink, 0, 0, kReason) == TOPOLET_UNKNOWN);
  if (answers("tick-no-reason") && sink->replace(sink, 0, 0, (topolet_str){NULL, 1}) != TOPOLET_INVALID) return 43;
  if (answers("tick-flags")) return expect(sink->replace(sink, 0, 4, kReason) == TOPOLET_UNSUPPORTED);
  if (answers("tick-now")) return sink->replace(sink, 0, TOPOLET_REPLACE_NOW, kReason);
  if (request->ledger->entry_count > 0 && sink->replace(sink, 0, TOPOLET_REPLACE_OTHER_NODES, kReason) != TOPOLET_OK) {
    return 43;
  }
  return answers("tick-twice") ? expect(sink->replace(sink, 0, 0, kReason) == TOPOLET_DUPLICATE) : TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, adjust};
  static const topolet_events kEvents = {sizeof(topolet_events), 0, notify};
  static const topolet_tick kTick = {sizeof(topolet_tick), 1000, tick};
  static const topolet_tick kHasty = {sizeof(topolet_tick), 1, tick};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kAdjust;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  if (topolet_str_is(id, TOPOLET_TICK_ID)) return answers("hasty") ? &kHasty : &kTick;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  static const topolet_str kId = TOPOLET_STR(TOPOLET_STATE_ID);
  const topolet_str answer = request->options.items[0].value;
  (void)error;
  g_answer.len = answer.len < sizeof(g_text) ? answer.len : sizeof(g_text);
  memcpy(g_text, answer.ptr, g_answer.len);
  g_answer.ptr = g_text;
  g_host = request->host;
  g_state = (const topolet_state*)request->host->get_capability(request->host, kId);
  if (g_state == NULL && !answers("stateless")) return TOPOLET_FAILED;
  *instance = &kInstance;
  return g_state == NULL ? TOPOLET_OK : g_state->set(g_host, kName, kValue);
}

static const topolet_option kOptions[] = {
    {TOPOLET_STR("answer"), TOPOLET_OPTION_STRING, 0, {NULL, 0}, {NULL, 0}, 0, 0, TOPOLET_STR("What it does.")}};

ENTRY_WITH_OPTIONS("lively", kOptions, 1, create);
