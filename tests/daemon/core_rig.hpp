// The daemon's core between a client and a runtime in memory: real sockets, real proxy, real store; only the machine is
// made up and no plugin is asked.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/log.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/cri/wire/proxy.hpp"
#include "core/engine/engine.hpp"
#include "core/placement/candidates.hpp"
#include "core/topology/discover.hpp"
#include "store/store.hpp"
#include "tests/integration/cri_client.hpp"
#include "tests/support/served_runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

using integration::as_grpc;

/// What a create asks for.
struct CreateSpec {
  std::string pod = "pod";
  std::string name = "main";
  std::int64_t cpus = 0;  ///< whole CPUs of a Guaranteed container; 0: BestEffort
  std::string cpuset = {};
  std::uint32_t attempt = 0;
  std::string mems = {};
  std::int64_t milli = 0;  ///< thousandths of a CPU of a Guaranteed container; for `cpus`
  std::map<std::string, std::string> pod_annotations = {};
  std::map<std::string, std::string> annotations = {};
  std::map<std::string, std::string> env = {};
  std::int64_t pod_cpus = 0;  ///< whole CPUs of the whole pod; 0: not told

  std::int64_t cpu_milli() const { return milli != 0 ? milli : cpus * 1000; }
};

class CoreRig {
 public:
  CoreRig() : runtime_(std::make_unique<ServedRuntime>(file("runtime.sock"))) { start(); }
  ~CoreRig() { stop(); }
  CoreRig(const CoreRig&) = delete;
  CoreRig& operator=(const CoreRig&) = delete;

  ServedRuntime& runtime() { return *runtime_; }
  std::string file(const std::string& name) const { return directory_.file(name); }

  /// Starts topolet's side, with the same directory as before.
  void start();
  /// Ends it as abruptly as can be done in one process: nothing is written at the end.
  void stop();

  std::string run_pod(const std::string& name, const std::string& handler = "",
                      const std::map<std::string, std::string>& annotations = {});
  grpc::Status create(const CreateSpec& ask, std::string& id,
                      std::chrono::milliseconds timeout = std::chrono::seconds(20));
  grpc::Status start_container(const std::string& id, std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    return as_grpc(kubelet_->start(id, timeout));
  }
  grpc::Status stop_container(const std::string& id) { return as_grpc(kubelet_->stop(id)); }
  grpc::Status remove_container(const std::string& id) { return as_grpc(kubelet_->remove(id)); }
  grpc::Status update(const std::string& id, const runtime::v1::LinuxContainerResources& resources) {
    return as_grpc(kubelet_->update(id, resources));
  }
  /// An in-place resize to so many thousandths of a CPU, as the kubelet sends it.
  grpc::Status resize(const std::string& id, std::int64_t milli);
  grpc::Status stop_pod(const std::string& sandbox_id) { return as_grpc(kubelet_->stop_sandbox(sandbox_id)); }
  grpc::Status remove_pod(const std::string& sandbox_id) { return as_grpc(kubelet_->remove_sandbox(sandbox_id)); }
  void list() { EXPECT_TRUE(kubelet_->containers()); }

  /// A create that must work, then a start.
  std::string run(const CreateSpec& ask);

  /// The first column of what a query on the state database gives.
  std::vector<std::string> query(const std::string& sql) const;
  /// CPUs of a pod's container as the database has them; "" if it holds nothing.
  std::string held(const std::string& pod) const;

  engine::EngineSummary summary() const { return engine_->summary(std::chrono::minutes(1)).value(); }
  /// On the calling thread.
  Result<engine::Engine::NodeFits> fits(std::chrono::milliseconds patience) const {
    return engine_->fits({}, patience);
  }
  /// Runs it on the engine's loop.
  void on_loop(const std::function<void()>& work) const {
    engine_->read_ledger([work](const engine::Ledger&) { work(); });
  }

  /// What plugins would have heard: "placed POD CPUS" and the like, in order.
  std::vector<std::string> published_events() const TOPOLET_EXCLUDES(mutex_);
  /// A plugin wishes at the next tick that the pod's container be placed anew.
  void request_move(const std::string& pod) TOPOLET_EXCLUDES(mutex_);

  /// Waits up to 20 s.
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  /// Patient with the store: a busy disk must not put a `gap` among the rows that a test counts.
  engine::Engine::Options options{.placed_runtime_handlers = {"", "runc"},
                                  .reconcile_every = std::chrono::hours(1),
                                  .writer_options = {.patience = std::chrono::seconds(20)}};
  placement::PlacementRules rules;
  std::vector<placement::Vote> votes;
  CpuSet reserved;
  CpuSet isolated;
  CpuSet offline;

 private:
  void record_event(const plugin::ContainerEvent& container_event) TOPOLET_EXCLUDES(mutex_);
  std::vector<plugin::MoveRequest> take_wishes() TOPOLET_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  std::vector<std::string> published_events_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<plugin::MoveRequest> wishes_ TOPOLET_GUARDED_BY(mutex_);
  TempDir directory_;
  std::shared_ptr<Log> log_ = make_silent_log();
  std::unique_ptr<ServedRuntime> runtime_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<cri::Listener> listener_;
  std::unique_ptr<cri::Proxy> proxy_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<integration::CriClient> kubelet_;
  std::map<std::string, std::string> sandboxes_;
};

}  // namespace topolet::testing
