// topoletd is killed again and again while pods come and go: no CPU is ever shared with a container that has it alone,
// and afterwards kernel, runtime and ledger agree. TOPOLET_KILLS: how often; TOPOLET_SEED: repeats a run, as far as a
// real machine does.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "tests/integration/churn.hpp"
#include "tests/integration/node_test.hpp"
#include "tests/integration/overlap_watch.hpp"
#include "tests/integration/process_cpuset.hpp"
#include "tests/integration/runtime_keeper.hpp"
#include "tests/integration/slow_shims.hpp"

namespace topolet::integration {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kKills = 30;
/// Containers that only run, and have to make room whenever another gets a CPU alone: the more, the longer that takes.
constexpr int kBystanders = 6;
constexpr milliseconds kSoonestKill(5);
constexpr milliseconds kLatestKill(400);

std::uint32_t number_from(const char* variable, std::uint32_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

/// The latest events, for the analysis of a failure.
class Story {
 public:
  void tell(std::string what) {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    since_ = std::chrono::steady_clock::now();
  }

  std::string moment() const {
    const std::lock_guard lock(mutex_);
    const auto passed = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - since_);
    return fmt::format("{} ms after {}", passed.count(), what_);
  }

 private:
  mutable std::mutex mutex_;
  std::string what_ = "the first start";
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

class KillRunWithContainers : public TwoCpuNodeTest {
 protected:
  void SetUp() override {
    TwoCpuNodeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    daemon_->end(SIGTERM);
    ASSERT_NO_FATAL_FAILURE(serve());
    std::cout << "TOPOLET_SEED=" << seed_ << " TOPOLET_KILLS=" << kills_ << std::endl;
  }

  void TearDown() override {
    if (HasFailure() && daemon_) keep_files();
    TwoCpuNodeTest::TearDown();
  }

  void serve() {
    const Status serving =
        daemon_->start({"--plugins.enable=smt", "--plugins.enable=load", "--load.besteffort-memory=50"});
    ASSERT_TRUE(serving.has_value()) << serving.error().message;
  }

  /// Their processes.
  std::vector<pid_t> bystanders() {
    std::vector<pid_t> processes;
    for (int i = 0; i < kBystanders; ++i) {
      const TestPod bystander =
          running(fmt::format("bystander-{}", i), i % 2 == 0 ? burstable(100, 16 * kMiB) : besteffort());
      if (const auto container = direct_->inspect(bystander.container_id)) processes.push_back(container->pid);
    }
    return processes;
  }

  void kill_again_and_again(const Churn& churn, SlowShims& slow) {
    std::mt19937 dice(seed_);
    std::uniform_int_distribution<milliseconds::rep> delay_ms(kSoonestKill.count(), kLatestKill.count());
    for (std::uint32_t kill = 1; kill <= kills_; ++kill) {
      ASSERT_TRUE(churn.is_busy()) << "before kill " << kill;
      std::this_thread::sleep_for(milliseconds(delay_ms(dice)));
      slow.make_fast();
      daemon_->end(SIGKILL);
      const auto killed = std::chrono::steady_clock::now();
      story_.tell(fmt::format("kill {}", kill));
      // The runtime finishes a request even if nobody waits any more. Should that take longer than a restart, nobody
      // could tell.
      ASSERT_TRUE(wait_until([this] { return !runtime_->is_updating(); }));
      slow.make_slow();
      ASSERT_NO_FATAL_FAILURE(serve()) << "after kill " << kill;
      away_.push_back(std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - killed));
      story_.tell(fmt::format("the start after kill {}", kill));
    }
  }

  /// How ledger, runtime and kernel contradict each other; empty if they do not.
  std::vector<std::string> contradictions() {
    std::vector<std::string> all;
    std::set<std::string> there;
    const auto containers = direct_->containers();
    if (!containers) return {containers.error().message};
    const std::vector<PlacementRow> rows = held();
    for (const cri::Container& container : *containers) {
      if (container.state() != cri::CONTAINER_EXITED) there.insert(container.id());
      if (container.state() != cri::CONTAINER_RUNNING) continue;
      const auto row = std::find_if(rows.begin(), rows.end(),
                                    [&](const PlacementRow& held) { return held.container_id == container.id(); });
      if (std::string wrong = contradiction(container.id(), row == rows.end() ? nullptr : &*row); !wrong.empty()) {
        all.push_back(std::move(wrong));
      }
    }
    for (const PlacementRow& row : rows) {
      // The allocation of a crashed container is kept for the next attempt as long as the pod is there.
      if (row.state == "crashed" || there.count(row.container_id) != 0) continue;
      all.push_back(fmt::format("{}/{} {} holds CPUs {}, but there is no container '{}'", row.pod, row.container,
                                row.state, row.cpus.to_string(), row.container_id));
    }
    return all;
  }

  std::string contradiction(const std::string& id, const PlacementRow* row) {
    if (row == nullptr) return fmt::format("container {} runs and holds nothing", id);
    const auto container = direct_->inspect(id);
    const auto cgroup = container ? cgroup_cpus_of(container->pid) : std::nullopt;
    if (!cgroup) return fmt::format("{}: container {} ran, and has no process", row->pod, id);
    if (cgroup->cpus == row->cpus) return {};
    return fmt::format("{}: container {} runs on {}, and holds {}", row->pod, id, cgroup->cpus.to_string(),
                       row->cpus.to_string());
  }

  /// Asks for the containers as the kubelet does until nothing is contradictory any more.
  void expect_agreement() {
    std::vector<std::string> wrong;
    becomes([&] { return (wrong = contradictions()).empty(); });
    EXPECT_THAT(wrong, testing::IsEmpty());
  }

  void remove_everything() {
    const auto containers = topolet_->containers();
    ASSERT_TRUE(containers.has_value()) << containers.error().message;
    for (const cri::Container& container : *containers) {
      expect_removed([&] {
        (void)topolet_->stop(container.id(), std::chrono::seconds(0));
        return topolet_->remove(container.id());
      });
    }
    const auto pods = topolet_->pods();
    ASSERT_TRUE(pods.has_value()) << pods.error().message;
    for (const cri::PodSandbox& pod : *pods) {
      const Status stopped = topolet_->stop_sandbox(pod.id());
      EXPECT_TRUE(stopped.has_value()) << stopped.error().message;
      expect_removed([&] { return topolet_->remove_sandbox(pod.id()); });
    }
  }

  void expect_removed(const std::function<Status()>& remove) {
    Status removed;
    // A start that nobody waits for any more may still go on. Where it was cancelled at a bad moment containerd 1.6
    // takes the container for exited while runc still waits to start it, and cannot remove it any more.
    const auto is_over = [&] {
      return (removed = remove()).has_value() ||
             removed.error().message.find("cannot delete running task") != std::string::npos;
    };
    EXPECT_TRUE(wait_until(is_over)) << removed.error().message;
  }

  void expect_that_no_cpu_is_lost() {
    ASSERT_NO_FATAL_FAILURE(remove_everything());
    EXPECT_TRUE(becomes([this] { return held().empty(); }));
    for (const PlacementRow& row : held()) {
      ADD_FAILURE() << row.pod << '/' << row.container << ' ' << row.state << " still holds " << row.cpus.to_string();
    }
    EXPECT_EQ(whole_pool(), pool_);
  }

  /// Prints topolet's explanation of both containers of an overlap.
  void explain(const Overlap& overlap) {
    for (const Task* task : {&overlap.alone, &overlap.other}) {
      const std::string pod = task->name.substr(0, task->name.find('/'));
      const auto events = state_->audit(pod);
      if (!events) continue;
      for (const AuditRow& event : *events) {
        std::cout << "  " << pod << ": " << event.event << ": " << event.what << ": " << event.reason << '\n';
      }
    }
  }

  /// Where the runtime does not require topolet, containers are created and started without it while it is away.
  void tell_how_long(const std::vector<Overlap>& overlaps) const {
    std::vector<milliseconds> lasted;
    lasted.reserve(overlaps.size());
    for (const Overlap& overlap : overlaps) lasted.push_back(overlap.lasted);
    const auto found = state_->count("adopted");
    EXPECT_TRUE(found.has_value() && *found > 0) << "no container was made without topolet";
    std::cout << described("topoletd was away", away_) << described("overlaps", lasted) << found.value_or(0)
              << " containers were found that topolet had not been asked about\n";
  }

  /// How many, and of what length.
  static std::string described(const std::string& what, std::vector<milliseconds> times) {
    if (times.empty()) return fmt::format("{}: none\n", what);
    std::sort(times.begin(), times.end());
    return fmt::format("{}: {}, of {} ms in the median and {} ms at most\n", what, times.size(),
                       times[times.size() / 2].count(), times.back().count());
  }

  /// The room goes with the test.
  void keep_files() {
    const std::filesystem::path kept = testing::TempDir() + fmt::format("/topolet-kill-run-{}", seed_);
    std::error_code ignored;
    std::filesystem::create_directories(kept, ignored);
    for (const std::filesystem::path& file :
         {daemon_->log(), daemon_->state_db(), std::filesystem::path(daemon_->state_db()) += "-wal",
          runtime_->directory() / "containerd.log"}) {
      std::filesystem::copy_file(file, kept / file.filename(), std::filesystem::copy_options::overwrite_existing,
                                 ignored);
    }
    std::cout << "topoletd's log and database and containerd's log are kept in " << kept << '\n';
  }

  const std::uint32_t seed_ = number_from("TOPOLET_SEED", std::random_device{}());
  const std::uint32_t kills_ = number_from("TOPOLET_KILLS", kKills);
  Story story_;
  std::vector<milliseconds> away_;  ///< for so long topoletd was not there, by kill
};

TEST_F(KillRunWithContainers, AnOverlapWouldBeSeen) {
  const OverlapWatch watch(runtime_->tasks(), [] { return "meanwhile"; });
  const TestPod web = running("web", burstable(250, 64 * kMiB));
  const TestPod trader = running("trader", guaranteed(1000, 64 * kMiB));
  // One look may have begun before both ran.
  const std::size_t poll_count = watch.poll_count();
  ASSERT_TRUE(wait_until([&] { return watch.poll_count() >= poll_count + 2; }));
  EXPECT_THAT(watch.overlaps(), testing::IsEmpty());

  cri::LinuxContainerResources every_cpu;
  every_cpu.set_cpuset_cpus(pool_.to_string());
  if (is_nri_front()) {
    // The runtime asks topoletd about updates.
    const auto inspected = direct_->inspect(web.container_id);
    ASSERT_TRUE(inspected && put_cgroup_on(inspected->pid, pool_));
  } else {
    ASSERT_TRUE(direct_->update(web.container_id, every_cpu).has_value());
  }
  ASSERT_TRUE(wait_until([&] { return !watch.overlaps().empty(); }));
  const std::vector<Overlap> seen = watch.overlaps();
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].alone.name, "trader/main");
  EXPECT_EQ(seen[0].other.name, "web/main");
  EXPECT_EQ(seen[0].cpus_other, pool_);
}

TEST_F(KillRunWithContainers, WhoHasACpuAloneHasItAloneThroughEveryKill) {
  const RuntimeKeeper keeper(*runtime_);
  SlowShims slow(bystanders(), seed_);
  OverlapWatch watch(runtime_->tasks(), [this] { return story_.moment(); });
  WorkerContext workplace{daemon_->endpoint(), runtime_->cgroups(), watch};
  Churn churn(workplace,
              {WorkerKind::kWholeCpus, WorkerKind::kWholeCpus, WorkerKind::kSharedCpus, WorkerKind::kSharedCpus,
               WorkerKind::kSharedCpus},
              seed_);
  kill_again_and_again(churn, slow);
  if (HasFatalFailure()) return;
  slow.make_fast();
  churn.end();
  EXPECT_THAT(churn.failures(), testing::IsEmpty());
  EXPECT_GT(churn.tally().placed, 0);
  EXPECT_GT(watch.poll_count(), 0U);
  expect_agreement();
  expect_that_no_cpu_is_lost();

  std::cout << to_string(churn.tally()) << "; " << watch.poll_count() << " looks at the kernel, "
            << watch.longest_pause().count() << " ms between two at most; containerd was started again "
            << keeper.restarts() << " times\n";
  if (is_nri_front() && std::getenv("TOPOLET_NRI_REQUIRED") == nullptr) return tell_how_long(watch.overlaps());
  for (const Overlap& overlap : watch.overlaps()) {
    ADD_FAILURE() << to_string(overlap);
    explain(overlap);
  }
}

}  // namespace
}  // namespace topolet::integration
