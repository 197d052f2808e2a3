/* Writes to what it is shown, as if there were no const: in the calls that its option "in" names, to what its option
 * "to" names. It says nothing else; in pick() it tells apart whether CPUs are chosen already ("review"). */
#include <topolet/adjust.h>
#include <topolet/events.h>
#include <topolet/tick.h>

#include "entry.h"

static char g_in[32];
static char g_to[32];
static const topolet_host* g_host;

static int is(const char* option, const char* value) { return strcmp(option, value) == 0; }
static int writes_in(const char* call) { return is(g_in, call) || is(g_in, "every-call"); }
static int writes_to(const char* what) { return is(g_to, what) || is(g_to, "everything"); }

static void spoil(const void* at, size_t size) {
  unsigned char* bytes = (unsigned char*)(uintptr_t)at;
  size_t i = 0;
  for (; i < size; ++i) bytes[i] = (unsigned char)(0x5a + 37 * i);
}

static void spoil_set(topolet_set set) {
  if (writes_to("words")) spoil(set.words, set.count * sizeof(*set.words));
}
static void spoil_str(topolet_str text) {
  if (writes_to("strings")) spoil(text.ptr, text.len);
}
static void spoil_strs(topolet_strs strs) {
  size_t i = 0;
  for (; i < strs.count; ++i) spoil_str(strs.items[i]);
  if (writes_to("lists")) spoil(strs.items, strs.count * sizeof(*strs.items));
}
static void spoil_kvs(topolet_kvs kvs) {
  size_t i = 0;
  for (; i < kvs.count; ++i) {
    spoil_str(kvs.items[i].key);
    spoil_str(kvs.items[i].value);
  }
  if (writes_to("lists")) spoil(kvs.items, kvs.count * sizeof(*kvs.items));
}

/* Spoils a demand unless it was the last one: several entries share it, and once spoiled it cannot be read any more. */
static void spoil_demand(const topolet_demand* demand, const topolet_demand* last) {
  uint32_t i = 0;
  if (demand == NULL || demand == last) return;
  for (; i < demand->huge_page_limit_count; ++i) {
    spoil_str(
        TOPOLET_AT(topolet_huge_page_limit, demand->huge_page_limits, demand->huge_page_limit_stride, i)->page_size);
  }
  if (writes_to("demand")) {
    spoil(demand->huge_page_limits, (size_t)demand->huge_page_limit_count * demand->huge_page_limit_stride);
    spoil(demand, sizeof(*demand));
  }
}

static void spoil_workload(const topolet_workload* workload) {
  const topolet_str texts[] = {workload->pod_uid,    workload->pod_name,       workload->pod_namespace,
                               workload->sandbox_id, workload->container_name, workload->runtime_handler};
  size_t i = 0;
  for (; i < sizeof(texts) / sizeof(*texts); ++i) spoil_str(texts[i]);
  spoil_demand(workload->demand, NULL);
  spoil_demand(workload->pod_demand, workload->demand);
  spoil_set(workload->kubelet_cpus);
  spoil_set(workload->kubelet_mems);
  spoil_set(workload->pod_nodes);
  spoil_strs(workload->devices);
  spoil_strs(workload->cdi_devices);
  spoil_strs(workload->used_devices);
  spoil_kvs(workload->env);
  spoil_kvs(workload->pod_labels);
  spoil_kvs(workload->pod_annotations);
  spoil_kvs(workload->annotations);
  spoil_kvs(workload->settings);
  if (writes_to("workload")) spoil(workload, sizeof(*workload));
}

static void zero_words(topolet_set set) { memset((void*)(uintptr_t)set.words, 0, set.count * sizeof(*set.words)); }

static void spoil_entry(const topolet_ledger_entry* entry, const topolet_demand* last_demand) {
  if (is(g_to, "entry-cpus")) zero_words(entry->cpus);
  spoil_str(entry->pod_uid);
  spoil_str(entry->container_name);
  spoil_set(entry->cpus);
  spoil_set(entry->withheld);
  spoil_set(entry->mems);
  spoil_demand(entry->demand, last_demand);
  spoil_kvs(entry->settings);
  spoil_strs(entry->used_devices);
}

static void spoil_ledger(const topolet_ledger* ledger) {
  const topolet_demand* last_demand = NULL;
  uint32_t i = 0;
  for (; i < ledger->entry_count; ++i) {
    const topolet_ledger_entry* entry = TOPOLET_AT(topolet_ledger_entry, ledger->entries, ledger->entry_stride, i);
    spoil_entry(entry, last_demand);
    last_demand = entry->demand;
  }
  spoil_set(ledger->allowed);
  spoil_set(ledger->reserved_cpus);
  spoil_set(ledger->pool);
  spoil_set(ledger->exclusive);
  spoil_set(ledger->withheld);
  if (writes_to("ledger")) {
    spoil(ledger->entries, (size_t)ledger->entry_count * ledger->entry_stride);
    spoil(ledger->node_demands, (size_t)ledger->node_demand_count * ledger->node_demand_stride);
    spoil(ledger, sizeof(*ledger));
  }
}

static void spoil_topology(const topolet_topology* topology) {
  if (is(g_to, "topology")) spoil(topology, sizeof(*topology));
  if (is(g_to, "topology-words")) spoil(topology->allowed.words, 1);
}

static void spoil_request(const topolet_request* request) {
  uint32_t i = 0;
  for (; i < request->candidate_count; ++i) {
    const topolet_candidate* candidate =
        TOPOLET_AT(topolet_candidate, request->candidates, request->candidate_stride, i);
    spoil_set(candidate->nodes);
    spoil_set(candidate->cpus);
    spoil_set(candidate->usable);
  }
  spoil_topology(request->topology);
  spoil_workload(request->workload);
  spoil_ledger(request->ledger);
  if (writes_to("candidates")) spoil(request->candidates, (size_t)request->candidate_count * request->candidate_stride);
  if (writes_to("request")) spoil(request, sizeof(*request));
}

/* Spoils the arguments and then `sink`; everything that they point to is spoiled before. */
static int32_t finish(const void* arguments, size_t size, const void* sink, size_t sink_size) {
  if (is(g_to, "host")) spoil(g_host, sizeof(*g_host));
  if (writes_to("arguments")) spoil(arguments, size);
  if (is(g_to, "sink")) spoil(sink, sink_size);
  return TOPOLET_OK;
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance;
  if (!writes_in("score")) return TOPOLET_OK;
  spoil_request(request);
  return finish(request, 0, sink, sizeof(*sink));
}

static int32_t propose(const topolet_instance* instance, const topolet_request* request,
                       const topolet_propose_sink* sink) {
  (void)instance;
  if (!writes_in("propose")) return TOPOLET_OK;
  spoil_request(request);
  return finish(request, 0, sink, sizeof(*sink));
}

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  (void)instance;
  if (!writes_in(request->chosen.count == 0 ? "pick" : "review")) return TOPOLET_OK;
  spoil_set(request->usable);
  spoil_set(request->chosen);
  spoil_request(request->request);
  return finish(request, sizeof(*request), sink, sizeof(*sink));
}

static int32_t adjust(const topolet_instance* instance, const topolet_adjust_request* request,
                      const topolet_adjust_sink* sink) {
  (void)instance;
  if (!writes_in("adjust")) return TOPOLET_OK;
  spoil_set(request->cpus);
  spoil_set(request->withheld);
  spoil_set(request->memory);
  spoil_request(request->request);
  return finish(request, sizeof(*request), sink, sizeof(*sink));
}

static int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink) {
  (void)instance;
  if (!writes_in("notify")) return TOPOLET_OK;
  spoil_set(event->cpus);
  spoil_set(event->withheld);
  spoil_set(event->mems);
  spoil_topology(event->topology);
  spoil_workload(event->workload);
  return finish(event, sizeof(*event), sink, sizeof(*sink));
}

static int32_t tick(const topolet_instance* instance, const topolet_tick_request* request,
                    const topolet_tick_sink* sink) {
  (void)instance;
  if (!writes_in("tick")) return TOPOLET_OK;
  spoil_topology(request->topology);
  spoil_ledger(request->ledger);
  return finish(request, sizeof(*request), sink, sizeof(*sink));
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score};
  static const topolet_propose kPropose = {sizeof(topolet_propose), 0, propose};
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick};
  static const topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, adjust};
  static const topolet_events kEvents = {sizeof(topolet_events), 0, notify};
  static const topolet_tick kTick = {sizeof(topolet_tick), 1000, tick};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_PROPOSE_ID)) return &kPropose;
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kAdjust;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  if (topolet_str_is(id, TOPOLET_TICK_ID)) return &kTick;
  return NULL;
}

static void destroy(const topolet_instance* instance) { (void)instance; }

static void copy_option(char* to, size_t size, topolet_str value) {
  memset(to, 0, size);
  memcpy(to, value.ptr, value.len < size ? value.len : size - 1);
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy};
  copy_option(g_in, sizeof(g_in), request->options.items[0].value);
  copy_option(g_to, sizeof(g_to), request->options.items[1].value);
  g_host = request->host;
  *instance = &kInstance;
  if (!is(g_in, "create")) return TOPOLET_OK;
  spoil_kvs(request->options);
  spoil_kvs(request->configuration);
  return finish(request, sizeof(*request), error, sizeof(*error));
}

static const topolet_option kOptions[] = {{TOPOLET_STR("in"),
                                           TOPOLET_OPTION_STRING,
                                           0,
                                           TOPOLET_STR("score"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("The call that writes.")},
                                          {TOPOLET_STR("to"),
                                           TOPOLET_OPTION_STRING,
                                           0,
                                           TOPOLET_STR("everything"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("What it writes to.")}};

ENTRY_WITH_OPTIONS("scribbles", kOptions, 2, create);
