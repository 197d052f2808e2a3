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
#include <vector>

#include "core/base/log_fwd.hpp"
#include "core/cri/messages/runtime_client.hpp"
#include "core/cri/socket/listener.hpp"
#include "core/cri/wire/proxy.hpp"
#include "core/engine/engine.hpp"
#include "core/fronts/cri/cri_front.hpp"
#include "core/placement/candidates.hpp"
#include "core/topology/discover.hpp"
#include "store/store.hpp"
#include "tests/daemon/manual_loop.hpp"
#include "tests/integration/cri_client.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/served_runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet::testing {

using integration::as_grpc;

/// The request of a create.
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
  grpc::Status create(const CreateSpec& ask, std::string& id);
  grpc::Status start_container(const std::string& id);
  /// The same for a client that may give up.
  grpc::Status create(const CreateSpec& ask, std::string& id, grpc::ClientContext& context);
  grpc::Status start_container(const std::string& id, grpc::ClientContext& context);
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
    return engine_->fits({}, patience, [] { return Status(); });
  }
  /// Waits until so many calls of that method have been handed to the engine.
  bool has_arrived(const std::string& method, int count) const {
    return eventually([&] { return arrived(method) >= count; });
  }
  /// The runtime can be reached again.
  void reconnect() const { front_->on_connected(); }
  /// Waits until the engine has done what it can do now.
  void settle() const;
  /// Runs it on the engine's loop.
  void on_loop(const std::function<void()>& work) const {
    engine_->read_ledger([work](const engine::Ledger&) { work(); });
  }

  /// Returns the events that plugins would have received: "placed POD CPUS" and the like, in order.
  std::vector<std::string> published_events() const TOPOLET_EXCLUDES(mutex_);
  /// A plugin wishes at the next tick that the pod's container be placed anew.
  void request_move(const std::string& pod) TOPOLET_EXCLUDES(mutex_);

  static bool eventually(const std::function<bool()>& condition) { return testing::eventually(condition); }

  /// From the next start() on the engine's time passes with pass() only.
  bool time_stands = false;
  void pass(std::chrono::milliseconds time) { loop_->advance(time); }

  /// Patient with the store: a busy disk must not put a `gap` among the rows that a test counts.
  engine::Engine::Options options{.runtime_handlers = {.only = {{"default", "runc"}}},
                                  .reconcile_every = std::chrono::hours(1),
                                  .writer_options = {.patience = std::chrono::minutes(1)}};
  placement::PlacementRules rules;
  std::vector<placement::Vote> votes;
  CpuSet reserved;
  CpuSet isolated;
  CpuSet offline;

 private:
  void record_event(const plugin::ContainerEvent& container_event) TOPOLET_EXCLUDES(mutex_);
  std::vector<plugin::MoveRequest> take_wishes() TOPOLET_EXCLUDES(mutex_);
  void on_call(const std::shared_ptr<cri::Call>& call) TOPOLET_EXCLUDES(mutex_);
  int arrived(const std::string& method) const TOPOLET_EXCLUDES(mutex_);
  std::unique_ptr<engine::Loop> make_loop();

  mutable Mutex mutex_;
  std::vector<std::string> published_events_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<plugin::MoveRequest> wishes_ TOPOLET_GUARDED_BY(mutex_);
  std::map<std::string, int> arrived_ TOPOLET_GUARDED_BY(mutex_);  ///< calls by method
  ManualClock clock_;
  ManualLoop* loop_ = nullptr;  ///< the engine's, where time stands
  TempDir directory_;
  std::shared_ptr<Log> log_ = make_silent_log();
  std::unique_ptr<ServedRuntime> runtime_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<cri::Listener> listener_;
  std::unique_ptr<cri::Proxy> proxy_;
  std::unique_ptr<cri::RuntimeClient> runtime_client_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<cri::CriFront> front_;
  std::unique_ptr<integration::CriClient> kubelet_;
  std::map<std::string, std::string> sandboxes_;
};

/// A rig with other rules than the usual ones; four CPUs on two nodes.
struct RuledRig : CoreRig {
  explicit RuledRig(const std::function<void(CoreRig&)>& change) {
    stop();
    change(*this);
    start();
  }
};

/// Who has ended holds nothing.
inline void keep_nothing(CoreRig& rig) { rig.rules.crash_hold = {}; }

}  // namespace topolet::testing
