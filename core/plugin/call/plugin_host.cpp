#include "core/plugin/call/plugin_host.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/log.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/control_thread.hpp"

namespace topolet::plugin {
namespace {

spdlog::level::level_enum spdlog_level(std::int32_t level) {
  switch (level) {
    case TOPOLET_LOG_DEBUG:
      return spdlog::level::debug;
    case TOPOLET_LOG_WARN:
      return spdlog::level::warn;
    case TOPOLET_LOG_ERROR:
      return spdlog::level::err;
    default:
      return spdlog::level::info;
  }
}

HostLink& link_of(const topolet_host* view) { return *static_cast<HostLink*>(view->context); }

/// The host whose plugin may write its state on this thread.
constinit thread_local const PluginHost* t_state_writer = nullptr;
constinit thread_local DecisionReads* t_decision_reads = nullptr;

std::int32_t check_bytes(topolet_str bytes, std::size_t max) {
  if (bytes.ptr == nullptr && bytes.len != 0) return TOPOLET_INVALID;
  return bytes.len > max ? TOPOLET_OUT_OF_RANGE : TOPOLET_OK;
}

/// TOPOLET_OUT_OF_RANGE is left to values, so that who gets it knows that it needs more room.
bool is_key(topolet_str key) { return key.len == 0 || (key.ptr != nullptr && key.len <= TOPOLET_STATE_MAX_KEY); }

std::int32_t check_key(topolet_str key) { return key.len != 0 && is_key(key) ? TOPOLET_OK : TOPOLET_INVALID; }

std::string string_of(topolet_str bytes) { return bytes.len == 0 ? std::string() : std::string(bytes.ptr, bytes.len); }

}  // namespace

std::optional<std::uint64_t> LogRateLimiter::try_acquire(Time now) {
  MutexLock lock(mutex_);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now - refilled_at_);
  const std::uint64_t fresh =
      static_cast<std::uint64_t>(std::max<std::int64_t>(since.count(), 0)) * kLinesPerSecond / 1000;
  if (fresh > 0) {
    tokens_ = std::min(tokens_ + fresh, kBurstLines);
    refilled_at_ = now;
  }
  if (tokens_ == 0) {
    ++dropped_;
    return std::nullopt;
  }
  --tokens_;
  return std::exchange(dropped_, 0);
}

DecisionReads::DecisionReads() : outer_(std::exchange(t_decision_reads, this)) {}

DecisionReads::~DecisionReads() { t_decision_reads = outer_; }

bool DecisionReads::take(const std::string& plugin, std::size_t bytes) {
  std::size_t& taken = bytes_[plugin];
  taken += bytes;
  return taken <= TOPOLET_STATE_MAX_READ;
}

bool DecisionReads::is_over(const std::string& plugin) const {
  const auto taken = bytes_.find(plugin);
  return taken != bytes_.end() && taken->second > TOPOLET_STATE_MAX_READ;
}

PluginHost::StateWriteScope::StateWriteScope(PluginHost& host) : outer_(std::exchange(t_state_writer, &host)) {}

PluginHost::StateWriteScope::~StateWriteScope() { t_state_writer = outer_; }

PluginHost::PluginHost(std::string plugin, std::shared_ptr<Log> log, std::shared_ptr<store::PluginStateStore> state)
    : plugin_(std::move(plugin)),
      log_(std::move(log)),
      state_(std::move(state)),
      kept_(kept_by_new_instance(plugin_, functions())) {
  kept_.link->begin(*this, state_ != nullptr);
}

PluginHost::~PluginHost() { kept_.link->end(); }

const HostFunctions& PluginHost::functions() {
  static constexpr HostFunctions kFunctions = {
      &get_capability,
      {sizeof(topolet_log), 0, &write_log},
      {sizeof(topolet_state), 0, &get_state, &next_state, &set_state, &remove_state},
      {sizeof(topolet_wake), 0, &tick_soon}};
  return kFunctions;
}

const void* PluginHost::get_capability(const topolet_host* host, topolet_str id) {
  HostLink& link = link_of(host);
  const void* const given = capability_of(link, id);
  if (given == nullptr) return nullptr;
  const HostLink::Visit visit(link);
  if (visit.host() != nullptr) {
    MutexLock lock(visit.host()->given_mutex_);
    visit.host()->given_.insert(string_of(id));
  }
  return given;
}

std::vector<std::string> PluginHost::given_capabilities() const {
  MutexLock lock(given_mutex_);
  return {given_.begin(), given_.end()};
}

const void* PluginHost::capability_of(const HostLink& link, topolet_str id) {
  if (id.ptr == nullptr) return nullptr;
  if (topolet_str_is(id, TOPOLET_LOG_ID)) return &link.functions().log;
  if (topolet_str_is(id, TOPOLET_WAKE_ID)) return &link.functions().wake;
  if (topolet_str_is(id, TOPOLET_STATE_ID) && link.has_state()) return &link.functions().state;
  return nullptr;
}

void PluginHost::write_log(const topolet_host* host, std::int32_t level, topolet_str message) {
  const HostLink::Visit visit(link_of(host));
  if (visit.host() == nullptr) return;
  const PluginHost& self = *visit.host();
  if (!self.log_->should_log(spdlog_level(level))) return;
  const auto dropped = self.log_limiter_.try_acquire(std::chrono::steady_clock::now());
  if (!dropped) return;
  if (*dropped > 0) self.log_->warn("{}: {} log lines were dropped", self.plugin_, *dropped);
  self.log_->log(spdlog_level(level), "{}: {}", self.plugin_, sanitize_text(message));
}

std::int32_t PluginHost::tick_soon(const topolet_host* host) {
  const HostLink::Visit visit(link_of(host));
  if (visit.host() == nullptr) return TOPOLET_LATE;
  PluginHost& self = *visit.host();
  if (self.wants_tick_.exchange(true)) return TOPOLET_OK;
  MutexLock lock(self.wake_mutex_);
  if (!self.wake_) return TOPOLET_OK;
  const auto now = std::chrono::steady_clock::now();
  const auto due = self.last_tick_ ? *self.last_tick_ + std::chrono::milliseconds(TOPOLET_TICK_MIN_MS) : now;
  self.wake_(std::max(std::chrono::ceil<std::chrono::milliseconds>(due - now), std::chrono::milliseconds(0)));
  return TOPOLET_OK;
}

bool PluginHost::begin_tick() {
  MutexLock lock(wake_mutex_);
  last_tick_ = std::chrono::steady_clock::now();
  return wants_tick_.exchange(false);
}

void PluginHost::wake_by(Wake wake) {
  MutexLock lock(wake_mutex_);
  wake_ = std::move(wake);
  // What it wanted before, when it was created, is due at once.
  if (wake_ && wants_tick_) wake_(std::chrono::milliseconds(0));
}

void PluginHost::log_thrown(const char* function, const std::string& thrown) const {
  log_->error("plugin {}: {} {}", plugin_, function, thrown);
}

std::int32_t PluginHost::get_state(const topolet_host* host, topolet_str key, void* buffer, std::size_t capacity,
                                   std::size_t* size) {
  const HostLink::Visit visit(link_of(host));
  if (visit.host() == nullptr) return TOPOLET_LATE;
  PluginHost& self = *visit.host();
  if (self.state_ == nullptr) return TOPOLET_FAILED;
  if (const std::int32_t status = check_key(key); status != TOPOLET_OK) return status;
  return self.copy_to_plugin([&] { return self.state_->get(self.plugin_, string_of(key)); }, buffer, capacity, size);
}

std::int32_t PluginHost::next_state(const topolet_host* host, topolet_str after, void* buffer, std::size_t capacity,
                                    std::size_t* size) {
  const HostLink::Visit visit(link_of(host));
  if (visit.host() == nullptr) return TOPOLET_LATE;
  PluginHost& self = *visit.host();
  if (self.state_ == nullptr) return TOPOLET_FAILED;
  if (!is_key(after)) return TOPOLET_INVALID;
  return self.copy_to_plugin([&] { return self.state_->next(self.plugin_, string_of(after)); }, buffer, capacity, size);
}

std::int32_t PluginHost::set_state(const topolet_host* host, topolet_str key, topolet_str value) {
  const HostLink::Visit visit(link_of(host));
  if (visit.host() == nullptr) return TOPOLET_LATE;
  const PluginHost& self = *visit.host();
  if (self.state_ == nullptr) return TOPOLET_FAILED;
  if (const std::int32_t status = self.check_may_write(); status != TOPOLET_OK) return status;
  if (const std::int32_t status = check_key(key); status != TOPOLET_OK) return status;
  if (const std::int32_t status = check_bytes(value, TOPOLET_STATE_MAX_VALUE); status != TOPOLET_OK) return status;
  const std::string name = string_of(key);
  if (const Status checked = self.check_key_limit(name); !checked) return self.status_of_write(checked);
  return self.status_of_write(self.state_->set(self.plugin_, name, string_of(value)));
}

std::int32_t PluginHost::remove_state(const topolet_host* host, topolet_str key) {
  const HostLink::Visit visit(link_of(host));
  if (visit.host() == nullptr) return TOPOLET_LATE;
  const PluginHost& self = *visit.host();
  if (self.state_ == nullptr) return TOPOLET_FAILED;
  if (const std::int32_t status = self.check_may_write(); status != TOPOLET_OK) return status;
  if (const std::int32_t status = check_key(key); status != TOPOLET_OK) return status;
  return self.status_of_write(self.state_->remove(self.plugin_, string_of(key)));
}

Status PluginHost::check_key_limit(const std::string& key) const {
  const auto old = state_->get(plugin_, key);
  if (!old) return old.error();
  if (old->has_value()) return {};
  const auto count = state_->count(plugin_);
  if (!count) return count.error();
  if (*count < kMaxStateKeys) return {};
  return Error{Code::kResourceExhausted, "it already keeps " + std::to_string(*count) + " values"};
}

bool PluginHost::is_call_abandoned() const { return call_abandoned_ || is_abandoned_control_call(); }

std::int32_t PluginHost::check_may_write() const {
  if (is_call_abandoned()) return TOPOLET_LATE;
  return t_state_writer == this ? TOPOLET_OK : TOPOLET_FORBIDDEN;
}

template <class Read>
std::int32_t PluginHost::copy_to_plugin(Read read, void* buffer, std::size_t capacity, std::size_t* size) {
  if (size == nullptr || (buffer == nullptr && capacity != 0)) return TOPOLET_INVALID;
  if (is_call_abandoned()) return TOPOLET_LATE;
  DecisionReads* const reads = t_decision_reads;
  if (reads != nullptr && reads->is_over(plugin_)) return check_read_limit(false);
  const Result<std::optional<std::string>> found = read();
  if (is_call_abandoned()) return TOPOLET_LATE;
  if (!found) {
    log_->warn("{}: cannot read its state: {}", plugin_, found.error().message);
    return TOPOLET_FAILED;
  }
  if (!found->has_value()) return TOPOLET_UNKNOWN;
  const std::string& bytes = **found;
  const bool fits = bytes.size() <= capacity;
  if (fits && reads != nullptr) {
    if (const std::int32_t status = check_read_limit(reads->take(plugin_, bytes.size())); status != TOPOLET_OK)
      return status;
  }
  *size = bytes.size();
  if (!fits) return TOPOLET_OUT_OF_RANGE;
  if (!bytes.empty()) std::memcpy(buffer, bytes.data(), bytes.size());
  return TOPOLET_OK;
}

std::int32_t PluginHost::check_read_limit(bool is_within) {
  if (is_within) return TOPOLET_OK;
  if (!told_of_read_limit_.exchange(true)) {
    log_->warn("{}: reads more than {} bytes of its state in a decision; it is not given any more", plugin_,
               TOPOLET_STATE_MAX_READ);
  }
  return TOPOLET_FAILED;
}

std::int32_t PluginHost::status_of_write(const Status& written) const {
  if (written) return TOPOLET_OK;
  if (log_limiter_.try_acquire(std::chrono::steady_clock::now())) {
    log_->warn("{}: cannot write its state: {}", plugin_, written.error().message);
  }
  return TOPOLET_FAILED;
}

}  // namespace topolet::plugin
