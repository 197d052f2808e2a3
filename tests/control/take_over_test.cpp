// A topoletd takes the place of one that runs, under clients that do not try again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <future>
#include <thread>

#include "core/base/unique_fd.hpp"
#include "core/base/unix_address.hpp"
#include "store/database.hpp"
#include "tests/control/daemon_rig.hpp"
#include "tests/support/unsent_call.hpp"

namespace topolet::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace api = ::runtime::v1;

std::shared_ptr<grpc::Channel> connect_without_retries(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments);
}

class TakeOverTest : public ::testing::Test {
 protected:
  ~TakeOverTest() override {
    if (const pid_t last = process(); last > 0) ::kill(last, SIGKILL);
  }

  control::v1::StatusResponse status() const {
    const auto stub = control::v1::Control::NewStub(connect_without_retries(rig_.control_socket()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    control::v1::StatusResponse response;
    return stub->Status(&context, {}, &response).ok() ? response : control::v1::StatusResponse();
  }
  pid_t process() const { return status().process(); }

  /// Has it replaced by a new process; the number of that.
  pid_t restart() const {
    const auto stub = control::v1::Control::NewStub(connect_without_retries(rig_.control_socket()));
    grpc::ClientContext context;
    control::v1::RestartResponse response;
    const grpc::Status asked = stub->Restart(&context, {}, &response);
    EXPECT_TRUE(asked.ok()) << asked.error_message();
    EXPECT_TRUE(DaemonRig::eventually([&] { return process() == response.process(); })) << rig_.log();
    return response.process();
  }

  UniqueFd ask_in_words(const std::string& request) const {
    UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = unix_address(rig_.control_socket() + ".take-over");
    EXPECT_EQ(::connect(connection.get(), as_sockaddr(*address), sizeof(sockaddr_un)), 0);
    EXPECT_EQ(::send(connection.get(), request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    return connection;
  }
  UniqueFd ask_to_take_over(const std::string& state_dir) const {
    return ask_in_words(R"({"take-over":1,"daemon.listen":")" + rig_.file("topolet.sock") + R"(","daemon.control":")" +
                        rig_.control_socket() + R"(","daemon.state-dir":")" + state_dir + "\"}\n");
  }
  static std::string read_answer(const UniqueFd& connection) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }

  DaemonRig rig_;
};

/// Clients that call without a pause until they are stopped, on one connection each for as long as it is good.
class Load {
 public:
  explicit Load(const std::string& socket) {
    for (int i = 0; i < 4; ++i) {
      clients_.push_back(std::async(std::launch::async, [this, socket, i] {
        const auto stub = api::RuntimeService::NewStub(connect_without_retries(socket));
        for (int n = 0; !stop_; ++n) call(*stub, std::to_string(i) + "-" + std::to_string(n));
      }));
    }
  }
  ~Load() { stop(); }
  void stop() {
    stop_ = true;
    clients_.clear();
  }
  void wait_for(int more) const {
    for (const int enough = calls_ + more; calls_ < enough;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int calls() const { return calls_; }
  std::vector<std::string> failures() {
    MutexLock lock(mutex_);
    return failures_;
  }

 private:
  void call(api::RuntimeService::Stub& stub, const std::string& name) {
    grpc::Status status = try_call(stub, name);
    if (testing::was_given_up_unsent(status)) status = try_call(stub, name);
    if (status.ok()) return;
    MutexLock lock(mutex_);
    failures_.push_back(status.error_message());
  }

  grpc::Status try_call(api::RuntimeService::Stub& stub, const std::string& name) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    api::RunPodSandboxRequest request;
    request.mutable_config()->mutable_metadata()->set_name(name);
    request.mutable_config()->mutable_metadata()->set_uid("uid-" + name);
    api::RunPodSandboxResponse made;
    api::ListContainersResponse list;
    const bool lists = ++calls_ % 2 == 0;
    return lists ? stub.ListContainers(&context, {}, &list) : stub.RunPodSandbox(&context, request, &made);
  }

  std::atomic<bool> stop_ = false;
  std::atomic<int> calls_ = 0;
  Mutex mutex_;
  std::vector<std::string> failures_ TOPOLET_GUARDED_BY(mutex_);
  std::vector<std::future<void>> clients_;
};

TEST_F(TakeOverTest, NoCallFailsOverManyRestarts) {
  ASSERT_TRUE(rig_.start());
  ASSERT_TRUE(rig_.create("web").ok());
  Load load(rig_.file("topolet.sock"));
  pid_t last = rig_.process().pid();
  for (int round = 0; round < 5; ++round) {
    load.wait_for(50);
    const pid_t next = restart();
    EXPECT_NE(next, last);
    EXPECT_TRUE(DaemonRig::eventually([&] {
      if (round == 0) return rig_.process().has_ended();
      return ::kill(last, 0) != 0;
    })) << "process "
        << last << " goes on though all clients have moved: " << rig_.log();
    last = next;
  }
  load.wait_for(50);
  load.stop();
  EXPECT_THAT(load.failures(), IsEmpty()) << "of " << load.calls() << " calls; " << rig_.log();
  EXPECT_THAT(rig_.query("SELECT pod_name FROM allocation WHERE pod_name = 'web'"), ElementsAre("web"));
  EXPECT_EQ(status().containers().at("shared"), 1U);
}

TEST_F(TakeOverTest, FollowsTheLinkThatItWasStartedBy) {
  for (const char* version : {"old", "new"}) {
    std::filesystem::create_directory(rig_.file(version));
    std::filesystem::copy_file(rig_.program, rig_.file(version) + "/topoletd");
  }
  const std::string installed = rig_.file("new") + "/topoletd";
  std::filesystem::create_symlink("old", rig_.file("current"));
  rig_.program = rig_.file("current") + "/topoletd";
  ASSERT_TRUE(rig_.start()) << rig_.log();
  std::filesystem::remove(rig_.file("current"));
  std::filesystem::create_symlink("new", rig_.file("current"));
  // The second time, it is the successor that was started by the link.
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(restart()) + "/exe"), installed);
  }
}

TEST_F(TakeOverTest, ACallThatOutlastsTheChangeIsAnswered) {
  ASSERT_TRUE(rig_.start());
  rig_.runtime().hold("CreateContainer");
  auto create = std::async(std::launch::async, [&] { return rig_.create("web"); });
  ASSERT_THAT(rig_.runtime().recorder().wait_for_arrivals("CreateContainer", 1), SizeIs(1));
  restart();
  rig_.runtime().release();
  const grpc::Status created = create.get();
  EXPECT_TRUE(created.ok()) << created.error_message();
  EXPECT_TRUE(DaemonRig::eventually([&] { return status().containers().count("shared") != 0; }));
  EXPECT_TRUE(DaemonRig::eventually([&] { return rig_.process().has_ended(); }));
}

TEST_F(TakeOverTest, StartsAgainWhereTheOtherOneEndsBeforeItServes) {
  ASSERT_TRUE(rig_.start());
  ASSERT_TRUE(rig_.create("web").ok());
  Load load(rig_.file("topolet.sock"));
  load.wait_for(20);
  UniqueFd successor = ask_to_take_over(rig_.state_dir());
  EXPECT_THAT(read_answer(successor), HasSubstr("\"listen\":"));
  successor.reset();
  EXPECT_TRUE(rig_.logs("ended before it served; starting again"));
  load.wait_for(20);
  load.stop();
  EXPECT_EQ(process(), rig_.process().pid());
  EXPECT_THAT(load.failures(), IsEmpty()) << rig_.log();
  EXPECT_THAT(rig_.query("SELECT pod_name FROM allocation WHERE pod_name = 'web'"), ElementsAre("web"));
}

/// As systemd does it for a socket unit.
TEST_F(TakeOverTest, NoCallFailsWhereSomebodyElseListensMeanwhile) {
  const UniqueFd listening(::socket(AF_UNIX, SOCK_STREAM, 0));
  const auto address = unix_address(rig_.file("topolet.sock"));
  ASSERT_EQ(::bind(listening.get(), as_sockaddr(*address), sizeof(sockaddr_un)), 0);
  ASSERT_EQ(::listen(listening.get(), 128), 0);
  rig_.launcher = {"sh", "-c",
                   "exec 3<&" + std::to_string(listening.get()) + "; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"",
                   "sh"};
  ASSERT_TRUE(rig_.start());
  Load load(rig_.file("topolet.sock"));
  for (int round = 0; round < 3; ++round) {
    load.wait_for(50);
    EXPECT_EQ(rig_.stop(), 0);
    ASSERT_TRUE(rig_.start());
  }
  load.wait_for(50);
  restart();
  load.wait_for(50);
  load.stop();
  EXPECT_THAT(load.failures(), IsEmpty()) << "of " << load.calls() << " calls; " << rig_.log();
}

TEST_F(TakeOverTest, RefusesWhoIsConfiguredOtherwiseAndGoesOn) {
  ASSERT_TRUE(rig_.start());
  EXPECT_THAT(read_answer(ask_to_take_over("/somewhere/else")),
              HasSubstr("daemon.state-dir is /somewhere/else there and " + rig_.state_dir() + " here"));
  EXPECT_EQ(process(), rig_.process().pid());
  EXPECT_TRUE(rig_.create("web").ok());
}

TEST_F(TakeOverTest, RefusesWhoAsksInOtherWordsAndGoesOn) {
  ASSERT_TRUE(rig_.start());
  for (const char* request : {"{\"take-over\":\"1\"}\n", "{\"take-over\":null}\n", "null\n", "1\n", "\n", "[[{}]]\n",
                              "{\"take-over\":2,\"sockets\":{}}\n"}) {
    EXPECT_THAT(read_answer(ask_in_words(request)), HasSubstr("\"refused\":\"it d")) << request;
    EXPECT_EQ(process(), rig_.process().pid()) << request;
  }
  EXPECT_TRUE(rig_.create("web").ok());
}

TEST_F(TakeOverTest, AConfigurationWithAMistakeLeavesTheOneThatRunsAlone) {
  ASSERT_TRUE(rig_.start());
  rig_.configure("enable = no-such-plugin");
  Process successor({TOPOLET_DAEMON, "--config", rig_.config(), "--take-over"}, rig_.file("log"));
  EXPECT_EQ(successor.wait(), 2);
  EXPECT_EQ(process(), rig_.process().pid());
  EXPECT_TRUE(rig_.create("web").ok());
}

TEST_F(TakeOverTest, MakesNoStateDirectoryWhereItWasRemoved) {
  ASSERT_TRUE(rig_.start());
  ASSERT_TRUE(rig_.run("web", 1).ok());
  std::filesystem::remove_all(rig_.state_dir());
  ASSERT_TRUE(DaemonRig::eventually([&] { return status().store_degraded(); })) << rig_.log();
  restart();
  EXPECT_TRUE(DaemonRig::eventually([&] { return status().store_degraded() && status().reconciled(); })) << rig_.log();
  EXPECT_THAT(status().store_degraded_because(), HasSubstr("the directory '" + rig_.state_dir() + "' is gone"));
  EXPECT_TRUE(rig_.create("app", 1).ok());
  EXPECT_FALSE(std::filesystem::exists(rig_.state_dir()));
  std::filesystem::create_directory(rig_.state_dir());
  EXPECT_TRUE(DaemonRig::eventually([&] { return !status().store_degraded(); })) << rig_.log();
}

/// The one that runs writes to the file until it hands over.
TEST_F(TakeOverTest, SetsTheDatabaseOfAnOlderVersionAsideAndMovesNobody) {
  ASSERT_TRUE(rig_.start());
  ASSERT_TRUE(rig_.run("web", 1).ok());
  {
    auto database = store::Database::open(rig_.state_dir() + "/state.db", store::Database::Access::kReadWrite);
    ASSERT_TRUE(database.has_value()) << database.error().message;
    ASSERT_TRUE(database->execute("PRAGMA user_version = 9", "write as an older version"));
  }
  const auto runs_on = [&] {
    std::vector<std::string> cpus;
    for (const std::string& id : rig_.runtime().ids()) cpus.push_back(rig_.runtime().row(id).cpus);
    return cpus;
  };
  const auto before = runs_on();
  ASSERT_THAT(before, SizeIs(1));
  Load load(rig_.file("topolet.sock"));
  load.wait_for(50);
  ASSERT_TRUE(rig_.create("late").ok());
  restart();
  ASSERT_TRUE(DaemonRig::eventually([&] { return status().reconciled(); })) << rig_.log();
  load.wait_for(50);
  load.stop();
  EXPECT_THAT(load.failures(), IsEmpty()) << "of " << load.calls() << " calls; " << rig_.log();
  EXPECT_EQ(runs_on()[0], before[0]);
  EXPECT_THAT(rig_.query("SELECT cpus FROM allocation WHERE pod_name = 'web'"), ElementsAre(before[0]));
  EXPECT_THAT(rig_.query("SELECT mode FROM current_placements WHERE pod = 'web'"), ElementsAre("exclusive"));
  std::string aside;
  for (const auto& entry : std::filesystem::directory_iterator(rig_.state_dir())) {
    const std::string name = entry.path().string();
    if (name.find(".too-old-") != std::string::npos && !name.ends_with("-wal") && !name.ends_with("-shm")) aside = name;
  }
  ASSERT_NE(aside, "");
  EXPECT_TRUE(rig_.logs("the state database was moved to " + aside)) << rig_.log();
  const auto older = store::Database::open(aside, store::Database::Access::kReadOnly);
  ASSERT_TRUE(older.has_value()) << older.error().message;
  EXPECT_EQ(older->text("SELECT group_concat(pod_name) FROM allocation", "read").value(), "web,late");
}

TEST_F(TakeOverTest, StartsAsUsualWhereNobodyRuns) {
  ASSERT_TRUE(rig_.start({"--take-over"}));
  EXPECT_TRUE(rig_.create("web").ok());
}

}  // namespace
}  // namespace topolet::testing
