// Somebody else writes into the state database, anywhere and anything, while containers come and go: every one of them
// runs, and after a restart the database says where.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "store/database.hpp"
#include "tests/daemon/core_rig.hpp"

namespace topolet::daemon {
namespace {

namespace fs = std::filesystem;
using testing::CoreRig;

/// All 100 take a minute.
int damaged_files() {
  const char* const files = std::getenv("TOPOLET_DAMAGED_FILES");
  return files != nullptr ? std::atoi(files) : 10;
}

class DamagedStore : public ::testing::TestWithParam<const char*> {
 protected:
  DamagedStore() {
    rig_.stop();
    testing::keep_nothing(rig_);
    rig_.options.writer_options = {.patience = std::chrono::milliseconds(50), .retry = std::chrono::milliseconds(50)};
    rig_.start();
  }

  /// Up to a page of anything, somewhere in the file.
  void damage(const std::string& name) {
    const fs::path file = fs::path(rig_.file("state")) / name;
    std::error_code none;
    const auto size = fs::file_size(file, none);
    if (none || size == 0) return;
    std::string bytes(1 + random_() % 4096, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(random_() % size));
    stream << bytes;
  }

  void churn() {
    for (int i = 0; i < 3; ++i) {
      const std::string pod = fmt::format("pod-{}", ++pods_);
      // One in three has a CPU of its own.
      running_[pod] = rig_.run({.pod = pod, .cpus = i == 0 ? 1 : 0});
      if (running_.size() <= 4) continue;
      const auto oldest = running_.begin();
      EXPECT_TRUE(rig_.stop_container(oldest->second).ok());
      EXPECT_TRUE(rig_.remove_container(oldest->second).ok());
      running_.erase(oldest);
    }
  }

  bool says_where_all_are() {
    for (const auto& [pod, id] : running_) {
      const auto database = store::Database::open(rig_.file("state/state.db"), store::Database::Access::kReadOnly);
      if (!database) return false;
      const auto cpus = database->text("SELECT cpus FROM current_placements WHERE pod = '" + pod + "'", "look");
      if (!cpus || *cpus != rig_.runtime().row(id).cpus) return false;
    }
    return true;
  }

  CoreRig rig_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> running_;  // by pod: the container's id
  int pods_ = 0;
};

TEST_P(DamagedStore, HoldsUpNobodyAndIsBegunAnew) {
  for (int file = 0; file < damaged_files(); ++file) {
    SCOPED_TRACE(fmt::format("{} {}", GetParam(), file));
    random_.seed(static_cast<std::uint64_t>(file));
    churn();
    damage(GetParam());
    churn();
    damage(GetParam());
    churn();
    rig_.stop();
    rig_.start();
    if (HasFatalFailure()) return;
    rig_.list();
    churn();
    ASSERT_TRUE(CoreRig::eventually([&] { return says_where_all_are(); }))
        << (rig_.summary().store_degraded ? rig_.summary().store_degraded_because : "the database is healthy");
  }
}

std::string name_of(const ::testing::TestParamInfo<const char*>& file) {
  const std::string name = file.param;
  return name.substr(name.find_last_of(".-") + 1);
}

INSTANTIATE_TEST_SUITE_P(DamagedStore, DamagedStore, ::testing::Values("state.db", "state.db-wal", "state.db-shm"),
                         name_of);

}  // namespace
}  // namespace topolet::daemon
