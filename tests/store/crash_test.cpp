#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <set>

#include "tests/store/scratch.hpp"

namespace topolet::store {
namespace {

/// The report of the child after the store has said yes.
struct Acknowledged {
  std::int64_t decision = 0;
  bool ended = false;
};

/// A decision and what it holds, in one savepoint, as the engine writes it.
Result<std::int64_t> write_decision(Store& store, const DecidedRow& row) {
  Result<std::int64_t> decision = 0;
  const Status written = store.savepoint([&]() -> Status {
    decision = add_with_allocation(store, row);
    return decision ? store.set_generation(row.generation) : Status(decision.error());
  });
  if (!written) return written.error();
  return decision;
}

/// Writes until it is killed: every second decision ends at once, every third supersedes the one before it, every
/// fifth comes in one transaction with the pool.
[[noreturn]] void write_for_ever(Store& store, int out) {
  std::optional<std::int64_t> held;
  for (std::uint32_t i = 1;; ++i) {
    DecidedRow row = exclusive_row("app", {i % 64, 70});
    row.generation = *store.last_generation() + 1;
    if (i % 3 == 0) row.supersedes = std::exchange(held, std::nullopt);
    if (!store.begin()) ::_exit(1);
    const auto decision = write_decision(store, row);
    if (!decision) ::_exit(1);
    if (i % 5 == 0 && !store.add(PoolRow{row.generation, i, {i % 8}})) ::_exit(1);
    if (!store.commit()) ::_exit(1);
    store.write_generation_file(row.generation);
    Acknowledged said{*decision, false};
    if (::write(out, &said, sizeof said) != sizeof said) ::_exit(1);
    if (row.supersedes) {
      said = {*row.supersedes, true};
      if (::write(out, &said, sizeof said) != sizeof said) ::_exit(1);
    }
    if (i % 2 == 1) {
      held = *decision;
      continue;
    }
    if (!store.add(EndedRow{*decision, i, row.generation + 1, "exited"})) ::_exit(1);
    said = {*decision, true};
    if (::write(out, &said, sizeof said) != sizeof said) ::_exit(1);
  }
}

class CrashTest : public StoreTest {
 protected:
  /// Lets a child write, kills it once it has acknowledged `enough`, and returns all that it acknowledged.
  std::vector<Acknowledged> write_and_kill(std::size_t enough) const {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      const auto store = try_open();
      if (!store) ::_exit(1);
      write_for_ever(**store, ends[1]);
    }
    ::close(ends[1]);
    std::vector<Acknowledged> all;
    Acknowledged said;
    while (::read(ends[0], &said, sizeof said) == sizeof said) {
      all.push_back(said);
      if (all.size() == enough) ::kill(child, SIGKILL);
    }
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child could not write";
    return all;
  }

  std::set<std::string> numbers(const std::string& sql) const {
    std::set<std::string> all;
    for (const auto& row : rows(sql)) all.insert(row[0]);
    return all;
  }
};

TEST_F(CrashTest, LosesNothingThatWasAcknowledged) {
  std::map<std::int64_t, bool> acknowledged;
  for (std::size_t round = 0; round < 12; ++round) {
    for (const Acknowledged& said : write_and_kill(20 + 37 * round)) acknowledged[said.decision] |= said.ended;
    const auto store = open();
    EXPECT_TRUE(store->report().set_aside.empty());
    EXPECT_EQ(store->report().newest_lost_generation, 0U);
    const auto decided = numbers("SELECT decision FROM decided");
    const auto ended = numbers("SELECT decision FROM ended");
    for (const auto& [decision, has_ended] : acknowledged) {
      EXPECT_TRUE(decided.contains(std::to_string(decision))) << decision;
      EXPECT_TRUE(!has_ended || ended.contains(std::to_string(decision))) << decision;
    }
    EXPECT_EQ(numbers("SELECT decision FROM live"),
              numbers("SELECT decision FROM decided WHERE holds EXCEPT SELECT decision FROM ended"));
    EXPECT_EQ(numbers("SELECT DISTINCT decision FROM held_cpu"), decided);
  }
  EXPECT_GT(acknowledged.size(), 1000U);
}

}  // namespace
}  // namespace topolet::store
