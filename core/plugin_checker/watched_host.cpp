#include "core/plugin_checker/watched_host.hpp"

#include <cstddef>
#include <utility>

namespace topolet::plugin_checker {

WatchedHost::WatchedHost(const topolet_host* real, std::function<void(const std::string&)> on_late_call)
    : real_(real), on_late_call_(std::move(on_late_call)), view_(*real) {
  real_log_ = static_cast<const topolet_log*>(real->get_capability(real, TOPOLET_STR(TOPOLET_LOG_ID)));
  real_state_ = static_cast<const topolet_state*>(real->get_capability(real, TOPOLET_STR(TOPOLET_STATE_ID)));
  real_wake_ = static_cast<const topolet_wake*>(real->get_capability(real, TOPOLET_STR(TOPOLET_WAKE_ID)));
  view_.context = this;
  view_.get_capability = [](const topolet_host* view, topolet_str id) -> const void* {
    const WatchedHost& self = host_of(view);
    if (!self.may_call("get_capability")) return nullptr;
    if (topolet_str_is(id, TOPOLET_LOG_ID)) return &self.log_;
    if (topolet_str_is(id, TOPOLET_STATE_ID)) return &self.state_;
    if (topolet_str_is(id, TOPOLET_WAKE_ID)) return &self.wake_;
    return self.real_->get_capability(self.real_, id);
  };
  log_ = *real_log_;
  log_.write = [](const topolet_host* view, std::int32_t level, topolet_str message) {
    const WatchedHost& self = host_of(view);
    if (self.may_call("write of " TOPOLET_LOG_ID)) self.real_log_->write(self.real_, level, message);
  };
  state_ = *real_state_;
  state_.get = [](const topolet_host* view, topolet_str key, void* buffer, std::size_t capacity, std::size_t* size) {
    const WatchedHost& self = host_of(view);
    return self.may_call("get of " TOPOLET_STATE_ID) ? self.real_state_->get(self.real_, key, buffer, capacity, size)
                                                     : static_cast<std::int32_t>(TOPOLET_LATE);
  };
  state_.next = [](const topolet_host* view, topolet_str after, void* buffer, std::size_t capacity, std::size_t* size) {
    const WatchedHost& self = host_of(view);
    return self.may_call("next of " TOPOLET_STATE_ID)
               ? self.real_state_->next(self.real_, after, buffer, capacity, size)
               : static_cast<std::int32_t>(TOPOLET_LATE);
  };
  state_.set = [](const topolet_host* view, topolet_str key, topolet_str value) {
    const WatchedHost& self = host_of(view);
    return self.may_call("set of " TOPOLET_STATE_ID) ? self.real_state_->set(self.real_, key, value)
                                                     : static_cast<std::int32_t>(TOPOLET_LATE);
  };
  state_.remove = [](const topolet_host* view, topolet_str key) {
    const WatchedHost& self = host_of(view);
    return self.may_call("remove of " TOPOLET_STATE_ID) ? self.real_state_->remove(self.real_, key)
                                                        : static_cast<std::int32_t>(TOPOLET_LATE);
  };
  wake_ = *real_wake_;
  wake_.tick_soon = [](const topolet_host* view) {
    const WatchedHost& self = host_of(view);
    return self.may_call("tick_soon of " TOPOLET_WAKE_ID) ? self.real_wake_->tick_soon(self.real_)
                                                          : static_cast<std::int32_t>(TOPOLET_LATE);
  };
}

bool WatchedHost::may_call(const char* function) const {
  if (!has_ended_) return true;
  on_late_call_(function);
  return false;
}

}  // namespace topolet::plugin_checker
