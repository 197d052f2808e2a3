#include "core/cri/socket/runtime_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/temp_dir.hpp"

namespace topolet::cri {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RuntimeLockTest : public ::testing::Test {
 protected:
  RuntimeLockTest() {
    fs::create_directories(runtime_.parent_path());
    fs::create_directory_symlink(runtime_.parent_path(), directory_.path() / "link");
  }

  Result<RuntimeLock> acquire(const fs::path& runtime, std::vector<UniqueFd> handed_over = {}) const {
    return RuntimeLock::acquire(locks_, runtime.string(), {::getpid(), "/run/a/control.sock", "/etc/a.conf"},
                                std::move(handed_over));
  }
  std::ptrdiff_t lock_files() const { return std::distance(fs::directory_iterator(locks_), fs::directory_iterator()); }

  const TempDir directory_;
  const fs::path locks_ = directory_.path() / "run";
  const fs::path runtime_ = directory_.path() / "containerd" / "containerd.sock";
};

TEST_F(RuntimeLockTest, OneAtATimeWhateverThePathIsWrittenLike) {
  std::ofstream(runtime_).put(' ');
  fs::create_symlink(runtime_, directory_.path() / "short.sock");
  auto first = acquire(runtime_);
  ASSERT_TRUE(first);
  const fs::path parent = runtime_.parent_path();
  for (const fs::path& other :
       {runtime_, parent / "." / "containerd.sock", parent / ".." / "containerd" / "containerd.sock",
        directory_.path() / "link" / "containerd.sock", directory_.path() / "short.sock",
        fs::path("/" + runtime_.string())}) {
    const auto second = acquire(other);
    ASSERT_FALSE(second) << other;
    EXPECT_EQ(second.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(second.error().message,
                HasSubstr("(process " + std::to_string(::getpid()) +
                          ", configuration /etc/a.conf) uses the runtime at " + other.string()));
    ASSERT_TRUE(find_runtime_user(locks_, other.string())) << other;
    EXPECT_EQ(find_runtime_user(locks_, other.string())->control, "/run/a/control.sock");
  }
}

TEST_F(RuntimeLockTest, OneAtATimeAlsoWhenItsDirectoryWasMadeAnew) {
  auto first = acquire(runtime_);
  ASSERT_TRUE(first);
  fs::rename(runtime_.parent_path(), directory_.path() / "moved");
  fs::create_directories(runtime_.parent_path());
  EXPECT_FALSE(acquire(runtime_));
  EXPECT_FALSE(acquire(directory_.path() / "moved" / "containerd.sock")) << "the same directory by another path";
}

TEST_F(RuntimeLockTest, OtherRuntimesAreNotLocked) {
  auto first = acquire(runtime_);
  ASSERT_TRUE(first);
  EXPECT_TRUE(acquire(runtime_.parent_path() / "other.sock"));
  EXPECT_TRUE(acquire(directory_.path() / "containerd-containerd.sock"));
  EXPECT_TRUE(acquire("/nowhere/containerd.sock"));
  EXPECT_EQ(find_runtime_user(locks_, "/nowhere/containerd.sock"), std::nullopt);
}

TEST_F(RuntimeLockTest, LeavesNothingBehind) {
  { ASSERT_TRUE(acquire(runtime_)); }
  EXPECT_EQ(lock_files(), 0);
  EXPECT_EQ(find_runtime_user(locks_, runtime_.string()), std::nullopt);
  EXPECT_TRUE(acquire(runtime_));
}

TEST_F(RuntimeLockTest, AKilledProcessLocksNobodyOut) {
  const pid_t process = ::fork();
  if (process == 0) {
    auto lock = acquire(runtime_);
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(process, nullptr, 0), process);
  EXPECT_GT(lock_files(), 0);
  EXPECT_EQ(find_runtime_user(locks_, runtime_.string()), std::nullopt);
  EXPECT_TRUE(acquire(runtime_));
}

/// As of a topoletd whose place another one takes: at no moment could a third one have it.
TEST_F(RuntimeLockTest, IsHandedOn) {
  std::vector<UniqueFd> handed_over;
  {
    auto before = acquire(runtime_);
    ASSERT_TRUE(before);
    handed_over = before->duplicate();
    before->disown();
  }
  EXPECT_FALSE(acquire(runtime_));
  {
    auto after = acquire(runtime_, std::move(handed_over));
    ASSERT_TRUE(after);
    EXPECT_FALSE(acquire(runtime_));
  }
  EXPECT_EQ(lock_files(), 0);
}

TEST_F(RuntimeLockTest, LocksOfAnotherRuntimeAreLetGo) {
  std::vector<UniqueFd> handed_over;
  {
    auto before = acquire(runtime_);
    ASSERT_TRUE(before);
    handed_over = before->duplicate();
    before->disown();
  }
  const fs::path other = runtime_.parent_path() / "other.sock";
  auto after = acquire(other, std::move(handed_over));
  ASSERT_TRUE(after);
  EXPECT_FALSE(acquire(other));
  EXPECT_TRUE(acquire(runtime_));
}

TEST_F(RuntimeLockTest, SaysWhereThereCanBeNone) {
  std::ofstream(directory_.path() / "file").put(' ');
  const auto lock = RuntimeLock::acquire(directory_.path() / "file", runtime_.string(), {});
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace topolet::cri
