// A simulated topoletd that is watched as a real one.
#include "core/simulate/watch_socket.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/simulate/simulated_node.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/watch/watch_reader.hpp"

namespace topolet::simulate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using topolet::testing::Process;
using topolet::testing::watch_stub;
using topolet::testing::WatchReader;

class WatchedSimulation : public ::testing::Test {
 protected:
  watch::v1::FitsResponse fits(const watch::v1::FitsRequest& request = {}) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    watch::v1::FitsResponse response;
    const grpc::Status status = watch_stub(socket_)->Fits(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  std::vector<std::uint32_t> exclusive_cpus(const watch::v1::FitsRequest& request = {}) const {
    std::vector<std::uint32_t> cpus;
    const watch::v1::FitsResponse response = fits(request);
    for (const watch::v1::NodeFit& node : response.nodes()) cpus.push_back(node.exclusive_cpus());
    return cpus;
  }

  TempDir directory_;
  const std::string socket_ = directory_.file("watch.sock");
  SimulatedNode node_{"pack:2 numa:1(memory=8GB) core:4 pu:1",
                      {
                          "--plugins.enable=numa",
                          "--plugins.required.numa=true",
                          "--numa.policy=single-numa-node",
                      },
                      {.watch_socket = socket_}};
};

TEST_F(WatchedSimulation, TellsWhatItHasAndWhatChanges) {
  node_.guaranteed("web", 2);
  WatchReader reader(socket_);
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.containers(), 1U);
  EXPECT_TRUE(reader.state().reconciled());
  EXPECT_EQ(reader.state().generation(), node_.generation());
  ASSERT_EQ(reader.state().plugins_size(), 1);
  EXPECT_TRUE(reader.state().plugins(0).required());
  EXPECT_EQ(reader.state().plugins(0).options().at("policy"), "single-numa-node");
  node_.guaranteed("db", 3);
  ASSERT_TRUE(reader.read_until([&] { return reader.state().generation() == node_.generation(); }));
  EXPECT_EQ(reader.containers(), 2U);
}

TEST_F(WatchedSimulation, TellsWhatFitsNowAndBehindWhatIsBound) {
  EXPECT_THAT(exclusive_cpus(), ElementsAre(4, 4));
  node_.guaranteed("web", 3);
  EXPECT_THAT(exclusive_cpus(), ElementsAre(1, 4));
  EXPECT_EQ(fits().generation(), node_.generation());
  watch::v1::FitsRequest request;
  watch::v1::PendingContainer& bound = *request.add_pending();
  bound.set_pod_uid("db");
  bound.set_name("main");
  bound.set_qos("guaranteed");
  bound.set_cpu_request_milli(2000);
  bound.set_cpu_limit_milli(2000);
  bound.set_memory_request_bytes(1 << 20);
  bound.set_memory_limit_bytes(1 << 20);
  EXPECT_THAT(exclusive_cpus(request), ElementsAre(1, 2));
  EXPECT_EQ(node_.guaranteed("db", 5).outcome, "denied") << "what is asked changes nothing, and this never fits";
}

TEST_F(WatchedSimulation, PromisesFewerCpusOfANodeThatIsLowForAMinute) {
  WatchReader reader(socket_);
  ASSERT_TRUE(reader.read());
  EXPECT_TRUE(reader.capacities().empty());
  const std::int64_t now = node_.now().count();
  EXPECT_EQ(node_.apply(R"({"op":"capacity","node":1,"milli":2600,"for_s":300,"source":"host"})").reason,
            "2600 of 4000 milli-CPUs");
  ASSERT_TRUE(reader.read_until([&] { return !reader.capacities().empty(); }));
  const watch::v1::Capacity told = reader.capacities()[0];
  EXPECT_EQ(told.node(), 1U);
  EXPECT_EQ(told.effective_cpu_milli(), 2600);
  EXPECT_EQ(told.until_ms(), now + 300'000);
  EXPECT_EQ(told.source(), "host");
  EXPECT_EQ(told.below_since_ms(), now);
  EXPECT_FALSE(told.lowers());
  node_.apply(R"({"op":"clock","advance_s":59})");
  EXPECT_THAT(exclusive_cpus(), ElementsAre(4, 4));
  node_.apply(R"({"op":"restart"})");
  node_.apply(R"({"op":"clock","advance_s":2})");
  EXPECT_THAT(exclusive_cpus(), ElementsAre(4, 3)) << "1.4 CPUs are missing";
  WatchReader after(socket_);
  ASSERT_TRUE(after.read());
  ASSERT_EQ(after.capacities().size(), 1);
  EXPECT_TRUE(after.capacities()[0].lowers());
  EXPECT_EQ(after.capacities()[0].below_since_ms(), now);
  EXPECT_EQ(node_.guaranteed("web", 3).outcome, "placed");
  EXPECT_EQ(node_.guaranteed("db", 4).outcome, "placed") << "the node itself gives all it has";
  node_.apply(R"({"op":"remove_pod","pod":"web"})");
  node_.apply(R"({"op":"remove_pod","pod":"db"})");
  node_.apply(R"({"op":"clock","advance_s":240})");
  ASSERT_TRUE(after.read_until([&] { return after.capacities().empty(); }));
  EXPECT_THAT(exclusive_cpus(), ElementsAre(4, 4));
}

TEST_F(WatchedSimulation, SaysWhichCapacityCannotBe) {
  const auto refused = [&](const std::string& fields) {
    const OperationResult result = node_.apply(R"({"op":"capacity",)" + fields + "}");
    EXPECT_TRUE(result.is_invalid_line) << fields;
    return result.reason;
  };
  EXPECT_THAT(refused(R"("node":7,"milli":1,"for_s":1)"), HasSubstr("there is no NUMA node 7"));
  EXPECT_THAT(refused(R"("node":0,"milli":-1,"for_s":1)"), HasSubstr("cannot be -1"));
  EXPECT_THAT(refused(R"("node":0,"milli":1,"for_s":0)"), HasSubstr("in the future"));
  EXPECT_THROW(node_.apply(R"({"op":"capacity","node":0,"milli":1})"), std::exception);
  EXPECT_EQ(node_.apply(R"({"op":"capacity","node":0,"milli":9000,"for_s":60})").reason, "4000 of 4000 milli-CPUs");
  EXPECT_EQ(node_.apply(R"({"op":"capacity","node":0})").outcome, "ok");
  WatchReader reader(socket_);
  ASSERT_TRUE(reader.read());
  EXPECT_TRUE(reader.capacities().empty());
}

TEST_F(WatchedSimulation, EndsItsReadersWhenItIsRestartedAndServesThemAnew) {
  node_.guaranteed("web", 2);
  WatchReader before(socket_);
  ASSERT_TRUE(before.read());
  node_.apply(R"({"op":"restart"})");
  while (before.read()) {
  }
  EXPECT_EQ(before.finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  WatchReader after(socket_);
  ASSERT_TRUE(after.read());
  EXPECT_NE(after.state().instance(), before.state().instance());
  EXPECT_EQ(after.containers(), 1U);
  EXPECT_THAT(exclusive_cpus(), ElementsAre(2, 4));
}

TEST_F(WatchedSimulation, AnswersWhileOperationsRun) {
  std::atomic<bool> done = false;
  std::thread asking([&] {
    while (!done) {
      const std::vector<std::uint32_t> cpus = exclusive_cpus();
      if (cpus.size() != 2) break;
    }
  });
  for (int i = 0; i < 20; ++i) {
    const std::string pod = "p" + std::to_string(i);
    EXPECT_EQ(node_.guaranteed(pod, 1 + i % 4).outcome, "placed");
    node_.apply(R"({"op":"remove_pod","pod":")" + pod + "\"}");
  }
  done = true;
  asking.join();
  EXPECT_THAT(exclusive_cpus(), ElementsAre(4, 4));
}

class SimulateWatchCommand : public ::testing::Test {
 protected:
  /// `topolet simulate` in a shell; its answers go to a file, and what goes wrong to another.
  Process simulate(const std::string& arguments) const {
    return Process(
        {"/bin/sh", "-c", std::string(TOPOLET_COMMAND) + " simulate --topology 'numa:1 core:4 pu:1' " + arguments},
        errors_);
  }
  static std::string text_of(const std::string& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  TempDir directory_;
  const std::string socket_ = directory_.file("watch.sock");
  const std::string errors_ = directory_.file("errors");
};

TEST_F(SimulateWatchCommand, AnswersEachLineAtOnceWithItsGeneration) {
  const std::string lines = directory_.file("lines");
  const std::string answers = directory_.file("answers");
  ASSERT_EQ(::mkfifo(lines.c_str(), 0600), 0);
  Process simulator = simulate("--json --workload - --watch " + socket_ + " < " + lines + " > " + answers);
  {
    std::ofstream out(lines);
    out << R"({"op":"run_pod","pod":"p","qos":"besteffort"})" << '\n'
        << R"({"op":"create","pod":"p","container":"c"})" << std::endl;
    std::vector<std::uint64_t> generations;
    while (generations.size() < 2 && !simulator.has_ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::string text = text_of(answers);
      std::istringstream whole(text.substr(0, text.rfind('\n') + 1));
      generations.clear();
      for (std::string line; std::getline(whole, line);)
        generations.push_back(nlohmann::json::parse(line).at("generation").get<std::uint64_t>());
    }
    ASSERT_EQ(generations.size(), 2U) << text_of(errors_);
    WatchReader reader(socket_);
    ASSERT_TRUE(reader.read());
    EXPECT_EQ(reader.state().generation(), generations[1]);
  }
  EXPECT_EQ(simulator.wait(), 0) << text_of(errors_);
}

TEST_F(SimulateWatchCommand, ServesWhatAFileLedToUntilItIsToldToEnd) {
  const std::string file = directory_.file("workload");
  std::ofstream(file) << R"({"op":"run_pod","pod":"p","qos":"besteffort"})" << '\n'
                      << R"({"op":"create","pod":"p","container":"c"})" << '\n';
  Process simulator = simulate("--workload " + file + " --watch unix://" + socket_ + " & echo $! > " +
                               directory_.file("pid") + "; wait $!");
  while (text_of(errors_).find("serving the watch socket") == std::string::npos && !simulator.has_ended())
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  WatchReader reader(socket_);
  ASSERT_TRUE(reader.read()) << text_of(errors_);
  EXPECT_EQ(reader.containers(), 1U);
  ASSERT_EQ(::kill(std::stoi(text_of(directory_.file("pid"))), SIGTERM), 0);
  EXPECT_EQ(simulator.wait(), 0) << text_of(errors_);
}

TEST_F(SimulateWatchCommand, NamesASocketThatCannotBe) {
  EXPECT_EQ(simulate("--workload /dev/null --watch here").wait(), 2);
  EXPECT_THAT(text_of(errors_), HasSubstr("--watch: "));
  const std::string nowhere = directory_.file("nowhere") + "/watch.sock";
  EXPECT_EQ(simulate("--workload /dev/null --watch " + nowhere).wait(), 2);
  EXPECT_THAT(text_of(errors_), HasSubstr(nowhere));
}

}  // namespace
}  // namespace topolet::simulate
