// A container runtime in memory and in virtual time that loses, delays and refuses answers, and that judges at every
// change whether somebody runs on CPUs which a container has for itself.
//
// It does what containerd 1.6 does: a created container is a spec and no more; a start takes the spec's cpuset when it
// begins and a while until there is a process; an update of a container whose start is under way only edits the spec;
// updates of one container are carried out one after the other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/cri/call.hpp"
#include "core/cri/messages/lens.pb.h"
#include "tests/support/dice.hpp"
#include "tests/support/kernel_tree.hpp"
#include "tests/support/trace.hpp"
#include "tests/support/virtual_time.hpp"

namespace topolet::testing {

enum class RunState : std::int32_t { kCreated = 0, kRunning = 1, kExited = 2 };  // as in CRI

/// One thread.
class VerifyingRuntime final : public cri::Runtime {
 public:
  /// The number of calls, of a thousand, that go wrong in each way; at most 1000 in all.
  struct Faults {
    std::size_t refused = 0;                ///< nothing is done
    std::size_t request_lost = 0;           ///< nothing is done, and the caller does not learn that
    std::size_t answer_lost = 0;            ///< done, but the caller does not learn that
    std::size_t answered_early = 0;         ///< the caller loses touch with it while it is being done
    std::size_t hung = 0;                   ///< nothing is done, and the caller waits until its time is out
    std::size_t start_failed = 0;           ///< of a thousand starts: no process comes of it
    std::chrono::milliseconds slowest{20};  ///< of the steps that a call takes
    std::optional<std::chrono::milliseconds> slowest_update = {};  ///< of an update's; none: as of other calls
    std::chrono::milliseconds slowest_start{20};  ///< from the beginning of a start until there is a process
  };
  struct Options {
    /// A second create of the same container is answered with the first one's id, as by CRI-O, instead of an error.
    bool create_again_gives_same_id = false;
    Faults faults = {};
  };
  struct Deps {
    VirtualTime& time;
    Dice& dice;
    Trace& trace;
    KernelTree& kernel;
  };

  struct Process {
    std::int64_t pid = 0;
    CpuSet cpuset;       ///< that it was given
    CpuSet cpus = {};    ///< where the kernel lets it run
    bool alone = false;  ///< all of them were given to it alone
    /// None of those that it was given is online, so the kernel lets it run on all that are.
    bool lost_all = false;
  };
  struct Container {
    std::string sandbox_id;
    lens::ContainerConfig config;  ///< as it was made
    lens::Resources spec;          ///< as it is by now
    std::string cgroup_parent;
    bool placed_alone = false;      ///< has just the CPUs of its own that it asked for, since it was made
    std::size_t asked_to_have = 0;  ///< whole CPUs, by a resize that may or may not have come through
    RunState state = RunState::kCreated;
    bool superseded = false;  ///< never ran, and a next attempt was made
    bool starting = false;
    bool removing = false;
    std::optional<Process> process = {};
    std::int32_t exit_code = 0;
    std::chrono::milliseconds updates_until{};  ///< the last update under way will be done by then
    std::size_t updates_asked = 0;              ///< and not answered

    std::string name() const;  ///< for people; no other container has it
    CpuSet spec_cpus() const;
    bool is_guaranteed() const;
    /// Whole CPUs that a Guaranteed container asks for; 0 for any other.
    std::size_t whole_cpus() const;
    bool has_its_own(const CpuSet& cpus) const;
  };
  VerifyingRuntime(Options options, Deps deps) : options_(options), deps_(deps) {}

  void call(std::string path, std::string request, std::chrono::milliseconds timeout,
            std::function<void(const cri::RuntimeResponse&)> done) override;
  /// Nobody who has called is there any more: their answers are dropped. What they asked for is carried out or not.
  void lose_callers();
  void set_faults(const Faults& faults) { options_.faults = faults; }

  /// The kubelet asks the container to be of another size. From its next update on it may have so many CPUs for itself,
  /// or none, whatever becomes of the call that asks for it.
  void expect_resize(const std::string& container_id, std::int64_t milli);
  /// The kubelet asks for the next attempt: topolet may have given up this one, whether or not that create arrives.
  void may_be_superseded(const std::string& container_id) { containers_.at(container_id).superseded = true; }

  /// CPUs go offline, or come back. A process has those of its cpuset that are online, as in a cgroup of version 2; one
  /// that has lost all of them runs on those of its parent, and is in nobody's way.
  void set_online(const CpuSet& online);

  /// The container's process ends by itself.
  void exit(const std::string& container_id, std::int32_t exit_code);

  const std::map<std::string, Container>& containers() const { return containers_; }
  const std::map<std::string, lens::PodSandbox>& sandboxes() const { return sandboxes_; }
  std::string list_containers() const;  ///< a ListContainersResponse

  /// Who ran, for the first time, on whose CPUs; nothing as long as nobody did.
  const std::optional<std::string>& violation() const { return violation_; }
  /// Who was sent an update, for the first time, while another one was under way.
  const std::optional<std::string>& overtaken() const { return overtaken_; }

  /// Hears of every container whose process ends. May be empty.
  std::function<void(const std::string& container_id)> on_exited;

 private:
  struct Request {
    std::string method;
    std::string body;
    std::function<void(const cri::RuntimeResponse&)> done;  ///< empty once answered
    bool lose_answer = false;
    bool begun = false;
    bool dies = false;  ///< has no effect any more
  };
  using RequestPtr = std::shared_ptr<Request>;
  using Handler = void (VerifyingRuntime::*)(const RequestPtr&);

  void begin(const RequestPtr& request);
  void end(const RequestPtr& request, cri::RuntimeResponse answer);
  void answer(const RequestPtr& request, const cri::RuntimeResponse& answer);
  void drop_finished_requests();
  void later(std::function<void()> work) { later(options_.faults.slowest, std::move(work)); }
  void later(std::chrono::milliseconds slowest, std::function<void()> work);

  static std::string name_of(const std::string& sandbox_id, const lens::ContainerMetadata& metadata);
  void run_pod(const RequestPtr& request);
  void stop_pod(const RequestPtr& request);
  void remove_pod(const RequestPtr& request);
  void list_pods(const RequestPtr& request);
  void create(const RequestPtr& request);
  void start(const RequestPtr& request);
  void stop(const RequestPtr& request);
  void remove(const RequestPtr& request);
  void update(const RequestPtr& request);
  void list(const RequestPtr& request);
  void status(const RequestPtr& request);

  void count_updates(Request& request);
  void supersede_earlier(const lens::CreateContainerRequest& asked);
  cri::RuntimeResponse make(const std::string& id, const lens::CreateContainerRequest& asked);
  std::optional<cri::RuntimeResponse> cannot_start(const std::string& id) const;
  void begin_process(const RequestPtr& request, const std::string& id, const CpuSet& cpus, bool alone);
  void is_running(const RequestPtr& request, const std::string& id);
  cri::RuntimeResponse apply(const lens::UpdateContainerResourcesRequest& asked);
  void die(const std::string& id, std::int32_t exit_code);
  void end_all_in(const std::string& sandbox_id);
  void erase(const std::string& id);
  bool is_ready(const std::string& sandbox_id) const;
  Container* find(const std::string& id);
  void put_on_online(Process& process, const CpuSet& cpuset);
  void judge();

  Options options_;
  Deps deps_;
  std::optional<CpuSet> online_;  ///< none: all are
  std::map<std::string, lens::PodSandbox> sandboxes_;
  std::map<std::string, Container> containers_;
  std::map<std::string, std::string> names_;  ///< reserved from the beginning of a create; the id, once there is one
  std::vector<std::weak_ptr<Request>> requests_;
  std::uint64_t last_number_ = 0;
  std::int64_t last_pid_ = 1000;
  std::optional<std::string> violation_;
  std::optional<std::string> overtaken_;
};

}  // namespace topolet::testing
