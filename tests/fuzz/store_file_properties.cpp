#include "tests/fuzz/store_file_properties.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "core/engine/state/codec.hpp"
#include "store/store.hpp"
#include "tests/engine/full_values.hpp"
#include "tests/support/temp_dir.hpp"

namespace topolet {
namespace {

namespace fs = std::filesystem;

struct DatabaseFiles {
  std::string database;
  std::string log;
};

Result<std::unique_ptr<store::Store>> open(const fs::path& directory) {
  return store::Store::open({.directory = directory, .boot_id = "boot", .now_ms = 1'700'000'000'000});
}

Status add_allocation(store::Store& store) {
  store::DecidedRow row;
  row.event = "placed";
  row.mode = "exclusive";
  row.cpus = CpuSet{4, 5};
  row.held_cpus = {{"exclusive", row.cpus}};
  row.reason = "fits";
  const auto decision = store.add(row);
  if (!decision) return decision.error();
  if (Status put = store.put_allocation(*decision, encode(engine::full_allocation(*decision))); !put) return put;
  return store.put_pod(encode(engine::full_pod()));
}

std::string bytes_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Some rows in the database, some in its log, as a crash leaves them.
DatabaseFiles make_database() {
  const TempDir directory;
  const auto add_some = [](store::Store& store) {
    for (int i = 0; i < 5; ++i) {
      if (const Status added = add_allocation(store); !added) throw std::runtime_error(added.error().message);
    }
  };
  { add_some(**open(directory.path())); }
  const auto store = open(directory.path());
  add_some(**store);
  return {bytes_of(directory.path() / "state.db"), bytes_of(directory.path() / "state.db-wal")};
}

void overwrite(DatabaseFiles& files, const std::string& damage) {
  const auto byte = [&damage](std::size_t at) { return static_cast<unsigned char>(damage[at]); };
  for (std::size_t i = 0; i + 3 < damage.size(); i += 4) {
    const std::size_t wanted = std::size_t{byte(i)} << 16 | std::size_t{byte(i + 1)} << 8 | byte(i + 2);
    const std::size_t at = wanted % (files.database.size() + files.log.size());
    if (at < files.database.size()) {
      files.database[at] = damage[i + 3];
    } else {
      files.log[at - files.database.size()] = damage[i + 3];
    }
  }
}

std::string error_violation(const Error& error) { return error.message.empty() ? "an error without a message" : ""; }

std::string rows_violation(store::Store& store) {
  const auto allocations = store.allocations();
  if (!allocations) return error_violation(allocations.error());
  for (const store::AllocationRow& row : *allocations) {
    const auto decoded = engine::decode_allocation(row);
    if (!decoded && decoded.error().message.find("column ") == std::string::npos)
      return "an error that names no column: " + decoded.error().message;
  }
  const auto pods = store.pods();
  if (!pods) return error_violation(pods.error());
  for (const store::PodRow& row : *pods) {
    const auto decoded = engine::decode_pod(row);
    if (!decoded && decoded.error().message.find("column ") == std::string::npos)
      return "an error that names no column: " + decoded.error().message;
  }
  const Status added = add_allocation(store);
  return added ? "" : error_violation(added.error());
}

}  // namespace

TextJudgement judge_store_file(const std::string& damage) {
  static const DatabaseFiles kFiles = make_database();
  DatabaseFiles files = kFiles;
  overwrite(files, damage);
  const TempDir directory;
  static_cast<void>(directory.write("state.db", files.database));
  static_cast<void>(directory.write("state.db-wal", files.log));

  TextJudgement result;
  {
    const auto store = open(directory.path());
    if (!store) {
      result.violation = error_violation(store.error());
      return result;
    }
    result.accepted = (*store)->report().set_aside.empty();
    result.violation = rows_violation(**store);
    if (!result.accepted && !fs::exists((*store)->report().set_aside)) result.violation = "the damaged file is gone";
  }
  if (!result.violation.empty()) return result;
  const auto again = open(directory.path());
  if (!again) result.violation = error_violation(again.error());
  return result;
}

}  // namespace topolet
