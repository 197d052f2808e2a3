// A kubelet that acts at random: pods come and go; their containers are created, started, resized, stopped and created
// again. Each call of a pod waits for the answer to the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/cri/call.hpp"
#include "core/cri/messages/requests.hpp"
#include "core/simulate/kubelet.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/verifying_runtime.hpp"

namespace topolet::testing {

/// One thread.
class RandomKubelet {
 public:
  using Answered = std::function<void(const cri::RuntimeResponse&)>;
  using Send = std::function<void(std::string method, std::string request, Answered answered)>;

  struct Habits {
    std::size_t most_pods = 6;         ///< at a time
    std::size_t resizes_percent = 30;  ///< of what is done to a running Guaranteed container
    std::size_t stops_percent = 10;    ///< of what is done to a running container
  };
  struct Deps {
    Dice& dice;
    VerifyingRuntime& runtime;  ///< what lists and events tell it
    Send send;
    Habits habits;
  };
  explicit RandomKubelet(Deps deps) : deps_(std::move(deps)) {}

  /// Makes one call, of any pod that does not wait for an answer. False if there was nothing to do.
  bool act();
  /// Makes the calls that go on until they have succeeded: resizes. False if there is none.
  bool finish_resizes();
  /// The same for pods that are to end, which are all by now. False if there are none.
  bool end_pods();
  bool waits_for_answers() const;

 private:
  enum class Phase { kNew, kRunning, kStopping, kRemoving };
  struct PlannedContainer {
    std::string name;
    std::int64_t milli = 0;  ///< 0: BestEffort
    std::uint32_t next_attempt = 0;
    std::string resizing = {};  ///< a container whose resize has not been answered for good
  };
  struct Pod {
    simulate::SimulatedPod spec;
    Phase phase = Phase::kNew;
    bool waits = false;
    std::vector<PlannedContainer> containers;
    std::set<std::string> known = {};    ///< containers whose create was answered
    std::set<std::string> started = {};  ///< containers that were asked to start, with whatever result
  };
  using Listed = std::map<std::string, VerifyingRuntime::Container>::value_type;

  void add_pod();
  bool act_on(Pod& pod);
  bool act_on(Pod& pod, PlannedContainer& wanted);
  bool act_on_created(Pod& pod, PlannedContainer& wanted, const Listed& newest);
  bool act_on_running(Pod& pod, PlannedContainer& wanted, const Listed& newest);
  bool clean_up(Pod& pod);
  void run_pod(Pod& pod);
  void stop_pod(Pod& pod);
  void remove_pod(Pod& pod);
  void create(Pod& pod, PlannedContainer& wanted);
  void start(Pod& pod, const std::string& id);
  void resize(Pod& pod, PlannedContainer& wanted);
  void send(Pod& pod, std::string method, std::string request, Answered answered);
  bool is_running(const std::string& container_id) const;
  const Listed* newest(const Pod& pod, const PlannedContainer& wanted) const;
  std::int64_t any_size(bool guaranteed);

  Deps deps_;
  std::map<std::string, Pod> pods_;  ///< by uid
  std::uint64_t last_number_ = 0;
};

}  // namespace topolet::testing
