// The package and the unit of topoletd under systemd, on the machine of `tests/vm/run --systemd`: whatever ends
// topoletd, it comes back by itself, and no container notices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "tests/integration/cri_client.hpp"
#include "tests/integration/node.hpp"
#include "tests/integration/process_cpuset.hpp"
#include "tests/integration/state_db.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/vm/offline_cpus.hpp"
#include "tests/vm/service.hpp"

namespace topolet::integration {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kMiB = 1 << 20;
constexpr char kEndpoint[] = "unix:///run/topolet/topolet.sock";
constexpr char kConfig[] = "/etc/topolet/topolet.conf";
constexpr char kDropIns[] = "/run/systemd/system/topoletd.service.d";
constexpr char kSecondDisk[] = "/dev/nvme0n2";
/// WatchdogSec= and RestartSec= of the unit, and time to start on a slow machine.
constexpr std::chrono::seconds kWatchdog{30};
constexpr std::chrono::seconds kUntilRestarted{120};

void expect_success(const std::string& command) {
  const CommandResult result = run_command(command);
  EXPECT_EQ(result.status, 0) << command << ":\n" << result.text;
}

bool answers() { return CriClient(kEndpoint, std::chrono::seconds(10)).version().has_value(); }

struct RunningContainer {
  Pod pod;
  std::string id;
  pid_t process = 0;
  CpuSet cpus;  ///< when it was started
};

class ServiceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    expect_success("dpkg -i /vm/topolet.deb");
    write_config("");
    expect_success("systemctl enable --now topoletd.service");
  }

  void SetUp() override {
    ASSERT_TRUE(wait_until([] { return service_is_up() && answers(); }, kUntilRestarted)) << service_journal();
  }

  void TearDown() override {
    if (HasFailure()) std::cerr << "The journal of topoletd.service:\n" << service_journal() << '\n';
    remove_containers();
    std::filesystem::remove_all(kDropIns);
    expect_success("systemctl daemon-reload");
  }

  void remove_containers() {
    for (const auto& container : containers_) {
      CriClient client(kEndpoint);
      EXPECT_TRUE(client.stop(container->pod).has_value());
      EXPECT_TRUE(client.remove(container->pod).has_value());
    }
    containers_.clear();
  }

  /// Writes a configuration with which decisions do not depend on how slow the machine is.
  static void write_config(const std::string& more) {
    std::ofstream(kConfig)
        << "[daemon]\nstore-patience = 10s\n[placement]\ndeadline-ms = 5000\n[plugins]\nenable = numa\n"
        << more;
  }

  /// Adds lines to the unit until the test has ended.
  static void drop_in(const std::string& lines) {
    std::filesystem::create_directories(kDropIns);
    std::ofstream(std::string(kDropIns) + "/test.conf") << lines;
    expect_success("systemctl daemon-reload");
  }

  RunningContainer& run_container(const std::string& name, const Resources& resources) {
    containers_.push_back(std::make_unique<RunningContainer>(
        RunningContainer{{name, "uid-" + name, resources, {"/", true}, {}, {}}, {}, 0, {}}));
    const Status started = start(*containers_.back());
    EXPECT_TRUE(started.has_value()) << started.error().message;
    return *containers_.back();
  }

  static Status start(RunningContainer& container) {
    CriClient client(kEndpoint);
    if (Status ran = client.run(container.pod); !ran) return ran;
    const auto id = client.create(container.pod, {.image = kImage});
    if (!id) return id.error();
    container.id = *id;
    if (Status started = client.start(*id); !started) return started;
    const auto inspected = client.inspect(*id);
    if (!inspected) return inspected.error();
    container.process = inspected->pid;
    container.cpus = cpus_of(container);
    EXPECT_EQ(container.cpus, ledger_of(container)) << "kernel and ledger";
    return {};
  }

  static CpuSet cpus_of(const RunningContainer& container) {
    const auto allowed = allowed_of(container.process);
    return allowed ? allowed->cpus : CpuSet{};
  }

  static CpuSet ledger_of(const RunningContainer& container) {
    const auto rows = StateDb("/var/lib/topolet/state.db").held();
    for (const PlacementRow& row : rows ? *rows : std::vector<PlacementRow>()) {
      if (row.pod == container.pod.name) return row.cpus;
    }
    return {};
  }

  /// Same process, same CPUs, and topolet knows it.
  static void expect_untouched(const RunningContainer& container) {
    EXPECT_EQ(cpus_of(container), container.cpus);
    EXPECT_EQ(ledger_of(container), container.cpus);
    const auto inspected = CriClient(kEndpoint).inspect(container.id);
    ASSERT_TRUE(inspected.has_value()) << inspected.error().message;
    EXPECT_EQ(inspected->pid, container.process);
  }

  static bool comes_back(pid_t instead_of) {
    return wait_until(
        [&] {
          const pid_t pid = service_pid();
          return pid != 0 && pid != instead_of && service_is_up() && answers();
        },
        kUntilRestarted + kWatchdog);
  }

  /// A new container gets CPUs: all of the unit's restrictions leave that possible.
  void expect_places(const std::string& name) {
    const RunningContainer& container = run_container(name, guaranteed(1000, 16 * kMiB));
    EXPECT_EQ(container.cpus.size(), 1U) << container.cpus.to_string();
  }

  std::vector<std::unique_ptr<RunningContainer>> containers_;
};

TEST_F(ServiceTest, IsConfined) {
  expect_success("systemd-analyze security --no-pager --threshold=40 topoletd.service");
  std::string score;
  std::getline(std::ifstream("/proc/" + std::to_string(service_pid()) + "/oom_score_adj"), score);
  EXPECT_EQ(score, "-999");
  EXPECT_THAT(service_journal(), AllOf(Not(HasSubstr("ermission denied")), Not(HasSubstr("not permitted")),
                                       Not(HasSubstr("Read-only file system"))));
}

TEST_F(ServiceTest, SaysHowThingsAre) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  const auto status_has = [](const std::string& text) {
    return wait_until([&] { return property_of_service("StatusText").find(text) != std::string::npos; });
  };
  EXPECT_TRUE(status_has("ready on unix:///run/topolet/topolet.sock; 1 container placed (1 exclusive)"))
      << property_of_service("StatusText");
  expect_success("systemctl stop containerd.service");
  EXPECT_TRUE(status_has("waiting for the runtime on unix:///run/containerd/containerd.sock; 1 container placed"))
      << property_of_service("StatusText");
  expect_success("systemctl start containerd.service");
  EXPECT_TRUE(status_has("ready on")) << property_of_service("StatusText");
  expect_untouched(web);
}

TEST_F(ServiceTest, AReloadTellsWhoAsksForItHowItWent) {
  const pid_t pid = service_pid();
  write_config("[numa]\npolicy = restricted\n");
  expect_success("systemctl reload topoletd.service");
  write_config("[numa]\npolicy = whatever\n");
  EXPECT_NE(run_command("systemctl reload topoletd.service").status, 0);
  EXPECT_TRUE(wait_until([] {
    return property_of_service("StatusText").find("the configuration was not changed") != std::string::npos;
  })) << property_of_service("StatusText");
  EXPECT_THAT(service_journal(), HasSubstr("whatever"));
  write_config("");
  expect_success("systemctl reload topoletd.service");
  EXPECT_TRUE(wait_until([] {
    return property_of_service("StatusText").find("the configuration") == std::string::npos;
  })) << property_of_service("StatusText");
  EXPECT_TRUE(service_is_up());
  EXPECT_EQ(service_pid(), pid);
}

TEST_F(ServiceTest, ComesBackFromManyQuickFailures) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  pid_t last = 0;
  // As many as systemd would put up with by itself in ten seconds, and some more.
  for (int i = 0; i < 8; ++i) {
    pid_t pid = 0;
    ASSERT_TRUE(wait_until([&] {
      pid = service_pid();
      return pid != 0 && pid != last;
    }));
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    last = pid;
  }
  EXPECT_TRUE(comes_back(last));
  expect_untouched(web);
  expect_places("next");
}

TEST_F(ServiceTest, ComesBackWhenItsMemoryIsShortNoMore) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  const pid_t pid = service_pid();
  expect_success("systemctl set-property --runtime topoletd.service MemoryMax=6M");
  // The daemon may give back memory at first; handling calls takes memory.
  EXPECT_TRUE(wait_until([&] {
    static_cast<void>(CriClient(kEndpoint, std::chrono::seconds(2)).containers());
    return service_pid() != pid;
  })) << property_of_service("MemoryCurrent");
  expect_success("systemctl set-property --runtime topoletd.service MemoryMax=infinity");
  EXPECT_TRUE(comes_back(pid));
  EXPECT_THAT(service_journal(), HasSubstr("oom-kill"));
  expect_untouched(web);
}

TEST_F(ServiceTest, OutlivesANodeThatRunsOutOfMemory) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  const pid_t pid = service_pid();
  // Its one buffer takes all of the machine's 2 GiB but what the kernel has for itself.
  const CommandResult hog = run_command(
      "systemd-run --wait --collect -p OOMScoreAdjust=-900 dd if=/dev/zero of=/dev/null bs=1850M count=1 "
      "iflag=fullblock");
  EXPECT_NE(hog.status, 0) << hog.text;
  EXPECT_THAT(run_command("journalctl --no-pager -k -o cat").text, HasSubstr("Out of memory: Killed process"));
  EXPECT_EQ(service_pid(), pid);
  expect_untouched(web);
}

TEST_F(ServiceTest, ComesBackFromAStandstill) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  const pid_t pid = service_pid();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  EXPECT_TRUE(comes_back(pid));
  EXPECT_THAT(service_journal(), HasSubstr("Watchdog timeout"));
  expect_untouched(web);
}

TEST_F(ServiceTest, ComesBackWhereOneLoopStandsStill) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  for (const auto& [thread, name] :
       {std::pair("topolet-loop", "the engine's loop"), std::pair("topolet-io", "the proxy's loop"),
        std::pair("topolet-accept", "the listener's loop")}) {
    const pid_t pid = service_pid();
    const HeldThread held(thread_of(pid, thread));
    ASSERT_TRUE(held.is_held()) << thread;
    EXPECT_TRUE(comes_back(pid));
    EXPECT_THAT(service_journal(), HasSubstr(std::string(name) + " has not turned for 10 s"));
    expect_untouched(web);
  }
  expect_places("next");
}

TEST_F(ServiceTest, IsNotTakenForHungWhereItsDatabaseIs) {
  expect_success(std::string("systemctl stop topoletd.service && mkfs.ext4 -q -F ") + kSecondDisk + " && mount " +
                 kSecondDisk + " /var/lib/topolet && systemctl start topoletd.service");
  write_config("");
  const pid_t pid = service_pid();
  {
    const FrozenFileSystem frozen("/var/lib/topolet");
    ASSERT_TRUE(frozen.is_frozen());
    CriClient client(kEndpoint);
    Pod pod{"late", "uid-late", besteffort(), {"/", true}, {}, {}};
    EXPECT_TRUE(client.run(pod).has_value());
    EXPECT_TRUE(client.create(pod, {.image = kImage}).has_value());
    EXPECT_TRUE(wait_until([] {
      return property_of_service("StatusText").find("goes on without the state database") != std::string::npos;
    })) << property_of_service("StatusText");
    // Longer than the watchdog waits.
    EXPECT_FALSE(wait_until([&] { return service_pid() != pid; }, kWatchdog + std::chrono::seconds(10)));
    EXPECT_TRUE(client.stop(pod).has_value());
    EXPECT_TRUE(client.remove(pod).has_value());
  }
  EXPECT_TRUE(wait_until([] { return property_of_service("StatusText").find("without") == std::string::npos; }));
  expect_success("systemctl stop topoletd.service && umount /var/lib/topolet && systemctl start topoletd.service");
}

/// A unit that mounts the second disk on the state directory, which is not mounted before.
class MountedStateTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    expect_success("systemctl stop topoletd.service");
  }
  void TearDown() override {
    remove_containers();
    for (const auto& unit : units_) std::filesystem::remove(unit);
    run_command("systemctl stop topoletd.service late.service; umount /var/lib/topolet; systemctl daemon-reload");
    expect_success("systemctl start topoletd.service");
    ServiceTest::TearDown();
  }

  void write_unit(const std::string& name, const std::string& text) {
    units_.push_back(std::filesystem::path("/run/systemd/system") / name);
    std::ofstream(units_.back()) << text;
    expect_success("systemctl daemon-reload");
  }
  void write_mount(const std::string& more) {
    write_unit("var-lib-topolet.mount", more + "[Mount]\nWhat=" + kSecondDisk + "\nWhere=/var/lib/topolet\n");
  }
  static void make_file_system() { expect_success(std::string("mkfs.ext4 -q -F ") + kSecondDisk); }
  void expect_serves_from_the_disk() {
    EXPECT_TRUE(comes_back(0));
    expect_success("findmnt /var/lib/topolet && test -e /var/lib/topolet/state.db");
    expect_places("first");
  }

 private:
  std::vector<std::filesystem::path> units_;
};

TEST_F(MountedStateTest, IsWaitedFor) {
  make_file_system();
  write_unit("late.service",
             "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
             "ExecStart=sh -c 'until test -e /run/disk-is-here; do sleep 1; done'\n");
  write_mount("[Unit]\nRequires=late.service\nAfter=late.service\n");
  expect_success("systemctl start --no-block topoletd.service");
  EXPECT_TRUE(
      wait_until([] { return run_command("systemctl list-jobs").text.find("late.service") != std::string::npos; }));
  EXPECT_EQ(service_pid(), 0);
  std::ofstream("/run/disk-is-here") << "";
  expect_serves_from_the_disk();
}

TEST_F(MountedStateTest, IsTriedAgainWhenItCouldNotBeMounted) {
  expect_success(std::string("wipefs -q -a ") + kSecondDisk);
  write_mount("");
  EXPECT_NE(run_command("systemctl start topoletd.service").status, 0);
  EXPECT_EQ(service_pid(), 0);
  make_file_system();
  expect_serves_from_the_disk();
}

TEST_F(ServiceTest, TriesUntilItsStateDirectoryIsThere) {
  drop_in("[Service]\nReadWritePaths=/srv/topolet\nExecStart=\nExecStart=" +
          run_command("systemctl cat topoletd.service | sed -n 's/^ExecStart=//p'").text +
          " --daemon.state-dir=/srv/topolet/state\n");
  expect_success("systemctl restart --no-block topoletd.service");
  EXPECT_TRUE(wait_until([] { return std::atoi(property_of_service("NRestarts").c_str()) > 5; }));
  std::filesystem::create_directory("/srv/topolet");
  EXPECT_TRUE(comes_back(0));
  EXPECT_TRUE(std::filesystem::exists("/srv/topolet/state/state.db"));
  std::filesystem::remove_all(kDropIns);
  expect_success("systemctl daemon-reload && systemctl restart topoletd.service");
}

TEST_F(ServiceTest, PutsProcessesBackThatCpusCameBackTo) {
  // Takes CPU 0, which stays online.
  run_container("first", guaranteed(2000, 16 * kMiB));
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  {
    const OfflineCpus offline(web.cpus);
    ASSERT_TRUE(offline.are_offline());
    EXPECT_TRUE(wait_until([&] { return !ledger_of(web).intersects(web.cpus); }));
  }
  EXPECT_TRUE(wait_until([&] { return cpus_of(web).size() == 2 && cpus_of(web) == ledger_of(web); }))
      << cpus_of(web).to_string() << ", ledger: " << ledger_of(web).to_string();
}

TEST_F(ServiceTest, KeepsClientsWaitingWithASocketUnit) {
  expect_success("systemctl stop topoletd.service && systemctl start topoletd.socket topoletd.service");
  const pid_t pid = service_pid();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(CriClient(kEndpoint).version().has_value());
  EXPECT_TRUE(comes_back(pid));
  expect_places("one");
  remove_containers();
  expect_success("systemctl stop topoletd.socket topoletd.service && systemctl start topoletd.service");
}

/// Calls without a pause, on one connection for as long as it is good.
class CallLoop {
 public:
  CallLoop() : thread_([this] { run(); }) {}
  ~CallLoop() { stop(); }
  CallLoop(const CallLoop&) = delete;
  CallLoop& operator=(const CallLoop&) = delete;
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int calls() const { return calls_; }
  /// Once it has stopped.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  void run() {
    CriClient client(kEndpoint);
    for (; !stop_; ++calls_) {
      const auto version = client.version();
      if (!version) failures_.push_back(version.error().message);
    }
  }

  std::atomic<bool> stop_ = false;
  std::atomic<int> calls_ = 0;
  std::vector<std::string> failures_;
  std::thread thread_;
};

TEST_F(ServiceTest, IsReplacedWithoutAFailedCall) {
  const RunningContainer& web = run_container("web", guaranteed(1000, 16 * kMiB));
  const auto restart_by = [&](const std::string& command) {
    const pid_t pid = service_pid();
    CallLoop load;
    expect_success(command);
    EXPECT_NE(service_pid(), pid) << "systemd watches the new process after: " << command;
    EXPECT_TRUE(wait_until([&, enough = load.calls() + 100] { return load.calls() > enough; }));
    load.stop();
    EXPECT_THAT(load.failures(), IsEmpty()) << "of " << load.calls() << " calls; " << command;
    expect_untouched(web);
  };
  restart_by("topolet restart");
  restart_by("topolet restart");
  expect_success("systemctl stop topoletd.service && systemctl start topoletd.socket topoletd.service");
  restart_by("topolet restart");
  restart_by("systemctl restart topoletd.service");
  EXPECT_EQ(property_of_service("NRestarts"), "0");
  remove_containers();
  expect_success("systemctl stop topoletd.socket topoletd.service && systemctl start topoletd.service");
}

TEST_F(ServiceTest, IsReplacedByAnUpgradeUnderContainersThatRun) {
  const RunningContainer& web = run_container("web", guaranteed(2000, 16 * kMiB));
  const pid_t pid = service_pid();
  expect_success("dpkg -i /vm/next.deb");
  EXPECT_TRUE(comes_back(pid));
  expect_untouched(web);
  EXPECT_EQ(run_command("systemctl is-enabled topoletd.service").status, 0);
  EXPECT_THAT(run_command("dpkg-query -W -f '${Version}' topolet").text, HasSubstr("+next"));
  expect_places("next");
}

}  // namespace
}  // namespace topolet::integration
