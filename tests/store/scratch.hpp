// A state directory that is gone after the test, and rows to write into it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "store/database.hpp"
#include "store/store.hpp"

namespace topolet::store {

template <class T>
std::string message(const Result<T>& result) {
  return result ? "" : result.error().message;
}

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    std::string name = (std::filesystem::temp_directory_path() / "topolet-store-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~StoreTest() override { std::filesystem::remove_all(root_); }

  std::filesystem::path directory() const { return root_ / "state"; }
  std::filesystem::path file() const { return directory() / "state.db"; }

  Result<std::unique_ptr<Store>> try_open(const std::string& boot_id = "boot-1") const {
    return Store::open({.directory = directory(), .boot_id = boot_id, .now_ms = 1'700'000'000'000});
  }
  std::unique_ptr<Store> open(const std::string& boot_id = "boot-1") const {
    auto store = try_open(boot_id);
    if (!store) throw std::runtime_error(store.error().message);
    return *std::move(store);
  }

  Database connect(Database::Access access = Database::Access::kReadOnly) const {
    auto database = Database::open(file(), access);
    if (!database) throw std::runtime_error(database.error().message);
    return *std::move(database);
  }

  /// All rows of a query as a second, read-only connection sees them.
  std::vector<std::vector<std::string>> rows(const std::string& sql, int columns = 1) const {
    const Database database = connect();
    auto statement = database.prepare(sql, "read");
    if (!statement) throw std::runtime_error(statement.error().message);
    std::vector<std::vector<std::string>> all;
    while (true) {
      const auto more = statement->next();
      if (!more) throw std::runtime_error(more.error().message);
      if (!*more) return all;
      all.emplace_back();
      for (int column = 0; column < columns; ++column) all.back().push_back(statement->text(column));
    }
  }
  std::string value(const std::string& sql) const {
    const auto all = rows(sql);
    return all.empty() ? "(no row)" : all.at(0).at(0);
  }

  /// The first column of all rows, "a,b,c".
  std::string column(const std::string& sql) const {
    std::string joined;
    for (const auto& row : rows(sql)) joined += (joined.empty() ? "" : ",") + row.at(0);
    return joined;
  }

  std::filesystem::path root_;
};

inline DecidedRow exclusive_row(const std::string& container, const CpuSet& cpus) {
  return {.at_ms = 1'700'000'000'123,
          .generation = 5,
          .event = "placed",
          .pod_uid = "uid-1",
          .pod_namespace = "shop",
          .pod_name = "till",
          .container = container,
          .attempt = 2,
          .sandbox_id = "sandbox-1",
          .container_id = "",
          .runtime_handler = "runc",
          .qos = "guaranteed",
          .cpu_request_milli = 2000,
          .cpu_limit_milli = 2000,
          .memory_request_bytes = 1 << 30,
          .memory_limit_bytes = std::int64_t{8} << 30,
          .mode = "exclusive",
          .cpus = cpus,
          .within = {},
          .withheld = {},
          .mems = {0},
          .kubelet_cpus = {},
          .nodes = "0",
          .reason = "numa: fits one node",
          .verdicts = std::nullopt,
          .supersedes = std::nullopt,
          .holds = true,
          .held_cpus = {{"exclusive", cpus}}};
}

/// The allocation of a decision, in the columns that have no default.
inline Columns allocation_columns(const DecidedRow& row) {
  return {{"state", "pending"},
          {"container_id", row.container_id},
          {"cpus", row.cpus.to_string()},
          {"pending_since_ms", row.at_ms}};
}

/// Adds a decision and what it holds.
inline Result<std::int64_t> add_with_allocation(Store& store, const DecidedRow& row) {
  auto decision = store.add(row);
  if (!decision) return decision;
  if (Status put = store.put_allocation(*decision, allocation_columns(row)); !put) return put.error();
  return decision;
}

inline Columns pod_columns(const std::string& sandbox_id, const std::string& pod_name) {
  return {{"sandbox_id", sandbox_id},
          {"pod_uid", "uid-" + pod_name},
          {"pod_namespace", "shop"},
          {"pod_name", pod_name},
          {"runtime_handler", "runc"}};
}

/// A column as text.
inline std::string shown(const std::map<std::string, Value>& columns, const std::string& name) {
  const auto found = columns.find(name);
  if (found == columns.end()) return "(no such column)";
  const auto* text = std::get_if<std::string>(&found->second);
  return text != nullptr ? *text : std::to_string(std::get<std::int64_t>(found->second));
}

inline DecidedRow shared_row(const std::string& container, const CpuSet& cpus, const CpuSet& within) {
  DecidedRow row = exclusive_row(container, cpus);
  row.mode = "shared";
  row.qos = "burstable";
  row.within = within;
  row.held_cpus = {};
  return row;
}

inline DecidedRow denied_row(const std::string& container) {
  DecidedRow row = exclusive_row(container, {});
  row.event = "denied";
  row.mode = "";
  row.mems = {};
  row.nodes = "";
  row.holds = false;
  row.reason = "no node has 64 CPUs free";
  return row;
}

}  // namespace topolet::store
