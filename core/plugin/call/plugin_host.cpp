#include "core/plugin/call/plugin_host.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/log.hpp"
#include "core/plugin/guard/barrier.hpp"

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

PluginHost& host_of(const topolet_host* view) { return *static_cast<PluginHost*>(view->context); }

std::int32_t check_bytes(topolet_str bytes, std::size_t max) {
  if (bytes.ptr == nullptr && bytes.len != 0) return TOPOLET_INVALID;
  return bytes.len > max ? TOPOLET_OUT_OF_RANGE : TOPOLET_OK;
}

std::int32_t check_key(topolet_str key) {
  return key.len == 0 ? TOPOLET_INVALID : check_bytes(key, TOPOLET_STATE_MAX_KEY);
}

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

PluginHost::PluginHost(std::string plugin, std::shared_ptr<Log> log, std::shared_ptr<store::PluginStateStore> state)
    : plugin_(std::move(plugin)), log_(std::move(log)), state_(std::move(state)) {
  shown_ = new (pages_.data())
      Shown{{sizeof(topolet_host), TOPOLET_ABI_MINOR, this, &get_capability, view_of("topoletd"), {}},
            {sizeof(topolet_log), 0, &write_log},
            {sizeof(topolet_state), 0, &get_state, &next_state, &set_state, &remove_state}};
  pages_.forbid_writing();
}

const void* PluginHost::get_capability(const topolet_host* host, topolet_str id) {
  const PluginHost& self = host_of(host);
  if (id.ptr == nullptr) return nullptr;
  if (topolet_str_is(id, TOPOLET_LOG_ID)) return &self.shown_->log;
  if (topolet_str_is(id, TOPOLET_STATE_ID) && self.state_ != nullptr) return &self.shown_->state;
  return nullptr;
}

void PluginHost::write_log(const topolet_host* host, std::int32_t level, topolet_str message) {
  PluginHost& self = host_of(host);
  if (!self.log_->should_log(spdlog_level(level))) return;
  const auto dropped = self.log_limiter_.try_acquire(std::chrono::steady_clock::now());
  if (!dropped) return;
  if (*dropped > 0) self.log_->warn("{}: {} log lines were dropped", self.plugin_, *dropped);
  self.log_->log(spdlog_level(level), "{}: {}", self.plugin_, sanitize_text(message));
}

std::int32_t PluginHost::get_state(const topolet_host* host, topolet_str key, void* buffer, std::size_t capacity,
                                   std::size_t* size) {
  PluginHost& self = host_of(host);
  if (const std::int32_t status = check_key(key); status != TOPOLET_OK) return status;
  if (size == nullptr || (buffer == nullptr && capacity != 0)) return TOPOLET_INVALID;
  return self.copy_to_plugin(self.state_->get(self.plugin_, string_of(key)), buffer, capacity, size);
}

std::int32_t PluginHost::next_state(const topolet_host* host, topolet_str after, void* buffer, std::size_t capacity,
                                    std::size_t* size) {
  PluginHost& self = host_of(host);
  if (const std::int32_t status = check_bytes(after, TOPOLET_STATE_MAX_KEY); status != TOPOLET_OK) return status;
  if (size == nullptr || (buffer == nullptr && capacity != 0)) return TOPOLET_INVALID;
  return self.copy_to_plugin(self.state_->next(self.plugin_, string_of(after)), buffer, capacity, size);
}

std::int32_t PluginHost::set_state(const topolet_host* host, topolet_str key, topolet_str value) {
  PluginHost& self = host_of(host);
  if (const std::int32_t status = self.check_may_write(); status != TOPOLET_OK) return status;
  if (const std::int32_t status = check_key(key); status != TOPOLET_OK) return status;
  if (const std::int32_t status = check_bytes(value, TOPOLET_STATE_MAX_VALUE); status != TOPOLET_OK) return status;
  const std::string name = string_of(key);
  if (const Status checked = self.check_key_limit(name); !checked) return self.status_of_write(checked);
  return self.status_of_write(self.state_->set(self.plugin_, name, string_of(value)));
}

std::int32_t PluginHost::remove_state(const topolet_host* host, topolet_str key) {
  PluginHost& self = host_of(host);
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

std::int32_t PluginHost::check_may_write() const {
  if (call_abandoned_) return TOPOLET_LATE;
  return may_write_ ? TOPOLET_OK : TOPOLET_FORBIDDEN;
}

std::int32_t PluginHost::copy_to_plugin(const Result<std::optional<std::string>>& found, void* buffer,
                                        std::size_t capacity, std::size_t* size) const {
  if (call_abandoned_) return TOPOLET_LATE;
  if (!found) {
    log_->warn("{}: cannot read its state: {}", plugin_, found.error().message);
    return TOPOLET_FAILED;
  }
  if (!found->has_value()) return TOPOLET_UNKNOWN;
  const std::string& bytes = **found;
  *size = bytes.size();
  if (bytes.size() > capacity) return TOPOLET_OUT_OF_RANGE;
  if (!bytes.empty()) std::memcpy(buffer, bytes.data(), bytes.size());
  return TOPOLET_OK;
}

std::int32_t PluginHost::status_of_write(const Status& written) const {
  if (written) return TOPOLET_OK;
  if (log_limiter_.try_acquire(std::chrono::steady_clock::now())) {
    log_->warn("{}: cannot write its state: {}", plugin_, written.error().message);
  }
  return TOPOLET_FAILED;
}

}  // namespace topolet::plugin
