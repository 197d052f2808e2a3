// Plugins that are asked on the calling thread, with the time that each of their calls takes.
#pragma once

#include <fmt/format.h>
#include <time.h>

#include <cstddef>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/placement/policy.hpp"
#include "core/plugin/call/plugin_policy.hpp"

namespace topolet::bench {

/// CPU time, since others may be using the machine.
inline double cpu_ms(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

template <class Run>
double time_of(clockid_t clock, Run run) {
  const double began = cpu_ms(clock);
  run();
  return cpu_ms(clock) - began;
}

/// Measured times, by name.
class Samples {
 public:
  void add(const std::string& what, double ms) { times_[what].push_back(ms); }
  template <class Run>
  auto time(const std::string& what, Run run) {
    const double began = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
    auto result = run();
    add(what, cpu_ms(CLOCK_THREAD_CPUTIME_ID) - began);
    return result;
  }
  const std::map<std::string, std::vector<double>>& times() const { return times_; }

 private:
  std::map<std::string, std::vector<double>> times_;
};

/// The views of requests that plugins see. A view is made once for each request; the ledger's is made from that of the
/// last decision, as PolicyThread does it.
class Views {
 public:
  explicit Views(std::shared_ptr<const topology::Topology> topology)
      : topology_(std::make_shared<const plugin::AbiTopology>(std::move(topology))) {}

  const plugin::AbiRequest& of(const placement::PolicyRequest& request, Samples& samples) {
    if (viewed_ != &request) {
      view_.reset();
      view_ = samples.time("view of a request", [&] {
        return std::make_unique<plugin::AbiRequest>(request, topology_, ledger_of(request), memory_);
      });
      viewed_ = &request;
    }
    return *view_;
  }
  /// The requests of a decision are gone when it has been made.
  void forget_request() { viewed_ = nullptr; }

 private:
  const std::shared_ptr<plugin::AbiLedger>& ledger_of(const placement::PolicyRequest& request) {
    if (ledger_ == nullptr) {
      ledger_ = std::make_shared<plugin::AbiLedger>(request.ledger, *topology_, memory_);
    } else {
      ledger_->update(request.ledger);
    }
    return ledger_;
  }

  const std::shared_ptr<const plugin::AbiTopology> topology_;
  const plugin::LentMemory memory_{.pool = std::make_shared<plugin::LentPool>()};
  std::shared_ptr<plugin::AbiLedger> ledger_;
  std::unique_ptr<plugin::AbiRequest> view_;
  const placement::PolicyRequest* viewed_ = nullptr;
};

/// Asks a plugin on this thread and takes the time of each call.
class TimedPolicy final : public placement::Policy {
 public:
  TimedPolicy(std::shared_ptr<plugin::PluginPolicy> plugin, Views& views, Samples& samples)
      : plugin_(std::move(plugin)), views_(views), samples_(samples) {}

  const std::string& name() const override { return plugin_->name(); }

  Result<std::vector<placement::Verdict>> score(const placement::PolicyRequest& request) override {
    return ask<std::vector<placement::Verdict>>(request, "score",
                                                [&](const auto& view) { return plugin_->score(view); });
  }
  Result<std::vector<NodeSet>> propose(const placement::PolicyRequest& request) override {
    return ask<std::vector<NodeSet>>(request, "propose", [&](const auto& view) { return plugin_->propose(view); });
  }
  Result<placement::Pick> pick(const placement::PolicyRequest& request, std::size_t candidate, const CpuSet& usable,
                               std::size_t count) override {
    return ask<placement::Pick>(request, "pick",
                                [&](const auto& view) { return plugin_->pick(view, candidate, usable, count); });
  }
  Result<placement::Pick> order_pick(const placement::PolicyRequest& request, std::size_t candidate,
                                     const CpuSet& usable, std::size_t count) override {
    return ask<placement::Pick>(request, "order", [&](const auto& view) {
      return plugin_->pick(view, candidate, usable, count, TOPOLET_PICK_ORDER);
    });
  }
  Result<placement::Pick> review_pick(const placement::PolicyRequest& request, std::size_t candidate,
                                      const CpuSet& usable, const CpuSet& chosen) override {
    return ask<placement::Pick>(request, "review", [&](const auto& view) {
      return plugin_->pick(view, candidate, usable, request.exclusive_cpus, TOPOLET_PICK_REVIEW, chosen);
    });
  }
  Result<placement::Adjustment> adjust(const placement::PolicyRequest& request,
                                       const placement::ChosenPlacement& chosen) override {
    return ask<placement::Adjustment>(request, "adjust",
                                      [&](const auto& view) { return plugin_->adjust(view, chosen); });
  }

 private:
  template <class T, class Call>
  Result<T> ask(const placement::PolicyRequest& request, const char* call, Call make_call) {
    const plugin::AbiRequest& view = views_.of(request, samples_);
    Result<T> answer = samples_.time(fmt::format("{} {}", name(), call), [&] { return make_call(view); });
    if (!answer) throw std::runtime_error(answer.error().message);
    return answer;
  }

  std::shared_ptr<plugin::PluginPolicy> plugin_;
  Views& views_;
  Samples& samples_;
};

}  // namespace topolet::bench
