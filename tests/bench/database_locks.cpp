#include "tests/bench/database_locks.hpp"

#include <sqlite3.h>

#include <chrono>
#include <stdexcept>

#include "tests/support/dice.hpp"

namespace topolet::bench {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kHeld(40);
constexpr milliseconds kShortestPause(20);
constexpr milliseconds kLongestPause(200);
constexpr int kBusyMs = 1000;

}  // namespace

void DatabaseLocks::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

DatabaseLocks::DatabaseLocks(const std::string& database, std::uint64_t seed) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(database.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) throw std::runtime_error("cannot open " + database);
  sqlite3_busy_timeout(opened, kBusyMs);
  thread_ = std::thread([this, seed] { take_locks(seed); });
}

DatabaseLocks::~DatabaseLocks() {
  ends_ = true;
  thread_.join();
}

void DatabaseLocks::take_locks(std::uint64_t seed) {
  testing::Dice dice(seed);
  while (!ends_) {
    if (sqlite3_exec(database_.get(), "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK) {
      ++count_;
      std::this_thread::sleep_for(kHeld);
      sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    std::this_thread::sleep_for(kShortestPause + dice.up_to(kLongestPause - kShortestPause));
  }
}

}  // namespace topolet::bench
