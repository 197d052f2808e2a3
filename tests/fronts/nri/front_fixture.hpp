// The front for NRI between a runtime and an engine that do what a test says.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/fronts/nri/front.hpp"
#include "core/fronts/nri/nri.pb.h"
#include "tests/fronts/nri/fake_runtime.hpp"
#include "tests/support/error_log.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::nri {

using operations::Outcome;

/// A value that one thread gives and another one waits for, in order.
template <class Value>
class Mailbox {
 public:
  void put(Value value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
  }
  Value take() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [this] { return !values_.empty(); })) {
      ADD_FAILURE() << "nothing came";
      return Value();
    }
    Value value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return values_.empty();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Value> values_;
};

/// An engine that hands what it is asked to the test.
class AskedEngine final : public operations::OperationHandler {
 public:
  void create(std::shared_ptr<operations::CreateOperation> operation) override { creates.put(std::move(operation)); }
  void update(std::shared_ptr<operations::UpdateOperation> operation) override { updates.put(std::move(operation)); }
  void start(std::shared_ptr<operations::TargetOperation> operation) override { starts.put(std::move(operation)); }
  void stop(std::shared_ptr<operations::TargetOperation> operation) override { note("stop", *operation); }
  void remove(std::shared_ptr<operations::TargetOperation> operation) override { note("remove", *operation); }
  void run_sandbox(std::shared_ptr<operations::RunSandboxOperation> operation) override {
    notes.put("run " + operation->sandbox().pod_name);
    operation->answer();
  }
  void stop_sandbox(std::shared_ptr<operations::TargetOperation> operation) override { note("stop pod", *operation); }
  void remove_sandbox(std::shared_ptr<operations::TargetOperation> operation) override {
    note("remove pod", *operation);
  }
  void on_exits(std::vector<operations::ExitSeen> exits) override {
    for (const operations::ExitSeen& exit : exits)
      notes.put("exit " + exit.container_id + " " + std::to_string(exit.exit_code.value_or(-1)));
  }
  void on_connected() override { notes.put("connected"); }
  void on_own_update(std::string container_id, operations::ContainerCpuset /*sent*/,
                     std::function<void(const operations::ContainerCpuset&)> tell) override {
    notes.put("own " + container_id);
    tell(now);
  }
  bool shows_quotas() const override { return false; }
  std::optional<operations::CfsQuota> quota_to_show(const std::string& /*container_id*/) const override { return {}; }

  Mailbox<std::shared_ptr<operations::CreateOperation>> creates;
  Mailbox<std::shared_ptr<operations::UpdateOperation>> updates;
  Mailbox<std::shared_ptr<operations::TargetOperation>> starts;
  Mailbox<std::string> notes;
  operations::ContainerCpuset now;  ///< what a container is to have by the time that an update comes back

 private:
  void note(const std::string& what, operations::TargetOperation& operation) {
    notes.put(what + " " + operation.target());
    operation.answer();
  }
};

/// A runtime that takes every update, and answers when the test says so.
class HeldUpdates final : public operations::ContainerRuntime {
 public:
  void update(const std::string& /*container_id*/, const operations::ContainerCpuset& set,
              std::function<void(Status)> done) override {
    sent = set;
    under_way = std::move(done);
  }
  void list_containers(std::function<void(Result<std::vector<operations::ContainerInfo>>)> done) override {
    done(std::vector<operations::ContainerInfo>());
  }
  void list_sandboxes(std::function<void(Result<std::vector<operations::Sandbox>>)> done) override {
    done(std::vector<operations::Sandbox>());
  }
  void inspect(const std::string& /*container_id*/,
               std::function<void(Result<operations::ContainerDetail>)> done) override {
    done(Error{Code::kNotFound, "no such container"});
  }
  operations::ContainerCpuset sent;
  std::function<void(Status)> under_way;
};

inline lens::PodEvent event_of(const std::string& container_id) {
  lens::PodEvent event;
  event.mutable_pod()->set_id("s1");
  event.mutable_pod()->set_uid("u1");
  event.mutable_pod()->set_name("trader-0");
  event.mutable_pod()->set_pod_namespace("shop");
  event.mutable_pod()->mutable_linux()->set_cgroup_parent("/kubepods/podu1");
  if (container_id.empty()) return event;
  event.mutable_container()->set_id(container_id);
  event.mutable_container()->set_sandbox_id("s1");
  event.mutable_container()->set_name("trader");
  return event;
}

inline std::string create_request(const std::string& container_id = "c1") {
  lens::PodEvent event = event_of(container_id);
  lens::Resources& resources = *event.mutable_container()->mutable_linux()->mutable_resources();
  resources.mutable_cpu()->mutable_shares()->set_value(2048);
  resources.mutable_cpu()->mutable_quota_us()->set_value(200000);
  resources.mutable_cpu()->mutable_period_us()->set_value(100000);
  resources.mutable_memory()->mutable_limit_bytes()->set_value(1 << 30);
  event.mutable_container()->mutable_linux()->mutable_oom_score_adj()->set_value(-997);
  event.mutable_container()->add_env("TOKEN=a=b");
  event.mutable_container()->add_env("EMPTY");
  return event.SerializeAsString();
}

inline lens::CreateResponse create_answer(const Result<std::string>& answer) {
  lens::CreateResponse response;
  EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
  EXPECT_TRUE(response.ParseFromString(answer.value_or("\xff")));
  return response;
}

class NriFrontTest : public ::testing::Test {
 protected:
  void connect(const std::string& nri_version = "v0.12.3",
               std::chrono::milliseconds request_timeout = std::chrono::minutes(1)) {
    runtime_.accept_plugin();
    lens::ConfigureRequest request;
    request.set_runtime_name("containerd");
    request.set_nri_version(nri_version);
    request.set_request_timeout_ms(request_timeout.count());
    configured_ = runtime_.call("Configure", request.SerializeAsString()).value_or("");
  }
  /// Has a create answered with CPUs 2 and 3; returns its outcome.
  std::future<Outcome> admit_create() {
    runtime_.send_call("CreateContainer", create_request());
    const auto create = engine_.creates.take();
    const auto outcome = std::make_shared<std::promise<Outcome>>();
    create->admit({operations::ContainerCpuset{{2, 3}, {}}, {}, {{"web", {{0, 1}, {}}}}},
                  [outcome](const Outcome& told) { outcome->set_value(told); });
    answer_ = create_answer(runtime_.await_answer());
    return outcome->get_future();
  }
  static Outcome wait_for(std::future<Outcome>& outcome) {
    if (outcome.wait_for(std::chrono::minutes(1)) == std::future_status::ready) return outcome.get();
    ADD_FAILURE() << "no outcome came";
    return {};
  }
  Result<std::string> tell(const std::string& method, const std::string& container_id) {
    return runtime_.call(method, event_of(container_id).SerializeAsString());
  }
  Result<std::string> change_state(Event event, const std::string& container_id) {
    const lens::PodEvent about = event_of(container_id);
    lens::StateChange change;
    change.set_event(static_cast<int>(event));
    *change.mutable_pod() = about.pod();
    if (about.has_container()) *change.mutable_container() = about.container();
    return runtime_.call("StateChange", change.SerializeAsString());
  }

  std::vector<std::string> errors_;
  const std::shared_ptr<Log> log_ = testing::make_error_log(errors_);
  TempDir directory_;
  FakeRuntime runtime_{directory_.path() / "nri.sock"};
  AskedEngine engine_;
  HeldUpdates updates_;
  OwnUpdates own_updates_{updates_};
  std::string configured_;
  lens::CreateResponse answer_;
  SettableNow settable_{placement::all_memory_modes()};
  Front front_{directory_.path() / "nri.sock",
               {engine_,
                {},
                own_updates_,
                [](const operations::ForeignCpuset& /*found*/, const operations::OnForeignCpusetJudged& verdict) {
                  verdict("no other plugin may set it");
                },
                std::nullopt,
                *log_,
                [this](const RuntimeFacts& runtime) { settable_.note(runtime); }}};
};

}  // namespace topolet::nri
