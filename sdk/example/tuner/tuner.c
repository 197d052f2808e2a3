/* Tells programs how many threads to have: OMP_NUM_THREADS is the number of CPUs that the container was given. The
 * variable cannot change while the container runs; when it has been moved to more or fewer CPUs since, the log says so.
 * The kernel begins to reclaim memory at nine tenths of the memory limit, also when a resize has changed that. */
#include <stdio.h>
#include <stdlib.h>
#include <topolet/abi.h>
#include <topolet/adjust.h>
#include <topolet/annotations.h>
#include <topolet/events.h>
#include <topolet/log.h>
#include <topolet/state.h>

typedef struct tuner {
  topolet_instance instance;
  const topolet_host* host;
  const topolet_log* log;     /* null where the host has none */
  const topolet_state* state; /* the same */
} tuner;

static uint32_t count(topolet_set set) {
  uint32_t members = 0;
  for (size_t i = 0; i < set.count; ++i) {
    for (uint64_t word = set.words[i]; word != 0; word &= word - 1) ++members;
  }
  return members;
}

static topolet_str written(char* buffer, size_t capacity, uint32_t number) {
  const topolet_str text = {buffer, (size_t)snprintf(buffer, capacity, "%u", (unsigned)number)};
  return text;
}

static void begin_to_reclaim_early(const topolet_adjust_sink* sink, int64_t limit) {
  static const topolet_str kFile = TOPOLET_STR("memory.high");
  char bytes[24];
  if (limit < 10 || !TOPOLET_HAS(sink, unified)) return;
  const topolet_str value = {bytes, (size_t)snprintf(bytes, sizeof(bytes), "%lld", (long long)(limit / 10 * 9))};
  sink->unified(sink, kFile, value);
}

static int32_t adjust(const topolet_instance* instance, const topolet_adjust_request* request,
                      const topolet_adjust_sink* sink) {
  static const topolet_str kVariable = TOPOLET_STR("OMP_NUM_THREADS");
  static const topolet_str kTag = TOPOLET_STR("threads");
  char buffer[16];
  (void)instance;
  begin_to_reclaim_early(sink, request->request->workload->demand->memory_limit_bytes);
  if (request->asks != TOPOLET_ASKS_CREATE) return TOPOLET_OK;
  const topolet_str threads = written(buffer, sizeof(buffer), count(request->cpus));
  sink->tag(sink, kTag, threads);
  return sink->env(sink, kVariable, threads);
}

/* The key of the container's value: POD_UID/CONTAINER. Empty if that is too long for one. */
static topolet_str key_of(const topolet_workload* workload, char* buffer) {
  const topolet_str pod = workload->pod_uid;
  const topolet_str container = workload->container_name;
  topolet_str key = {buffer, pod.len + 1 + container.len};
  if (key.len > TOPOLET_STATE_MAX_KEY) key.len = 0;
  if (key.len == 0) return key;
  memcpy(buffer, pod.ptr, pod.len);
  buffer[pod.len] = '/';
  memcpy(buffer + pod.len + 1, container.ptr, container.len);
  return key;
}

/* How many threads the container was told; 0 if that is not known. */
static uint32_t told(const tuner* self, topolet_str key) {
  char digits[16];
  size_t size = 0;
  uint32_t threads = 0;
  if (self->state->get(self->host, key, digits, sizeof(digits), &size) != TOPOLET_OK) return 0;
  for (size_t i = 0; i < size; ++i) threads = 10 * threads + (uint32_t)(digits[i] - '0');
  return threads;
}

static void warn(const tuner* self, const topolet_workload* workload, uint32_t threads, uint32_t cpus) {
  char line[512];
  if (self->log == NULL) return;
  const int length = snprintf(line, sizeof(line), "%.*s/%.*s: OMP_NUM_THREADS is %u, but it has %u CPUs now",
                              (int)workload->pod_name.len, workload->pod_name.ptr, (int)workload->container_name.len,
                              workload->container_name.ptr, (unsigned)threads, (unsigned)cpus);
  const topolet_str message = {line, (size_t)length < sizeof(line) ? (size_t)length : sizeof(line) - 1};
  self->log->write(self->host, TOPOLET_LOG_WARN, message);
}

/* What a container was told is kept over restarts of topoletd, from its placement to its release. */
static int32_t notify(const topolet_instance* instance, const topolet_event* event, const topolet_event_sink* sink) {
  const tuner* self = instance->context;
  char buffer[TOPOLET_STATE_MAX_KEY];
  char digits[16];
  const topolet_str key = key_of(event->workload, buffer);
  const uint32_t cpus = count(event->cpus);
  (void)sink;
  if (self->state == NULL || key.len == 0) return TOPOLET_OK;
  if (event->kind == TOPOLET_EVENT_PLACED && (event->flags & TOPOLET_EVENT_ADOPTED) == 0) {
    self->state->set(self->host, key, written(digits, sizeof(digits), cpus));
  } else if (event->kind == TOPOLET_EVENT_MOVED || event->kind == TOPOLET_EVENT_RESIZED) {
    const uint32_t threads = told(self, key);
    if (threads != 0 && threads != cpus) warn(self, event->workload, threads, cpus);
  } else if (event->kind == TOPOLET_EVENT_RELEASED) {
    self->state->remove(self->host, key);
  }
  return TOPOLET_OK;
}

static const void* get_capability(const topolet_instance* instance, topolet_str id) {
  static const topolet_adjust kAdjust = {sizeof(topolet_adjust), 0, adjust};
  static const topolet_events kEvents = {sizeof(topolet_events), 0, notify};
  /* It reads no topolet.io annotation. */
  static const topolet_annotations kAnnotations = {sizeof(topolet_annotations), 0, {NULL, 0}, {NULL, 0}};
  (void)instance;
  if (topolet_str_is(id, TOPOLET_ADJUST_ID)) return &kAdjust;
  if (topolet_str_is(id, TOPOLET_EVENTS_ID)) return &kEvents;
  return topolet_str_is(id, TOPOLET_ANNOTATIONS_ID) ? &kAnnotations : NULL;
}

static void destroy(const topolet_instance* instance) { free(instance->context); }

static int32_t create(const topolet_create_request* request, const topolet_error_sink* error,
                      const topolet_instance** instance) {
  static const topolet_str kOutOfMemory = TOPOLET_STR("out of memory");
  static const topolet_str kLog = TOPOLET_STR(TOPOLET_LOG_ID);
  static const topolet_str kState = TOPOLET_STR(TOPOLET_STATE_ID);
  const topolet_host* host = request->host;
  tuner* self = malloc(sizeof(*self));
  if (self == NULL) {
    error->set(error, kOutOfMemory);
    return TOPOLET_FAILED;
  }
  const topolet_instance made = {sizeof(made), 0, self, get_capability, destroy};
  self->instance = made;
  self->host = host;
  self->log = host->get_capability(host, kLog);
  self->state = host->get_capability(host, kState);
  *instance = &self->instance;
  return TOPOLET_OK;
}

const topolet_plugin_entry topolet_plugin_v1 = {
    .struct_size = sizeof(topolet_plugin_entry),
    .abi_minor = TOPOLET_ABI_MINOR,
    .abi_draft = TOPOLET_ABI_DRAFT,
    .id = TOPOLET_STR("tuner"),
    .version = TOPOLET_STR("1.0"),
    .option_stride = sizeof(topolet_option),
    .create = create,
};
