#include "tests/integration/state_db.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

namespace topolet::integration {
namespace {

constexpr int kBusyMs = 5000;

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

std::string text(sqlite3_stmt* row, int column) {
  const auto* bytes = sqlite3_column_text(row, column);
  return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes));
}

Error failed(const std::filesystem::path& file, sqlite3* db) {
  return {Code::kInternal, fmt::format("{}: {}", file.string(), sqlite3_errmsg(db))};
}

Status for_each_row(const std::filesystem::path& file, const char* sql, const std::string& argument,
                    const std::function<void(sqlite3_stmt*)>& visit) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &opened, SQLITE_OPEN_READONLY, nullptr);
  const std::unique_ptr<sqlite3, Close> db(opened);
  if (code != SQLITE_OK) return failed(file, opened);
  sqlite3_busy_timeout(opened, kBusyMs);
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(opened, sql, -1, &prepared, nullptr) != SQLITE_OK) return failed(file, opened);
  const std::unique_ptr<sqlite3_stmt, Close> statement(prepared);
  if (sqlite3_bind_parameter_count(prepared) > 0) {
    sqlite3_bind_text(prepared, 1, argument.c_str(), -1, SQLITE_TRANSIENT);
  }
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(prepared)) == SQLITE_ROW) visit(prepared);
  if (step != SQLITE_DONE) return failed(file, opened);
  return {};
}

template <class Set>
Set set_of(const std::string& list) {
  auto set = Set::parse(list);
  return set ? *set : Set{};
}

}  // namespace

Result<std::vector<PlacementRow>> StateDb::held() const {
  std::vector<PlacementRow> all;
  auto done = for_each_row(file_,
                           "SELECT pod, container, container_id, state, mode, cpus, withheld, mems, reason"
                           " FROM current_placements ORDER BY decision",
                           {}, [&](sqlite3_stmt* row) {
                             all.push_back({text(row, 0), text(row, 1), text(row, 2), text(row, 3), text(row, 4),
                                            set_of<CpuSet>(text(row, 5)), set_of<CpuSet>(text(row, 6)),
                                            set_of<NodeSet>(text(row, 7)), text(row, 8)});
                           });
  if (!done) return done.error();
  return all;
}

Result<std::vector<AuditRow>> StateDb::audit(const std::string& pod) const {
  std::vector<AuditRow> all;
  auto done = for_each_row(file_, "SELECT event, what, reason FROM audit WHERE pod = ?1", pod, [&](sqlite3_stmt* row) {
    all.push_back({text(row, 0), text(row, 1), text(row, 2)});
  });
  if (!done) return done.error();
  return all;
}

Result<std::vector<OpinionRow>> StateDb::said() const {
  std::ifstream query(TOPOLET_SOURCE_DIR "/sdk/example/said.sql");
  std::ostringstream sql;
  sql << query.rdbuf();
  std::vector<OpinionRow> all;
  auto done = for_each_row(file_, sql.str().c_str(), {}, [&](sqlite3_stmt* row) {
    all.push_back({text(row, 0), text(row, 3), text(row, 4), text(row, 5)});
  });
  if (!done) return done.error();
  return all;
}

Result<std::string> StateDb::last_denial(const std::string& pod) const {
  std::string reason;
  auto done = for_each_row(file_, "SELECT reason FROM denials WHERE pod = ?1", pod,
                           [&](sqlite3_stmt* row) { reason = text(row, 0); });
  if (!done) return done.error();
  return reason;
}

}  // namespace topolet::integration
