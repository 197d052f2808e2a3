// The watch socket of a topoletd that is a process of its own.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <list>

#include "tests/control/daemon_rig.hpp"
#include "tests/watch/watch_reader.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class DaemonWatchTest : public ::testing::Test {
 protected:
  std::string socket() const { return rig_.file("watch.sock"); }
  void start(const std::string& more = "", const std::string& plugins = "") {
    rig_.configure(plugins, "", "watch = unix://" + socket() + '\n' + more);
    ASSERT_TRUE(rig_.start()) << rig_.log();
  }
  static bool is_exclusive(const WatchReader& reader, const std::string& pod) {
    const watch::v1::Container* container = reader.in_pod(pod);
    return container != nullptr && container->mode() == "exclusive" && container->phase() == "created";
  }

  DaemonRig rig_;
};

TEST_F(DaemonWatchTest, TellsAllThatIsThereAndThenWhatChanges) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  WatchReader reader(socket());
  ASSERT_TRUE(reader.read_until([&] { return reader.in_pod("web") != nullptr; }));
  EXPECT_EQ(reader.snapshots(), 1);
  EXPECT_TRUE(reader.state().reconciled());
  EXPECT_FALSE(reader.state().instance().empty());
  EXPECT_GT(reader.state().machine().nodes_size(), 0);
  EXPECT_EQ(reader.state().machine().distances_size(),
            reader.state().machine().nodes_size() * reader.state().machine().nodes_size());
  EXPECT_EQ(reader.state().cpus().pool(), reader.state().cpus().allowed());
  EXPECT_EQ(reader.in_pod("web")->mode(), "shared");
  EXPECT_EQ(reader.in_pod("web")->cpus(), reader.state().cpus().pool());

  ASSERT_TRUE(rig_.create("own", 1).ok());
  ASSERT_TRUE(reader.read_until([&] { return is_exclusive(reader, "own"); }));
  EXPECT_EQ(reader.in_pod("own")->cpu_request_milli(), 1000);
  EXPECT_EQ(reader.in_pod("own")->qos(), "guaranteed");
  EXPECT_NE(reader.state().cpus().pool(), reader.state().cpus().allowed());
  EXPECT_EQ(reader.in_pod("web")->cpus(), reader.state().cpus().pool()) << "it left the CPU";
  const auto placed = std::find_if(reader.events().begin(), reader.events().end(), [](const watch::v1::Event& event) {
    return event.event() == "unpinned" && event.pod_name() == "own";  // no plugin was asked
  });
  ASSERT_NE(placed, reader.events().end());
  EXPECT_FALSE(placed->reason().empty());
  EXPECT_EQ(placed->decision(), reader.in_pod("own")->decision());
  EXPECT_TRUE(std::is_sorted(reader.generations().begin(), reader.generations().end()));
}

TEST_F(DaemonWatchTest, TellsOfADenialWithItsReason) {
  start();
  WatchReader reader(socket());
  ASSERT_TRUE(reader.read());
  EXPECT_FALSE(rig_.create("huge", 100000).ok());
  ASSERT_TRUE(reader.read_until([&] { return !reader.events().empty(); }));
  EXPECT_EQ(reader.events().front().event(), "denied");
  EXPECT_EQ(reader.events().front().pod_name(), "huge");
  EXPECT_EQ(reader.events().front().key().pod_uid(), "uid-huge");
  EXPECT_EQ(reader.events().front().reason_code(), "too-few-free-cpus");
  EXPECT_THAT(reader.events().front().reason(), HasSubstr("exclusive CPUs: requested="));
  EXPECT_EQ(reader.in_pod("huge"), nullptr);
}

TEST_F(DaemonWatchTest, TellsEachReaderTheSame) {
  start();
  std::list<WatchReader> readers;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(rig_.create(fmt::format("pod{}", i), i == 5 ? 1 : 0).ok());
    readers.emplace_back(socket());
    ASSERT_TRUE(readers.back().read());
  }
  ASSERT_TRUE(rig_.create("last").ok());
  for (WatchReader& reader : readers) {
    ASSERT_TRUE(reader.read_until([&] {
      const watch::v1::Container* last = reader.in_pod("last");
      return last != nullptr && last->phase() == "created";
    }));
    EXPECT_EQ(reader.containers(), 13U);
    EXPECT_EQ(reader.all(), readers.front().all());
    EXPECT_EQ(reader.state().generation(), readers.front().state().generation());
  }
}

TEST_F(DaemonWatchTest, AnswersItsOwnServiceOnlyAndIsNotReachedElsewhere) {
  start();
  const auto channel = grpc::CreateChannel("unix://" + socket(), grpc::InsecureChannelCredentials());
  grpc::ClientContext for_status;
  control::v1::StatusResponse status;
  const grpc::Status refused = control::v1::Control::NewStub(channel)->Status(&for_status, {}, &status);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("the watch socket has no method /topolet.control.v1.Control/Status"));
  grpc::ClientContext for_restart;
  control::v1::RestartResponse restarted;
  EXPECT_EQ(control::v1::Control::NewStub(channel)->Restart(&for_restart, {}, &restarted).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  grpc::ClientContext for_version;
  ::runtime::v1::VersionResponse version;
  EXPECT_EQ(::runtime::v1::RuntimeService::NewStub(channel)->Version(&for_version, {}, &version).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  WatchReader on_control(rig_.control_socket());
  EXPECT_FALSE(on_control.read());
  EXPECT_EQ(on_control.finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(DaemonWatchTest, IsThereForOwnerAndGroupAndOnlyWhereItIsConfigured) {
  start("watch-group = 54321");
  struct stat file {};
  ASSERT_EQ(::stat(socket().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0660U);
  EXPECT_EQ(file.st_gid, 54321U);
  EXPECT_EQ(rig_.stop(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket()));
  rig_.configure("");
  ASSERT_TRUE(rig_.start()) << rig_.log();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(DaemonWatchTest, ContainersArePlacedThoughNobodyCanWatch) {
  start("watch-group = nobody-has-this-group");
  EXPECT_TRUE(rig_.create("web").ok());
  EXPECT_THAT(rig_.log(), HasSubstr("nobody can watch topoletd on " + socket() +
                                    " (daemon.watch): there is no group 'nobody-has-this-group' on this machine"));
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(DaemonWatchTest, TellsThatPluginsAreOthers) {
  rig_.plugin_dir = TOPOLET_BUILT_PLUGINS;
  start();
  WatchReader reader(socket());
  ASSERT_TRUE(reader.read());
  EXPECT_EQ(reader.state().plugins_size(), 0);
  rig_.configure("enable = numa\n[numa]\npolicy = restricted\nreserved-memory = 0:1Gi,1:512Mi", "",
                 "watch = unix://" + socket());
  ASSERT_TRUE(rig_.reload().ok()) << rig_.log();
  ASSERT_TRUE(reader.read_until([&] { return reader.state().plugins_size() == 1; }));
  EXPECT_EQ(reader.state().plugins(0).id(), "numa");
  EXPECT_EQ(reader.state().plugins(0).options().at("policy"), "restricted");
  EXPECT_EQ(reader.state().plugins(0).options().at("reserved-memory"), "0:1Gi,1:512Mi");
}

TEST_F(DaemonWatchTest, GoesOnWithWhoComesAfterAKillAsAnotherInstance) {
  start();
  ASSERT_TRUE(rig_.create("own", 1).ok());
  WatchReader before(socket());
  ASSERT_TRUE(before.read_until([&] { return is_exclusive(before, "own"); }));
  rig_.process().signal(SIGKILL);
  rig_.wait_for_end();
  EXPECT_FALSE(before.read());
  EXPECT_EQ(before.finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(rig_.start()) << rig_.log();
  WatchReader after(socket());
  ASSERT_TRUE(after.read_until([&] { return after.state().reconciled(); }));
  EXPECT_NE(after.state().instance(), before.state().instance());
  EXPECT_GE(after.state().generation(), before.state().generation());
  ASSERT_NE(after.in_pod("own"), nullptr);
  EXPECT_EQ(after.in_pod("own")->cpus(), before.in_pod("own")->cpus());
}

TEST_F(DaemonWatchTest, EndsStreamsForASuccessorWhoServesTheSameSocket) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  WatchReader before(socket());
  ASSERT_TRUE(before.read());
  grpc::ClientContext context;
  control::v1::RestartResponse restarted;
  ASSERT_TRUE(rig_.control().Restart(&context, {}, &restarted).ok());
  while (before.read()) continue;
  const grpc::Status ended = before.finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE) << ended.error_message();
  WatchReader after(socket());
  ASSERT_TRUE(after.read_until([&] { return after.state().reconciled(); })) << rig_.log();
  EXPECT_NE(after.state().instance(), before.state().instance());
  EXPECT_NE(after.in_pod("web"), nullptr);
  ::kill(restarted.process(), SIGKILL);
}

TEST_F(DaemonWatchTest, SaysThatTheKubeletHandsOutCpusBeforeAnyContainerHasSome) {
  const std::string file = rig_.file("cpu_manager_state");
  start("cpu-manager-state = " + file + "\nnode-name = n1\n");
  const auto stub = watch_stub(socket());
  const auto ask = [&stub] {
    grpc::ClientContext context;
    watch::v1::FitsResponse response;
    EXPECT_TRUE(stub->Fits(&context, {}, &response).ok());
    return response;
  };
  EXPECT_EQ(ask().node_name(), "n1");
  EXPECT_TRUE(ask().gives_exclusive_cpus());
  std::ofstream(file) << R"({"policyName":"static"})";
  EXPECT_TRUE(ask().kubelet_hands_out_cpus());
  EXPECT_FALSE(ask().gives_exclusive_cpus());
  ASSERT_TRUE(rig_.create("own", 1).ok());
  EXPECT_TRUE(ask().gives_exclusive_cpus()) << "the file is not that of this kubelet";
}

TEST_F(DaemonWatchTest, SaysWhatWouldFit) {
  start();
  const auto stub = watch_stub(socket());
  const auto ask = [&](const watch::v1::FitsRequest& request, watch::v1::FitsResponse& response) {
    grpc::ClientContext context;
    response.Clear();
    return stub->Fits(&context, request, &response);
  };
  watch::v1::FitsRequest request;
  watch::v1::FitsResponse response;
  ASSERT_TRUE(ask(request, response).ok());
  EXPECT_TRUE(response.reconciled());
  EXPECT_FALSE(response.instance().empty());
  ASSERT_GE(response.nodes_size(), 1);
  const std::uint32_t free = response.nodes(0).exclusive_cpus();
  ASSERT_GT(free, 0U);
  ASSERT_TRUE(rig_.create("own", 1).ok());
  ASSERT_TRUE(ask(request, response).ok());
  EXPECT_EQ(response.nodes(0).exclusive_cpus(), free - 1);
  watch::v1::PendingContainer& pending = *request.add_pending();
  pending.set_pod_uid("uid-later");
  pending.set_name("main");
  pending.set_qos("guaranteed");
  pending.set_cpu_request_milli(100000000);
  pending.set_cpu_limit_milli(100000000);
  ASSERT_TRUE(ask(request, response).ok());
  EXPECT_EQ(response.nodes(0).exclusive_cpus(), free - 1) << "who is denied takes nothing";
  ASSERT_EQ(response.unplaced_size(), 1);
  EXPECT_EQ(response.unplaced(0).pod_uid(), "uid-later");
  (*pending.mutable_annotations())["topolet.io/cpus"] = "many";
  ASSERT_TRUE(ask(request, response).ok()) << "one pod's mistake leaves the others an answer";
  ASSERT_EQ(response.unplaced_size(), 1);
  EXPECT_THAT(response.unplaced(0).reason(), HasSubstr("topolet.io/cpus"));
  pending.set_qos("best");
  const grpc::Status refused = ask(request, response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("it is one of guaranteed, burstable, besteffort"));
}

TEST_F(DaemonWatchTest, TellsItsMetrics) {
  start();
  ASSERT_TRUE(rig_.create("web").ok());
  ASSERT_TRUE(rig_.create("own", 1).ok());
  EXPECT_FALSE(rig_.create("huge", 100000).ok());
  const auto stub = watch_stub(socket());
  watch::v1::MetricsResponse response;
  const auto has = [&](const std::string& line) {
    grpc::ClientContext context;
    EXPECT_TRUE(stub->Metrics(&context, {}, &response).ok());
    return response.text().find('\n' + line + '\n') != std::string::npos;
  };
  // A call counts when gRPC has let go of it, a moment after its answer.
  EXPECT_TRUE(DaemonRig::eventually([&] {
    return has("topolet_cri_calls_total{code=\"OK\",method=\"CreateContainer\"} 2") &&
           has("topolet_cri_calls_total{code=\"RESOURCE_EXHAUSTED\",method=\"CreateContainer\"} 1");
  })) << response.text();
  EXPECT_TRUE(has("topolet_exclusive_cpus{numa_node=\"0\"} 1"));
  EXPECT_TRUE(has("topolet_containers{mode=\"shared\"} 1"));
  EXPECT_TRUE(has("topolet_audit_events_total{event=\"denied\"} 1"));
  EXPECT_TRUE(has("topolet_reconciled 1"));
  EXPECT_THAT(response.text(), Not(HasSubstr("huge")));
}

TEST_F(DaemonWatchTest, TellsOfAnOverlapWhileItLasts) {
  start();
  ASSERT_TRUE(rig_.run("web").ok());
  const std::string web = rig_.runtime().ids().at(0);
  ASSERT_TRUE(rig_.run("own", 1).ok());
  WatchReader reader(socket());
  const auto runs = [&](const char* pod) {
    return reader.in_pod(pod) != nullptr && reader.in_pod(pod)->phase() == "running";
  };
  ASSERT_TRUE(reader.read_until([&] { return runs("own") && runs("web"); }));
  const std::string own_cpus = reader.in_pod("own")->cpus();
  const std::string web_cpus = reader.in_pod("web")->cpus();
  control::v1::StatusResponse status;
  const auto overlapping = [&] {
    grpc::ClientContext context;
    EXPECT_TRUE(rig_.control().Status(&context, {}, &status).ok());
    return status.overlapping_containers();
  };
  EXPECT_EQ(overlapping(), 0U);

  rig_.runtime().hold("UpdateContainerResources");
  rig_.runtime().set_cpus(web, own_cpus);
  ASSERT_TRUE(DaemonRig::eventually([&] { return overlapping() == 1; }));
  ASSERT_EQ(status.overlaps_size(), 1);
  EXPECT_EQ(status.overlaps(0).container(), "default/web/main");
  EXPECT_EQ(status.overlaps(0).owner(), "default/own/main");
  EXPECT_EQ(status.overlaps(0).cpus(), own_cpus);
  EXPECT_TRUE(DaemonRig::eventually([&] { return overlapping() == 1 && status.overlaps(0).seen_for_ms() > 0; }));
  const auto is_in_metrics = [this](const std::string& line) {
    grpc::ClientContext context;
    watch::v1::MetricsResponse response;
    EXPECT_TRUE(watch_stub(socket())->Metrics(&context, {}, &response).ok());
    return response.text().find('\n' + line + '\n') != std::string::npos;
  };
  EXPECT_TRUE(is_in_metrics("topolet_overlapping_containers 1"));
  EXPECT_TRUE(DaemonRig::eventually([&] { return is_in_metrics("topolet_audit_events_total{event=\"overlap\"} 1"); }));

  rig_.runtime().release();
  ASSERT_TRUE(DaemonRig::eventually([&] { return overlapping() == 0; }));
  EXPECT_EQ(status.overlaps_size(), 0);
  EXPECT_EQ(rig_.runtime().row(web).cpus, web_cpus);
  EXPECT_TRUE(is_in_metrics("topolet_overlapping_containers 0"));
  const auto codes_told = [&] {
    std::vector<std::string> codes;
    for (const watch::v1::Event& event : reader.events()) {
      if (event.event() == "overlap" && event.pod_name() == "web") codes.push_back(event.reason_code());
    }
    return codes;
  };
  EXPECT_TRUE(reader.read_until([&] { return codes_told().size() == 2; }));
  EXPECT_THAT(codes_told(), ElementsAre("overlap-began", "overlap-ended"));
}

TEST_F(DaemonWatchTest, ServesNobodyMoreThanItCan) {
  start();
  std::list<WatchReader> readers;
  for (int i = 0; i < 60; ++i) {
    readers.emplace_back(socket());
    ASSERT_TRUE(readers.back().read()) << i;
  }
  // Many streams of one connection.
  const auto stub = watch_stub(socket());
  std::list<grpc::ClientContext> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<watch::v1::WatchResponse>>> streams;
  std::size_t refused = 0;
  for (int i = 0; i < 10; ++i) {
    streams.push_back(stub->Watch(&contexts.emplace_back(), {}));
    watch::v1::WatchResponse response;
    if (streams.back()->Read(&response)) continue;
    const grpc::Status why = streams.back()->Finish();
    EXPECT_EQ(why.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_THAT(why.error_message(), HasSubstr("64 watch already"));
    ++refused;
  }
  EXPECT_EQ(refused, 6U);
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  readers.clear();
  EXPECT_TRUE(DaemonRig::eventually([&] {
    WatchReader again(socket());
    return again.read();
  })) << "those that have gone do not count";
}

}  // namespace
}  // namespace topolet::testing
