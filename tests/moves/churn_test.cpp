// Pods come and go on machines that are nearly full, while topolet moves what it may.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/moves/move_judge.hpp"
#include "tests/simulate/simulated_node.hpp"

namespace topolet::moves {
namespace {

struct Machine {
  const char* name;
  std::string topology;
};

void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.topology; }

/// Pods of 1 to 12 CPUs, some of them with a device, and others that share CPUs; never more than 95 % of the CPUs are
/// asked for.
class MovingChurn {
 public:
  MovingChurn(const Machine& machine, std::uint64_t seed, const std::vector<std::string>& flags)
      : node_(machine.topology, flags),
        topology_(node_.snapshot().topology),
        judge_(topology_, MoveRules::from_flags(flags)),
        random_(seed) {
    for (const topology::Node& node : topology_->nodes) {
      tell(fmt::format(R"({{"op":"device","path":"/dev/nvidia{}","kind":"gpu","nodes":"{}"}})", node.os_index,
                       node.os_index));
    }
  }

  void run(int pods) {
    for (int i = 0; i < pods && judge_.faults().empty(); ++i) arrive(i);
  }

  const MoveJudge& judge() const { return judge_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  simulate::OperationResult tell(const std::string& line) {
    lines_.push_back(line);
    const auto operation = simulate::parse_operation(line);
    if (!operation) throw std::logic_error(operation.error().message);
    simulate::OperationResult result = node_.apply(line);
    judge_.observe(*operation, result);
    return result;
  }

  void pass(std::uint64_t seconds) { tell(fmt::format(R"({{"op":"clock","advance_s":{}}})", seconds)); }

  void end_one() {
    auto pod = running_.begin();
    std::advance(pod, static_cast<std::ptrdiff_t>(below(running_.size())));
    used_milli_ -= pod->second;
    tell(fmt::format(R"({{"op":"remove_pod","pod":"{}"}})", pod->first));
    running_.erase(pod);
  }

  void arrive(int number) {
    const std::int64_t milli = below(4) == 0 ? 500 : 1000 * std::int64_t{kSizes[below(std::size(kSizes))]};
    const auto limit = static_cast<std::int64_t>(topology_->allowed.size()) * 950;
    while (used_milli_ + milli > limit) end_one();
    pass(1 + below(60));
    const std::string pod = fmt::format("p{}", number);
    tell(fmt::format(R"({{"op":"run_pod","pod":"{}","qos":"guaranteed"}})", pod));
    const std::string device = below(4) == 0 ? fmt::format(R"(,"devices":["/dev/nvidia{}"])",
                                                           topology_->nodes[below(topology_->nodes.size())].os_index)
                                             : "";
    tell(fmt::format(R"({{"op":"create","pod":"{}","container":"main","cpu_request_milli":{},"cpu_limit_milli":{},)"
                     R"("memory_request":1048576,"memory_limit":1048576{}}})",
                     pod, milli, milli, device));
    running_[pod] = milli;
    used_milli_ += milli;
    pass(below(120));
  }

  static constexpr int kSizes[] = {1, 1, 2, 2, 3, 4, 4, 6, 8, 12};

  simulate::SimulatedNode node_;
  const std::shared_ptr<const topology::Topology> topology_;
  MoveJudge judge_;
  std::mt19937_64 random_;
  std::map<std::string, std::int64_t> running_;  ///< by pod, what it asks for
  std::int64_t used_milli_ = 0;
  std::vector<std::string> lines_;
};

class TestMovingChurn : public ::testing::TestWithParam<Machine> {};

TEST_P(TestMovingChurn, KeepsAllPromises) {
  const std::vector<std::string> flags = {"--plugins.enable=numa", "--plugins.enable=gpu", "--placement.heal=all",
                                          "--placement.make-room=all"};
  for (const std::uint64_t seed : {1U, 2U}) {
    MovingChurn churn(GetParam(), seed, flags);
    churn.run(60);
    std::string history;
    if (!churn.judge().faults().empty()) history = fmt::format("{}", fmt::join(churn.lines(), "\n"));
    EXPECT_EQ(fmt::format("{}", fmt::join(churn.judge().faults(), "\n")), "") << history;
  }
}

TEST_P(TestMovingChurn, MovesNobodyWhereThatIsOff) {
  MovingChurn churn(
      GetParam(), 1,
      {"--plugins.enable=numa", "--plugins.enable=gpu", "--placement.heal=off", "--placement.make-room=off"});
  churn.run(40);
  EXPECT_EQ(churn.judge().chosen_moves(), 0U);
  EXPECT_TRUE(churn.judge().faults().empty());
}

INSTANTIATE_TEST_SUITE_P(OnEachMachine, TestMovingChurn,
                         ::testing::Values(Machine{"2x32", "pack:2 numa:1 l3:4 core:4 pu:2"},
                                           Machine{"8x8", "pack:2 numa:4 core:4 pu:2"},
                                           Machine{"4x18", "pack:2 numa:2 core:9 pu:2"},
                                           Machine{"4x16", "pack:2 numa:2 l3:2 core:4 pu:2"},
                                           Machine{"8x16", "pack:2 numa:4 core:8 pu:2"}),
                         [](const auto& machine) { return std::string("On") + machine.param.name; });

}  // namespace
}  // namespace topolet::moves
