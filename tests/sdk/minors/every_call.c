/* A plugin that has every capability and tells all that it reads, line by line, in the host's log. Built for this minor
 * version of the ABI and for a later one, in which each struct has one more field. */
#include <stdarg.h>
#include <stdio.h>
#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/codes.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/pick.h>
#include <topolet/propose.h>
#include <topolet/reads.h>
#include <topolet/score.h>
#include <topolet/state.h>
#include <topolet/tick.h>
#include <topolet/wake.h>

/* Where the struct has the later field, it tells whether the host's has it, too: "later topolet_pu: 0". */
#ifdef TOPOLET_GROWN
#define ITS_LATER , 4711
#define LATER(type, ptr) tell("later " #type ": %d", TOPOLET_HAS(ptr, later))
#define LATER_AT(type, stride) tell("later " #type ": %d", TOPOLET_STRIDE_HAS(stride, type, later))
#else
#define ITS_LATER
#define LATER(type, ptr) (void)(ptr)
#define LATER_AT(type, stride) (void)(stride)
#endif

/* What neither minor knows. */
enum { LATER_VALUE = 4711, LATER_FLAG = 1 << 30 };

static const topolet_host* host;
static const topolet_log* host_log;
static const topolet_state* host_state;
static const topolet_wake* host_wake;

static topolet_str text_of(const char* text) {
  const topolet_str view = {text, strlen(text)};
  return view;
}

static void tell(const char* format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments); /* NOLINT: nobody has vsnprintf_s */
  va_end(arguments);
  host_log->write(host, TOPOLET_LOG_INFO, text_of(line));
}

static void tell_set(const char* name, topolet_set set) {
  char indices[512] = "";
  int length = 0;
  for (uint32_t i = 0; i < 64 * (uint32_t)set.count; ++i) {
    if (!topolet_set_has(set, i)) continue;
    length += snprintf(indices + length, sizeof(indices) - (size_t)length, " %u", i); /* NOLINT */
  }
  tell("  %s:%s (%zu words)", name, indices, set.count);
}

static void tell_text(const char* name, topolet_str text) { tell("  %s: '%.*s'", name, (int)text.len, text.ptr); }

static void tell_texts(const char* name, topolet_strs texts) {
  for (size_t i = 0; i < texts.count; ++i) tell_text(name, texts.items[i]);
}

static void tell_pairs(const char* name, topolet_kvs pairs) {
  for (size_t i = 0; i < pairs.count; ++i) {
    const topolet_kv pair = pairs.items[i];
    tell("  %s: '%.*s' = '%.*s'", name, (int)pair.key.len, pair.key.ptr, (int)pair.value.len, pair.value.ptr);
  }
}

static void tell_node(const topolet_node* node) {
  tell("node %u: memory only %u, %lld bytes, %u huge pages", node->os_index, node->memory_only,
       (long long)node->memory_bytes, node->huge_pages_count);
  tell_set("CPUs", node->cpus);
  tell_text("subtype", node->subtype);
  LATER_AT(topolet_huge_pages, node->huge_pages_stride);
  for (uint32_t i = 0; i < node->huge_pages_count; ++i) {
    const topolet_huge_pages* pages = TOPOLET_AT(topolet_huge_pages, node->huge_pages, node->huge_pages_stride, i);
    tell("  %lld of %lld bytes", (long long)pages->count, (long long)pages->page_bytes);
  }
}

static void tell_parts(const topolet_topology* machine) {
  LATER_AT(topolet_pu, machine->pu_stride);
  for (uint32_t i = 0; i < machine->pu_count; ++i) {
    const topolet_pu* pu = TOPOLET_AT(topolet_pu, machine->pus, machine->pu_stride, i);
    tell("PU %u: core %u, l3 %u, die %u, node %u, package %u", pu->os_index, pu->core, pu->l3, pu->die, pu->node,
         pu->package);
  }
  LATER_AT(topolet_node, machine->node_stride);
  for (uint32_t i = 0; i < machine->node_count; ++i)
    tell_node(TOPOLET_AT(topolet_node, machine->nodes, machine->node_stride, i));
  LATER_AT(topolet_domain, machine->domain_stride);
  for (uint32_t i = 0; i < machine->domain_count; ++i) {
    const topolet_domain* domain = TOPOLET_AT(topolet_domain, machine->domains, machine->domain_stride, i);
    tell("domain of kind %d", domain->kind);
    tell_set("CPUs", domain->cpus);
    tell_set("nodes", domain->nodes);
  }
  LATER_AT(topolet_cpu_kind, machine->cpu_kind_stride);
  for (uint32_t i = 0; i < machine->cpu_kind_count; ++i) {
    const topolet_cpu_kind* kind = TOPOLET_AT(topolet_cpu_kind, machine->cpu_kinds, machine->cpu_kind_stride, i);
    tell("CPU kind of efficiency %u", kind->efficiency);
    tell_set("CPUs", kind->cpus);
  }
  LATER_AT(topolet_cache, machine->cache_stride);
  for (uint32_t i = 0; i < machine->cache_count; ++i) {
    const topolet_cache* cache = TOPOLET_AT(topolet_cache, machine->caches, machine->cache_stride, i);
    tell("cache of level %u and kind %d: %lld bytes", cache->level, cache->kind, (long long)cache->bytes);
    tell_set("CPUs", cache->cpus);
  }
}

static void tell_devices(const topolet_topology* machine) {
  LATER_AT(topolet_pci_bridge, machine->pci_bridge_stride);
  for (uint32_t i = 0; i < machine->pci_bridge_count; ++i) {
    const topolet_pci_bridge* bridge =
        TOPOLET_AT(topolet_pci_bridge, machine->pci_bridges, machine->pci_bridge_stride, i);
    tell("bridge %.*s: parent %u, vendor %x, device %x", (int)bridge->address.len, bridge->address.ptr, bridge->parent,
         bridge->vendor_id, bridge->device_id);
    tell_set("CPUs", bridge->cpus);
    tell_set("nodes", bridge->nodes);
  }
  LATER_AT(topolet_pci_device, machine->pci_device_stride);
  for (uint32_t i = 0; i < machine->pci_device_count; ++i) {
    const topolet_pci_device* device =
        TOPOLET_AT(topolet_pci_device, machine->pci_devices, machine->pci_device_stride, i);
    tell("PCI device %.*s: bridge %u, class %x, vendor %x, device %x", (int)device->address.len, device->address.ptr,
         device->bridge, device->class_id, device->vendor_id, device->device_id);
    tell_set("CPUs", device->cpus);
    tell_set("nodes", device->nodes);
    tell_pairs("info", device->info);
  }
  LATER_AT(topolet_os_device, machine->os_device_stride);
  for (uint32_t i = 0; i < machine->os_device_count; ++i) {
    const topolet_os_device* device = TOPOLET_AT(topolet_os_device, machine->os_devices, machine->os_device_stride, i);
    tell("OS device %.*s: kind %d, PCI device %u", (int)device->name.len, device->name.ptr, device->kind,
         device->pci_device);
    tell_text("subtype", device->subtype);
    tell_set("CPUs", device->cpus);
    tell_set("nodes", device->nodes);
    tell_pairs("info", device->info);
  }
}

static void tell_topology(const topolet_topology* machine) {
  tell("topology of generation %llu, distances known %u", (unsigned long long)machine->generation,
       machine->distances_known);
  LATER(topolet_topology, machine);
  tell_parts(machine);
  tell_devices(machine);
  for (size_t i = 0; i < machine->core_count; ++i) tell_set("core", machine->cores[i]);
  for (size_t i = 0; i < machine->l3_count; ++i) tell_set("l3", machine->l3s[i]);
  for (size_t i = 0; i < machine->die_count; ++i) tell_set("die", machine->dies[i]);
  for (size_t i = 0; i < machine->package_count; ++i) tell_set("package", machine->packages[i]);
  for (size_t i = 0; machine->distances != NULL && i < (size_t)machine->node_count * machine->node_count; ++i)
    tell("  distance %u", machine->distances[i]);
  tell_set("online", machine->online);
  tell_set("allowed", machine->allowed);
  tell_set("isolated", machine->isolated);
}

static void tell_demand(const char* name, const topolet_demand* demand) {
  if (demand == NULL) return;
  tell("%s: CPU %lld to %lld, certainty %d, memory %lld to %lld, estimated %u", name,
       (long long)demand->cpu_request_milli, (long long)demand->cpu_limit_milli, demand->cpu_request_certainty,
       (long long)demand->memory_request_bytes, (long long)demand->memory_limit_bytes,
       demand->memory_request_estimated);
  LATER(topolet_demand, demand);
  LATER_AT(topolet_huge_page_limit, demand->huge_page_limit_stride);
  for (uint32_t i = 0; i < demand->huge_page_limit_count; ++i) {
    const topolet_huge_page_limit* limit =
        TOPOLET_AT(topolet_huge_page_limit, demand->huge_page_limits, demand->huge_page_limit_stride, i);
    tell("  huge pages of %.*s: %lld bytes", (int)limit->page_size.len, limit->page_size.ptr, (long long)limit->bytes);
  }
}

static void tell_workload(const topolet_workload* work) {
  tell("workload: attempt %u, QoS %d", work->attempt, work->qos);
  LATER(topolet_workload, work);
  tell_text("pod's UID", work->pod_uid);
  tell_text("pod", work->pod_name);
  tell_text("namespace", work->pod_namespace);
  tell_text("sandbox", work->sandbox_id);
  tell_text("container", work->container_name);
  tell_text("container's id", work->container_id);
  tell_text("handler", work->runtime_handler);
  tell_demand("demand", work->demand);
  tell_demand("pod's demand", work->pod_demand);
  tell_set("kubelet's CPUs", work->kubelet_cpus);
  tell_set("kubelet's memory nodes", work->kubelet_mems);
  tell_set("pod's nodes", work->pod_nodes);
  tell_texts("device", work->devices);
  tell_texts("CDI device", work->cdi_devices);
  tell_texts("used device", work->used_devices);
  tell_pairs("variable", work->env);
  tell_pairs("pod's label", work->pod_labels);
  tell_pairs("pod's annotation", work->pod_annotations);
  tell_pairs("annotation", work->annotations);
  tell_pairs("setting", work->settings);
  tell_pairs("tag", work->tags);
}

static void tell_entry(const topolet_ledger_entry* entry) {
  tell("entry: attempt %u, QoS %d, mode %d, flags %u", entry->attempt, entry->qos, entry->mode, entry->flags);
  tell_text("pod's UID", entry->pod_uid);
  tell_text("container", entry->container_name);
  tell_text("pod", entry->pod_name);
  tell_text("namespace", entry->pod_namespace);
  tell_text("sandbox", entry->sandbox_id);
  tell_text("container's id", entry->container_id);
  tell_text("handler", entry->runtime_handler);
  tell_set("CPUs", entry->cpus);
  tell_set("withheld", entry->withheld);
  tell_set("memory nodes", entry->mems);
  tell_demand("demand", entry->demand);
  tell_pairs("setting", entry->settings);
  tell_texts("used device", entry->used_devices);
  tell_pairs("pod's label", entry->pod_labels);
  tell_pairs("pod's annotation", entry->pod_annotations);
  tell_pairs("annotation", entry->annotations);
  tell_pairs("tag", entry->tags);
  tell_texts("device", entry->devices);
  tell_texts("CDI device", entry->cdi_devices);
}

static void tell_ledger(const topolet_ledger* ledger) {
  tell("ledger of generation %llu", (unsigned long long)ledger->generation);
  LATER(topolet_ledger, ledger);
  tell_set("allowed", ledger->allowed);
  tell_set("reserved", ledger->reserved_cpus);
  tell_set("pool", ledger->pool);
  tell_set("exclusive", ledger->exclusive);
  tell_set("withheld", ledger->withheld);
  LATER_AT(topolet_ledger_entry, ledger->entry_stride);
  for (uint32_t i = 0; i < ledger->entry_count; ++i)
    tell_entry(TOPOLET_AT(topolet_ledger_entry, ledger->entries, ledger->entry_stride, i));
  LATER_AT(topolet_node_demand, ledger->node_demand_stride);
  for (uint32_t i = 0; i < ledger->node_demand_count; ++i) {
    const topolet_node_demand* demand =
        TOPOLET_AT(topolet_node_demand, ledger->node_demands, ledger->node_demand_stride, i);
    tell("node demand: %u containers, %u exclusive CPUs, CPU %lld, memory %lld", demand->containers,
         demand->exclusive_cpus, (long long)demand->cpu_request_milli, (long long)demand->memory_request_bytes);
  }
}

static void tell_load(const topolet_request* request) {
  const topolet_load* load = request->load;
  if (load == NULL) return;
  LATER(topolet_load, load);
  LATER_AT(topolet_node_load, load->node_stride);
  LATER_AT(topolet_pu_load, load->pu_stride);
  LATER_AT(topolet_entry_load, load->entry_stride);
  for (uint32_t i = 0; load->nodes != NULL && i < request->topology->node_count; ++i) {
    const topolet_node_load* node = TOPOLET_AT(topolet_node_load, load->nodes, load->node_stride, i);
    tell("load of node %u: %lld milli-CPUs, %lld ms ago", i, (long long)node->effective_milli, (long long)node->age_ms);
  }
  for (uint32_t i = 0; load->entries != NULL && i < request->ledger->entry_count; ++i) {
    const topolet_entry_load* entry = TOPOLET_AT(topolet_entry_load, load->entries, load->entry_stride, i);
    tell("load of entry %u: %lld milli-CPUs, %lld ms ago, pressure %d", i, (long long)entry->cpu_milli,
         (long long)entry->age_ms, entry->psi_some_permille);
  }
}

static void tell_request(const topolet_request* request) {
  tell(
      "request: exclusive %u of %u CPUs, occasion %d, mode %d, flags %u, source %d, why shared %d, min shared %u, "
      "largest %u",
      request->exclusive, request->exclusive_cpus, request->occasion, request->mode, request->flags,
      request->cpu_source, request->why_shared, request->min_shared_cpus, request->largest_exclusive_cpus);
  LATER(topolet_request, request);
  tell_set("had CPUs", request->had_cpus);
  tell_set("had withheld", request->had_withheld);
  tell_set("had memory nodes", request->had_mems);
  tell_set("keep", request->keep);
  tell_load(request);
  LATER_AT(topolet_candidate, request->candidate_stride);
  for (uint32_t i = 0; i < request->candidate_count; ++i) {
    const topolet_candidate* candidate =
        TOPOLET_AT(topolet_candidate, request->candidates, request->candidate_stride, i);
    tell("candidate of kind %d, domain %u, distance %u", candidate->kind, candidate->is_domain, candidate->distance);
    tell_set("nodes", candidate->nodes);
    tell_set("CPUs", candidate->cpus);
    tell_set("pool", candidate->pool);
    tell_set("usable", candidate->usable);
  }
  tell_workload(request->workload);
  tell_topology(request->topology);
  tell_ledger(request->ledger);
}

static int32_t score(const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
  (void)instance;
  tell("== score");
  tell_request(request);
  LATER(topolet_score_sink, sink);
  tell("set: %d", sink->set(sink, 0, TOPOLET_VERDICT_SCORE, 42, text_of("fits")));
  tell("code: %d", sink->code(sink, 0, text_of("fits-well")));
  tell("set a later kind: %d", sink->set(sink, 1, LATER_VALUE, 7, text_of("of a later kind")));
  tell("reject: %d", sink->set(sink, 2, TOPOLET_VERDICT_REJECT, 0, text_of("too far")));
  return TOPOLET_OK;
}

static int32_t propose(const topolet_instance* instance, const topolet_request* request,
                       const topolet_propose_sink* sink) {
  static const uint64_t kNode1[] = {2};
  const topolet_set nodes = {kNode1, 1};
  (void)instance;
  tell("== propose for %u candidates", request->candidate_count);
  LATER(topolet_propose_sink, sink);
  tell("nodes: %d", sink->nodes(sink, nodes));
  return TOPOLET_OK;
}

static int32_t pick(const topolet_instance* instance, const topolet_pick_request* request,
                    const topolet_pick_sink* sink) {
  static const uint32_t kOrder[] = {3, 2};
  (void)instance;
  tell("== pick in stage %d: %u of candidate %u", request->stage, request->count, request->candidate);
  LATER(topolet_pick_request, request);
  LATER(topolet_pick_sink, sink);
  tell_set("usable", request->usable);
  tell_set("chosen", request->chosen);
  tell("of %u candidates", request->request->candidate_count);
  tell("narrow: %d", sink->narrow(sink, request->usable));
  tell("at_least: %d", sink->at_least(sink, request->usable, 1));
  tell("order: %d", sink->order(sink, kOrder, 2));
  tell("withhold: %d", sink->withhold(sink, request->usable));
  tell("reason: %d", sink->reason(sink, text_of("near")));
  tell("unmet: %d", sink->unmet(sink, text_of("idle siblings")));
  tell("code: %d", sink->code(sink, text_of("fits-well")));
  tell("replace with a later flag: %d", sink->replace(sink, 0, LATER_FLAG, text_of("with a later flag")));
  tell("replace: %d", sink->replace(sink, 0, TOPOLET_REPLACE_OTHER_NODES, text_of("makes room")));
  if (request->stage == TOPOLET_PICK_REVIEW) tell("reject: %d", sink->reject(sink, text_of("too few")));
  return TOPOLET_OK;
}

static int32_t adjust(const topolet_instance* instance, const topolet_adjust_request* request,
                      const topolet_adjust_sink* sink) {
  (void)instance;
  tell("== adjust: candidate %u, mode %d, asks %d", request->candidate, request->mode, request->asks);
  LATER(topolet_adjust_request, request);
  LATER(topolet_adjust_sink, sink);
  tell_set("CPUs", request->cpus);
  tell_set("withheld", request->withheld);
  tell_set("memory", request->memory);
  tell("of %u candidates", request->request->candidate_count);
  tell("mems: %d", sink->mems(sink, request->memory));
  tell("env: %d", sink->env(sink, text_of("OMP_NUM_THREADS"), text_of("2")));
  tell("annotation: %d", sink->annotation(sink, text_of("example.org/a"), text_of("b")));
  tell("reason: %d", sink->reason(sink, text_of("because")));
  tell("uses: %d", sink->uses(sink, text_of("0000:41:00.0")));
  tell("uses what there is not: %d", sink->uses(sink, text_of("0000:99:00.0")));
  tell("tag: %d", sink->tag(sink, text_of("group"), text_of("g1")));
  tell("unified: %d", sink->unified(sink, text_of("memory.high"), text_of("1048576")));
  tell("unified of a later file: %d", sink->unified(sink, text_of("memory.later"), text_of("1")));
  tell("rdt_class: %d", sink->rdt_class(sink, text_of("gold")));
  tell("memory_policy: %d",
       sink->memory_policy(sink, TOPOLET_MEMORY_BIND, request->memory, TOPOLET_MEMORY_STATIC_NODES));
  tell("memory_policy of a later mode: %d", sink->memory_policy(sink, LATER_VALUE, request->memory, 0));
  tell("memory_policy with a later flag: %d",
       sink->memory_policy(sink, TOPOLET_MEMORY_BIND, request->memory, LATER_FLAG));
  tell("scheduler: %d", sink->scheduler(sink, TOPOLET_SCHEDULER_BATCH, 7));
  tell("scheduler of a later class: %d", sink->scheduler(sink, LATER_VALUE, 0));
  tell("io_priority: %d", sink->io_priority(sink, TOPOLET_IO_BEST_EFFORT, 5));
  tell("io_priority of a later class: %d", sink->io_priority(sink, LATER_VALUE, 0));
  return TOPOLET_OK;
}

static int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink) {
  static const topolet_str kKey = TOPOLET_STR("kind");
  (void)instance;
  tell("== event %llu of kind %d: mode %d, flags %u, exit code %d", (unsigned long long)event->sequence, event->kind,
       event->mode, event->flags, event->exit_code);
  LATER(topolet_event, event);
  LATER(topolet_event_sink, sink);
  tell_set("CPUs", event->cpus);
  tell_set("withheld", event->withheld);
  tell_set("memory nodes", event->mems);
  tell_text("container's id", event->container_id);
  tell_text("reason", event->reason);
  tell_workload(event->workload);
  tell("topology of generation %llu", (unsigned long long)event->topology->generation);
  tell("state.set: %d", host_state->set(host, kKey, text_of("placed")));
  return TOPOLET_OK;
}

static int32_t tick(const topolet_instance* instance, const topolet_tick_request* request,
                    const topolet_tick_sink* sink) {
  (void)instance;
  tell("== tick at %llu", (unsigned long long)request->now_ms);
  LATER(topolet_tick_request, request);
  LATER(topolet_tick_sink, sink);
  tell("topology of generation %llu", (unsigned long long)request->topology->generation);
  tell_ledger(request->ledger);
  if (request->load != NULL) tell("load");
  tell("replace with a later flag: %d", sink->replace(sink, 0, LATER_FLAG, text_of("with a later flag")));
  tell("replace: %d", sink->replace(sink, 1, TOPOLET_REPLACE_NOW, text_of("better there")));
  return TOPOLET_OK;
}

static const topolet_str kNames[] = {TOPOLET_STR("every"), TOPOLET_STR("call")};
static const topolet_kv kTaking[] = {{TOPOLET_STR("call"), TOPOLET_STR("yes")}};
static const topolet_str kPatterns[] = {TOPOLET_STR("OMP_*")};
static const topolet_kv kCodes[] = {{TOPOLET_STR("fits-well"), TOPOLET_STR("It fits well.")}};

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_score kScore = {sizeof(topolet_score), 0, score ITS_LATER};
  static const topolet_propose kPropose = {sizeof(topolet_propose), 0, propose ITS_LATER};
  static const topolet_pick kPick = {sizeof(topolet_pick), 0, pick ITS_LATER};
  static const topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, adjust ITS_LATER};
  static const topolet_events kEvents = {sizeof(topolet_events), 0, notify ITS_LATER};
  static const topolet_tick kTick = {sizeof(topolet_tick), 1000, tick ITS_LATER};
  static const topolet_annotations kAnnotations = {sizeof(topolet_annotations), 0, {kNames, 2}, {kTaking, 1} ITS_LATER};
  static const topolet_reads kReads = {sizeof(topolet_reads), 0, {kPatterns, 1}, {kPatterns, 1} ITS_LATER};
  static const topolet_codes kAllCodes = {sizeof(topolet_codes), 0, {kCodes, 1} ITS_LATER};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_SCORE_ID)) return &kScore;
  if (topolet_str_is(id, TOPOLET_PROPOSE_ID)) return &kPropose;
  if (topolet_str_is(id, TOPOLET_PICK_ID)) return &kPick;
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kAdjust;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  if (topolet_str_is(id, TOPOLET_TICK_ID)) return &kTick;
  if (topolet_str_is(id, TOPOLET_ANNOTATIONS_ID)) return &kAnnotations;
  if (topolet_str_is(id, TOPOLET_READS_ID)) return &kReads;
  if (topolet_str_is(id, TOPOLET_CODES_ID)) return &kAllCodes;
  return NULL;
}

static void destroy(const topolet_instance* instance) {
  (void)instance;
  tell("== destroy");
}

static void tell_state(void) {
  static const topolet_str kKey = TOPOLET_STR("kind");
  char buffer[16];
  size_t size = 0;
  tell("state.set: %d", host_state->set(host, kKey, text_of("created")));
  const int32_t status = host_state->get(host, kKey, buffer, sizeof(buffer), &size);
  tell("state.get: %d '%.*s'", status, (int)size, buffer);
  const int32_t next = host_state->next(host, text_of(""), buffer, sizeof(buffer), &size);
  tell("state.next: %d '%.*s'", next, (int)size, buffer);
  tell("state.remove: %d", host_state->remove(host, kKey));
}

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_instance kInstance = {sizeof(topolet_instance), 0, NULL, get_capability, destroy ITS_LATER};
  host = request->host;
  host_log = (const topolet_log*)host->get_capability(host, text_of(TOPOLET_LOG_ID));
  host_state = (const topolet_state*)host->get_capability(host, text_of(TOPOLET_STATE_ID));
  host_wake = (const topolet_wake*)host->get_capability(host, text_of(TOPOLET_WAKE_ID));
  if (host_log == NULL || host_state == NULL || host_wake == NULL) {
    error->set(error, text_of("the host lacks a capability"));
    return TOPOLET_FAILED;
  }
  tell("== create for purpose %d within %u ms", request->purpose, request->deadline_ms);
  LATER(topolet_create_request, request);
  LATER(topolet_error_sink, error);
  LATER(topolet_host, host);
  LATER(topolet_log, host_log);
  LATER(topolet_state, host_state);
  LATER(topolet_wake, host_wake);
  tell_text("host", host->name);
  tell_pairs("option", request->options);
  tell_pairs("configuration", request->configuration);
  tell_topology(request->topology);
  tell_state();
  tell("wake: %d", host_wake->tick_soon(host));
  host_log->write(host, LATER_VALUE, text_of("a line of a later level"));
  *instance = &kInstance;
  return TOPOLET_OK;
}

static const topolet_str kColours[] = {TOPOLET_STR("red"), TOPOLET_STR("green")};

static const topolet_option kOptions[] = {{TOPOLET_STR("depth"),
                                           TOPOLET_OPTION_INTEGER,
                                           0,
                                           TOPOLET_STR("3"),
                                           {NULL, 0},
                                           1,
                                           9,
                                           TOPOLET_STR("How deep.") ITS_LATER},
                                          {TOPOLET_STR("colour"),
                                           TOPOLET_OPTION_CHOICE,
                                           0,
                                           TOPOLET_STR("red"),
                                           {kColours, 2},
                                           0,
                                           0,
                                           TOPOLET_STR("Which colour.") ITS_LATER},
                                          {TOPOLET_STR("wait"),
                                           TOPOLET_OPTION_DURATION,
                                           LATER_FLAG,
                                           TOPOLET_STR("2s"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("How long; with a flag that no host knows.") ITS_LATER},
                                          {TOPOLET_STR("later"),
                                           LATER_VALUE,
                                           0,
                                           TOPOLET_STR("as it is"),
                                           {NULL, 0},
                                           0,
                                           0,
                                           TOPOLET_STR("Of a type that no host knows.") ITS_LATER}};

TOPOLET_EXPORT const topolet_plugin_entry topolet_plugin_v1 = {
    sizeof(topolet_plugin_entry),
    TOPOLET_ABI_MINOR,
    TOPOLET_ABI_DRAFT,
    7,
    TOPOLET_STR("every-call"),
    TOPOLET_STR("1.2"),
    kOptions,
    sizeof(kOptions) / sizeof(kOptions[0]),
    sizeof(topolet_option),
    create,
    TOPOLET_STR("topolet's tests"),
    TOPOLET_STR("https://example.org"),
    TOPOLET_STR("Makes every call.") ITS_LATER,
};
