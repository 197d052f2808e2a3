// A write-ahead log that is damaged ends there without a word: what was written later is gone, and what it replaced is
// back. What runs wins over what such a database says.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/daemon/core_rig.hpp"

namespace topolet::daemon {
namespace {

namespace fs = std::filesystem;
using testing::CoreRig;
using testing::RuledRig;
using Strings = std::vector<std::string>;

constexpr int kVariants = 12;

/// The state directory as a kill leaves it, taken while topoletd runs.
class KilledState {
 public:
  explicit KilledState(const CoreRig& rig) : from_(rig.file("state")), kept_(rig.file("kept")) {
    fs::create_directories(kept_);
    for (const char* name : {"state.db", "state.db-wal", "state.db.generation"}) {
      fs::copy_file(from_ / name, kept_ / name, fs::copy_options::overwrite_existing);
    }
  }

  /// Puts it back with a byte of the log changed, `part` of `of` into it.
  void restore_damaged(int part, int of) const {
    for (const auto& entry : fs::directory_iterator(from_)) {
      if (entry.path().filename().string().rfind("state.db", 0) == 0 && entry.path().extension() != ".lock") {
        fs::remove(entry.path());
      }
    }
    for (const auto& entry : fs::directory_iterator(kept_))
      fs::copy_file(entry.path(), from_ / entry.path().filename());
    const fs::path log = from_ / "state.db-wal";
    const auto at = static_cast<std::streamoff>(fs::file_size(log) * static_cast<std::uintmax_t>(part) /
                                                static_cast<std::uintmax_t>(of));
    std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x55));
  }

 private:
  const fs::path from_;
  const fs::path kept_;
};

TEST(DamagedLog, LeavesExclusiveContainersWhereTheyRun) {
  RuledRig rig(testing::keep_nothing);
  const std::string shared = rig.run({.pod = "shared"});
  const std::string before = rig.run({.pod = "before", .cpus = 2});
  ASSERT_TRUE(rig.stop_container(before).ok());
  const std::string first = rig.run({.pod = "first", .cpus = 1});
  const std::string second = rig.run({.pod = "second", .cpus = 2});
  const std::string on_first = rig.runtime().row(first).cpus;
  const std::string on_second = rig.runtime().row(second).cpus;
  const KilledState killed(rig);
  for (int part = 1; part < kVariants; ++part) {
    SCOPED_TRACE(part);
    rig.stop();
    killed.restore_damaged(part, kVariants);
    rig.start();
    EXPECT_TRUE(CoreRig::eventually([&] {
      return rig.query(
                 "SELECT cpus FROM current_placements WHERE mode = 'exclusive' AND pod IN ('first', 'second') "
                 "ORDER BY pod") == (Strings{on_first, on_second});
    }));
    EXPECT_EQ(rig.runtime().row(first).cpus, on_first);
    EXPECT_EQ(rig.runtime().row(second).cpus, on_second);
    EXPECT_TRUE(CoreRig::eventually([&] { return rig.held("shared") == rig.runtime().row(shared).cpus; }));
    EXPECT_TRUE(CoreRig::eventually([&] {
      return rig.query(
                 "SELECT count(*) FROM decided WHERE event = 'gap' AND reason LIKE '%lost its newest changes%'") ==
             Strings{"1"};
    }));
  }
}

}  // namespace
}  // namespace topolet::daemon
