// Brings what the runtime has and what the ledger holds together: at start, after a reconnect, and every so often.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/daemon/lifecycle.hpp"
#include "core/daemon/room.hpp"

namespace topolet {

/// Lives on the loop's thread. One run at a time; a wish that comes during a run makes one more run after it.
class Reconciler {
 public:
  using Done = std::function<void(const Status&)>;

  Reconciler(Room& room, Lifecycle& lifecycle) : room_(room), lifecycle_(lifecycle) {}

  /// Lists sandboxes and containers, and then: binds doubtful creates, releases what exited or is gone, books foreign
  /// containers, adopts containers that were made past topolet, and checks the CPUs of every container that it has not
  /// told itself since it started. The error is the runtime's.
  void run(Done done);

  /// Releases what has been in doubt longer than `timeout`, and what was kept long enough for containers that failed.
  void expire(std::chrono::milliseconds timeout);
  bool has_doubts() const;

 private:
  /// What was known when the lists were asked for: only of this may a list say that it is not there.
  struct Pass {
    std::set<std::string> bound;
    std::set<ContainerKey> in_doubt;
    std::vector<std::string> sandboxes;
    std::vector<Sandbox> listed_sandboxes;
    std::vector<ContainerInfo> listed;
    std::vector<ContainerDetail> strangers;
    std::size_t inspecting = 0;
  };
  using PassPtr = std::shared_ptr<Pass>;

  void begin();
  void compare_sandboxes(const PassPtr& pass);
  void compare_containers(const PassPtr& pass);
  void visit(const PassPtr& pass, const ContainerInfo& container);
  void end_exited(const PassPtr& pass, const std::string& container_id);
  void inspect(const PassPtr& pass, const ContainerInfo& container, bool stranger);
  void inspected_own(const ContainerInfo& container, const Result<ContainerDetail>& detail);
  void adopt_all(const PassPtr& pass);
  void adopt(const ContainerDetail& detail);
  void end(const Status& status);
  Workload identify(const ContainerInfo& container) const;

  Room& room_;
  Lifecycle& lifecycle_;
  bool running_ = false;
  std::vector<Done> waiting_;
  std::vector<Done> current_;
};

}  // namespace topolet
