// What is measured, as `topolet top`, `ps --load` and `status` show it.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/made_up_status.hpp"

namespace topolet::testing {
namespace {

using control::v1::LoadResponse;
using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

/// A topoletd that measures nothing when it is asked for the first time.
class MadeUpLoad final : public control::v1::Control::Service {
 public:
  MadeUpLoad(const std::string& socket, LoadResponse load) : load_(std::move(load)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  grpc::Status Load(grpc::ServerContext* /*context*/, const control::v1::LoadRequest* request,
                    LoadResponse* response) override {
    if (!request->only_known()) ++asked_to_measure_;
    if (request->only_known() || asked_++ > 0 || load_.state().sampling() == "off") *response = load_;
    return grpc::Status::OK;
  }

  int asked_to_measure() const { return asked_to_measure_; }

 private:
  const LoadResponse load_;
  std::atomic<int> asked_to_measure_ = 0;
  int asked_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

control::v1::ContainerLoad container(const std::string& name, std::int64_t cpu_milli) {
  control::v1::ContainerLoad load;
  load.set_container(name);
  load.set_id("id-of-" + name);
  load.set_mode("shared");
  load.set_cpus("0-3");
  load.set_cpu_request_milli(500);
  load.set_cpu_milli(cpu_milli);
  return load;
}

LoadResponse two_containers() {
  LoadResponse load;
  load.mutable_state()->set_sampling("auto");
  load.mutable_state()->set_is_measuring(true);
  load.mutable_state()->set_measured_for_ms(120'000);
  control::v1::NodeLoad& node = *load.add_nodes();
  node.set_nominal_milli(8000);
  node.set_used_milli(2500);
  node.set_source("unknown");
  *load.add_containers() = container("ns/calm/main", 10);
  *load.add_containers() = container("ns/hog/main", 2490);
  load.mutable_containers(0)->set_memory_bytes(std::int64_t{3} << 20);
  load.mutable_containers(0)->set_memory_high_per_minute(7);
  load.mutable_containers(1)->set_psi_some_permille(300);
  load.mutable_containers(1)->set_is_throttled(true);
  return load;
}

Said top(const LoadResponse& load, std::vector<std::string> options = {}) {
  const TempDir directory;
  const MadeUpLoad daemon(directory.file("control.sock"), load);
  options.insert(options.begin(), {"top", "--once", "--socket", directory.file("control.sock")});
  return topolet(options);
}

/// A state directory of a machine of one node with four CPUs.
class MeasuredNodesTest : public ::testing::Test {
 protected:
  MeasuredNodesTest() {
    const std::string workload = directory_.file("workload");
    directory_.write("workload", "");
    const Said said =
        simulate({"--topology", "numa:1 core:4 pu:1", "--workload", workload, "--state-dir", directory_.file("state")});
    EXPECT_EQ(said.code, 0) << said.text;
  }
  Said nodes(std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"nodes", "--state-dir", directory_.file("state"), "--socket", socket_});
    return topolet(options);
  }

  const TempDir directory_;
  const std::string socket_ = directory_.file("control.sock");
};

TEST_F(MeasuredNodesTest, ShowsWhatIsMeasuredAnyway) {
  const MadeUpLoad daemon(socket_, two_containers());
  const Said said = nodes();
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, ContainsRegex("CPUS USED +CPUS EFFECTIVE"));
  EXPECT_THAT(said.text, HasSubstr("2.50"));
  EXPECT_EQ(daemon.asked_to_measure(), 0) << "nothing is measured for its sake";
  EXPECT_FALSE(json::parse(nodes({"--json"}).text)[0].contains("used_milli")) << "programs ask for it";
  EXPECT_EQ(json::parse(nodes({"--json", "--load"}).text)[0]["used_milli"], 2500);
  EXPECT_GT(daemon.asked_to_measure(), 0);
  EXPECT_THAT(nodes({"--at", "1s"}).text, Not(HasSubstr("CPUS USED")));
}

TEST_F(MeasuredNodesTest, ShowsTheRestWhereNothingIsMeasured) {
  EXPECT_EQ(nodes().code, 0) << "without a topoletd";
  LoadResponse load = two_containers();
  load.mutable_state()->set_is_measuring(false);
  const MadeUpLoad daemon(socket_, load);
  const Said said = nodes();
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("SHARED REQUESTS"));
  EXPECT_THAT(said.text, Not(HasSubstr("CPUS USED")));
}

TEST(Top, ShowsWhoUsesMostFirst) {
  const Said said = top(two_containers());
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, ContainsRegex("NODE  CPUS  CPUS USED  CPUS EFFECTIVE  EFFECTIVE BY"));
  EXPECT_THAT(said.text, ContainsRegex("0     8     2.50       -               unknown"));
  EXPECT_THAT(said.text, ContainsRegex("ns/hog/main .*0.50 +2.49 +30 % \\(own quota\\) +-"));
  EXPECT_THAT(said.text, ContainsRegex("ns/calm/main .*0.01 +- +3 MiB"));
  EXPECT_LT(said.text.find("hog"), said.text.find("calm"));
  EXPECT_THAT(said.text, Not(HasSubstr("measured for")));
}

TEST(Top, SortsAsItIsTold) {
  const std::string by_memory = top(two_containers(), {"--sort", "memory"}).text;
  EXPECT_LT(by_memory.find("calm"), by_memory.find("hog")) << "unknown comes last";
  EXPECT_THAT(top(two_containers(), {"--sort", "colour"}).text,
              HasSubstr("--sort must be cpu, waits, memory or name, not 'colour'"));
}

TEST(Top, IsJsonForScripts) {
  const Said said = top(two_containers(), {"--json"});
  const json shown = json::parse(said.text);
  EXPECT_EQ(shown["nodes"][0]["used_milli"], 2500);
  EXPECT_EQ(shown["nodes"][0]["effective_milli"], nullptr);
  EXPECT_EQ(shown["containers"][0]["container"], "ns/hog/main");
  EXPECT_EQ(shown["containers"][0]["used_cpu_milli"], 2490);
  EXPECT_EQ(shown["containers"][1]["psi_some_permille"], nullptr);
}

TEST(Top, SaysWhatNobodyDecidesBy) {
  LoadResponse load = two_containers();
  load.mutable_state()->set_measured_for_ms(12'000);
  load.mutable_state()->set_age_ms(9000);
  load.mutable_state()->set_error("/proc/stat cannot be read: Permission denied");
  const std::string text = top(load).text;
  EXPECT_THAT(text, HasSubstr("measured for 12 s: nobody decides by less than 60 s\n"));
  EXPECT_THAT(text, HasSubstr("the newest values are 9 s old: nobody decides by them\n"));
  EXPECT_THAT(text, HasSubstr("CPUs are not measured: /proc/stat cannot be read"));
}

TEST(Top, SaysHowToHaveLoadMeasured) {
  LoadResponse load;
  load.mutable_state()->set_sampling("off");
  const Said said = top(load);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("daemon.load = off; set it to auto or on, and restart topoletd"));
}

TEST(StatusOfLoad, SaysWhetherItIsMeasured) {
  control::v1::StatusResponse status;
  EXPECT_THAT(said_of_status(status), Not(HasSubstr("\nload ")));
  status.mutable_load()->set_sampling("auto");
  EXPECT_THAT(said_of_status(status), HasSubstr("\nload         not measured: nobody reads it\n"));
  status.mutable_load()->set_is_measuring(true);
  status.mutable_load()->set_measured_for_ms(61'000);
  status.mutable_load()->set_capacity_source("unknown");
  EXPECT_THAT(said_of_status(status), HasSubstr("capacity by number of CPUs: no steal is reported\n"));
  EXPECT_EQ(json::parse(said_of_status(status, {"--json"}))["load"]["measured_for_ms"], 61'000);
}

}  // namespace
}  // namespace topolet::testing
