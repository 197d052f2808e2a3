// Plugins whose code is the test's, and what asks them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/plugin/call/abi_request.hpp"
#include "core/plugin/call/plugin_host.hpp"
#include "core/plugin/call/policy_thread.hpp"

namespace topolet::plugin {

template <class Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

/// A door that calls can be held at.
class Gate {
 public:
  void open() {
    MutexLock lock(mutex_);
    open_ = true;
    opened_.notify_all();
  }
  void pass() {
    MutexLock lock(mutex_);
    while (!open_) opened_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ TOPOLET_GUARDED_BY(mutex_) = false;
};

/// A plugin whose code is the test's: its score() says what it is told to say.
struct Scripted {
  using Score = std::function<std::int32_t(const topolet_score_sink& sink)>;
  using ScoreOf = std::function<std::int32_t(const topolet_request& request, const topolet_score_sink& sink)>;

  std::shared_ptr<PluginPolicy> plugin;
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
};

struct ScriptedInstance {
  Scripted::ScoreOf says;
  std::shared_ptr<std::atomic<int>> calls;
  topolet_instance instance{};
  topolet_score score{};
};

inline Scripted scripted_on(const std::string& name, Scripted::ScoreOf says) {
  static constexpr auto kOf = [](const topolet_instance* instance) {
    return static_cast<ScriptedInstance*>(instance->context);
  };
  Scripted made;
  auto* const own = new ScriptedInstance{std::move(says), made.calls};
  own->score = {sizeof(own->score), 0,
                [](const topolet_instance* instance, const topolet_request* request, const topolet_score_sink* sink) {
                  ++*kOf(instance)->calls;
                  return kOf(instance)->says(*request, *sink);
                }};
  own->instance = {sizeof(own->instance), 0, own,
                   [](const topolet_instance* instance, topolet_str id) -> const void* {
                     return topolet_str_is(id, TOPOLET_SCORE_ID) ? &kOf(instance)->score : nullptr;
                   },
                   [](const topolet_instance* instance) { delete kOf(instance); }};
  made.plugin =
      PluginPolicy::wrap(name, std::make_unique<PluginHost>(name, make_silent_log(), nullptr), &own->instance).value();
  return made;
}
inline Scripted scripted(const std::string& name, Scripted::Score says) {
  return scripted_on(name, [says = std::move(says)](const auto&, const auto& sink) { return says(sink); });
}
inline Scripted willing(const std::string& name) {
  return scripted(name, [name](const topolet_score_sink& sink) {
    return sink.set(&sink, 0, TOPOLET_VERDICT_SCORE, 1, view_of(name));
  });
}
inline Scripted held_at(const std::shared_ptr<Gate>& gate, const std::string& name = "stuck") {
  return scripted(name, [gate](const topolet_score_sink&) -> std::int32_t {
    gate->pass();
    return TOPOLET_OK;
  });
}
inline Scripted throwing(const std::string& name) {
  return scripted(name, [](const topolet_score_sink&) -> std::int32_t { throw std::runtime_error("boom"); });
}
inline Scripted unable(const std::string& name) {
  return scripted(name, [](const topolet_score_sink& sink) -> std::int32_t {
    sink.error(&sink, TOPOLET_STR("no sysfs"));
    return TOPOLET_FAILED;
  });
}

inline PluginVote vote(std::shared_ptr<PluginPolicy> plugin) {
  std::string name = plugin->name();
  return {std::move(name), std::move(plugin)};
}
inline PluginVote vote(const Scripted& made) { return vote(made.plugin); }

/// Gives each more weight than the next, so that they are asked in this order.
inline std::vector<PluginVote> in_this_order(std::vector<PluginVote> votes) {
  std::int32_t weight = 1000;
  for (PluginVote& vote : votes) vote.weight = weight--;
  return votes;
}

/// The answer of each plugin: its first reason, or its error.
using Answers = std::vector<std::string>;

/// A minimal decision: asks every plugin once.
inline auto ask_all(std::shared_ptr<const placement::PolicyRequest> request) {
  return [request = std::move(request)](const std::vector<placement::Vote>& votes) {
    Answers answers;
    for (const placement::Vote& vote : votes) {
      const auto verdicts = vote.policy->score(*request);
      answers.push_back(!verdicts ? verdicts.error().message : verdicts->empty() ? "" : (*verdicts)[0].reason);
    }
    return answers;
  };
}

}  // namespace topolet::plugin
