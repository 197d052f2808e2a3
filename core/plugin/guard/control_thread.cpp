#include "core/plugin/guard/control_thread.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/plugin/guard/abandonable_thread.hpp"
#include "core/plugin/guard/barrier.hpp"
#include "core/plugin/guard/crash_mark.hpp"

namespace topolet::plugin {
namespace {

/// Whether the control call that this thread is in was abandoned; null outside of any.
constinit thread_local const std::atomic<bool>* t_abandoned = nullptr;

}  // namespace

bool is_abandoned_control_call() { return t_abandoned != nullptr && *t_abandoned; }

/// One call into a plugin, watched from its begin to its end.
struct ControlThread::Call : AbandonableTask {
  Call(std::string its_plugin, const char* its_name, Work its_work, const Options& its_options, Thread& its_thread)
      : plugin(std::move(its_plugin)),
        name(its_name),
        options(its_options),
        work(std::move(its_work)),
        thread(its_thread) {}

  void run() {
    // Not in the call: however long others are in the plugin, it is not late for that.
    options.turns->begin(plugin);
    thread.begin_call(*this);
    {
      const CrashMark mark(plugin.c_str(), name);
      t_abandoned = &abandoned;
      if (const auto thrown = thrown_by(work)) options.log->error("plugin {}: {} {}", plugin, name, *thrown);
      // The last of an instance may be in there.
      work = nullptr;
      t_abandoned = nullptr;
    }
    if (thread.end_call(*this)) options.turns->end(plugin);
    if (const std::vector<std::string> signals = restore_signal_handlers(); !signals.empty()) {
      options.log->warn("plugin {}: {} changed the handling of {}; it was restored", plugin, name,
                        fmt::join(signals, ", "));
    }
  }

  void on_abandoned(Overrun) {
    abandoned = true;
    options.turns->end(plugin);
    options.log->error("plugin {}: {}", plugin, timeout_message());
  }

  /// Its work is gone already.
  void release() {}

  std::string timeout_message() const {
    return fmt::format("{} did not return within {} ms and was abandoned", name, options.limit.count());
  }

  const std::string plugin;
  const char* const name;
  const Options options;
  Work work;  ///< the thread's that runs it
  std::atomic<bool> abandoned = false;
  Thread& thread;  ///< which lives as long as it runs this
};

ControlThread::ControlThread(Options options)
    : options_(std::move(options)),
      thread_(std::make_shared<Thread>(
          Thread::Options{.name = "topolet-control", .limit = options_.limit, .when_idle = Thread::WhenIdle::kEnd})) {}

ControlThread::~ControlThread() { drain(); }

Status ControlThread::run(const std::string& plugin, const char* call, Work work) {
  const auto task = std::make_shared<Call>(plugin, call, std::move(work), options_, *thread_);
  const Result<Thread::Ending> ending = thread_->run(task);
  if (!ending) {
    return Error{ending.error().code,
                 fmt::format("plugin {}: a thread for it cannot be started: {}", plugin, ending.error().message)};
  }
  if (*ending == Thread::Ending::kDone) return {};
  return Error{Code::kDeadlineExceeded, fmt::format("plugin {}: {}", plugin, task->timeout_message())};
}

ControlThread::Post ControlThread::send() const {
  return [thread = thread_, options = options_](const std::string& plugin, const char* call, Work work) {
    thread->post(std::make_shared<Call>(plugin, call, std::move(work), options, *thread));
  };
}

void ControlThread::drain() { thread_->drain(); }

std::optional<std::string> ControlThread::stuck_call_of(const std::string& plugin) const {
  const auto stuck = thread_->find_abandoned([&](const Call& call) { return call.plugin == plugin; });
  return stuck == nullptr ? std::nullopt : std::optional<std::string>(stuck->name);
}

std::optional<std::string> ControlThread::plugin_stuck_in(const std::string& call) const {
  const auto stuck = thread_->find_abandoned([&](const Call& other) { return other.name == call; });
  return stuck == nullptr ? std::nullopt : std::optional<std::string>(stuck->plugin);
}

bool ControlThread::has_abandoned_calls() const { return thread_->has_abandoned(); }

}  // namespace topolet::plugin
