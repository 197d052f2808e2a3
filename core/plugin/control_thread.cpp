#include "core/plugin/control_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/mutex.hpp"
#include "core/plugin/barrier.hpp"
#include "core/plugin/crash_mark.hpp"

namespace topolet {
namespace {

using Steady = std::chrono::steady_clock;

struct Call {
  const std::string plugin;
  const char* const name;
  ControlThread::Work work;  ///< the thread's that runs it
  // Guarded by the state's mutex.
  Steady::time_point began = {};
  bool done = false;
  bool given_up = false;
};

}  // namespace

/// What the threads share. A thread lives as long as there is work, so that an idle daemon has none.
class ControlThread::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(Options options) : options_(std::move(options)) {}

  void add(std::shared_ptr<Call> call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(call));
    // What finds no thread now is done when the next call comes.
    static_cast<void>(start_thread());
  }

  Status run(const std::shared_ptr<Call>& call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    waiting_.push_back(call);
    while (!call->done && !call->given_up) {
      if (const Status started = start_thread(); !started) {
        waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), call), waiting_.end());
        return Error{started.error().code, fmt::format("plugin {}: {}", call->plugin, started.error().message)};
      }
      wait_for_next();
    }
    if (!call->given_up) return {};
    return Error{Code::kDeadlineExceeded, fmt::format("plugin {}: {}", call->plugin, not_back(*call))};
  }

  void drain() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    while (has_thread_ || !waiting_.empty()) {
      if (!start_thread()) return;
      wait_for_next();
    }
  }

  template <class IsIt>
  std::shared_ptr<const Call> find_stuck(IsIt is_it) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = std::find_if(stuck_.begin(), stuck_.end(), is_it);
    return found == stuck_.end() ? nullptr : *found;
  }

 private:
  std::string not_back(const Call& call) const {
    return fmt::format("{} did not come back within {} ms; it was given up on", call.name, options_.limit.count());
  }

  Status start_thread() TOPOLET_REQUIRES(mutex_) {
    if (has_thread_ || waiting_.empty()) return {};
    try {
      std::thread thread([self = shared_from_this()] { self->work(); });
      pthread_setname_np(thread.native_handle(), "topolet-control");
      thread.detach();
    } catch (const std::system_error& error) {
      return Error{Code::kUnavailable, fmt::format("no thread can be started for it: {}", error.what())};
    }
    has_thread_ = true;
    return {};
  }

  /// Until a call is back or late.
  void wait_for_next() TOPOLET_REQUIRES(mutex_) {
    const auto now = Steady::now();
    if (running_ == nullptr) {
      // A call that begins after this look can't be late before the look after it.
      back_.wait_until(mutex_, now + options_.limit);
      return;
    }
    const auto until = running_->began + options_.limit;
    if (now < until) {
      back_.wait_until(mutex_, until);
      return;
    }
    options_.log->error("plugin {}: {}", running_->plugin, not_back(*running_));
    running_->given_up = true;
    stuck_.push_back(std::exchange(running_, nullptr));
    has_thread_ = false;
    static_cast<void>(start_thread());
  }

  std::shared_ptr<Call> take() TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (waiting_.empty()) {
      has_thread_ = false;
      back_.notify_all();
      return nullptr;
    }
    running_ = std::move(waiting_.front());
    waiting_.pop_front();
    running_->began = Steady::now();
    return running_;
  }

  /// False if the call was given up on, and another thread has taken over.
  bool finish(const std::shared_ptr<Call>& call) TOPOLET_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (call->given_up) {
      stuck_.erase(std::remove(stuck_.begin(), stuck_.end(), call), stuck_.end());
      return false;
    }
    call->done = true;
    running_ = nullptr;
    back_.notify_all();
    return true;
  }

  void work() TOPOLET_EXCLUDES(mutex_) {
    const CrashStack stack;
    while (const std::shared_ptr<Call> call = take()) {
      {
        const CrashMark mark(call->plugin.c_str(), call->name);
        if (const auto thrown = thrown_by(call->work)) {
          options_.log->error("plugin {}: {} {}", call->plugin, call->name, *thrown);
        }
        // The last of an instance may be in there.
        call->work = nullptr;
      }
      if (const std::vector<std::string> signals = take_back_signals(); !signals.empty()) {
        options_.log->warn("plugin {}: {} changed what becomes of {}; that was put back", call->plugin, call->name,
                           fmt::join(signals, ", "));
      }
      if (!finish(call)) return;
    }
  }

  const Options options_;
  Mutex mutex_;
  CondVar back_;
  std::deque<std::shared_ptr<Call>> waiting_ TOPOLET_GUARDED_BY(mutex_);
  std::shared_ptr<Call> running_ TOPOLET_GUARDED_BY(mutex_);
  bool has_thread_ TOPOLET_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Call>> stuck_ TOPOLET_GUARDED_BY(mutex_);
};

ControlThread::ControlThread(Options options) : state_(std::make_shared<State>(std::move(options))) {}

ControlThread::~ControlThread() { drain(); }

Status ControlThread::run(const std::string& plugin, const char* call, Work work) {
  return state_->run(std::make_shared<Call>(Call{plugin, call, std::move(work)}));
}

ControlThread::Send ControlThread::send() const {
  return [state = state_](const std::string& plugin, const char* call, Work work) {
    state->add(std::make_shared<Call>(Call{plugin, call, std::move(work)}));
  };
}

void ControlThread::drain() { state_->drain(); }

std::optional<std::string> ControlThread::stuck_in(const std::string& plugin) const {
  const auto call = state_->find_stuck([&](const auto& one) { return one->plugin == plugin; });
  return call == nullptr ? std::nullopt : std::optional<std::string>(call->name);
}

std::optional<std::string> ControlThread::who_is_stuck(const std::string& call) const {
  const auto stuck = state_->find_stuck([&](const auto& one) { return one->name == call; });
  return stuck == nullptr ? std::nullopt : std::optional<std::string>(stuck->plugin);
}

bool ControlThread::has_abandoned_calls() const {
  return state_->find_stuck([](const auto&) { return true; }) != nullptr;
}

}  // namespace topolet
