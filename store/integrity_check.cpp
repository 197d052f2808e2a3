#include "store/integrity_check.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "store/database.hpp"

namespace topolet::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How often the time is looked at.
constexpr std::uint64_t kRowsPerLook = 64;

struct Column {
  std::string name;
  std::string type;
  bool may_be_null = true;
};

/// A table or an index of one, in the order in which the file has it.
struct Tree {
  std::string name;
  std::string table;
  bool is_index = false;
  std::vector<std::string> key;  ///< no two entries have the same
  std::vector<Column> columns;   ///< what is read of each entry; the first are the key
  std::string condition;         ///< of a partial index
};

std::string quoted(const std::string& name) { return '"' + name + '"'; }

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

/// Which entries, as a condition on the first columns of the key.
enum class Range {
  kAll,
  kSameBeginning,  ///< those with all but the last column of the key as they are in another entry, and a greater last
  kLater,          ///< those greater than that entry in all but the last column; in a key of one column, in that one
};

std::size_t columns_compared(const Tree& tree, Range range) {
  if (range == Range::kAll) return 0;
  return range == Range::kLater && tree.key.size() > 1 ? tree.key.size() - 1 : tree.key.size();
}

std::string condition_of(const Tree& tree, Range range) {
  const std::vector<std::string> compared(
      tree.key.begin(), tree.key.begin() + static_cast<std::ptrdiff_t>(columns_compared(tree, range)));
  if (range == Range::kLater) {
    return fmt::format("({}) > ({})", joined(compared), joined(std::vector<std::string>(compared.size(), "?")));
  }
  std::string condition;
  for (std::size_t i = 0; i < compared.size(); ++i) {
    condition += fmt::format("{}{} {} ?", i == 0 ? "" : " AND ", compared[i], i + 1 == compared.size() ? ">" : "=");
  }
  return condition;
}

std::string select_entries(const Tree& tree, Range range) {
  std::vector<std::string> columns;
  for (const Column& column : tree.columns) columns.push_back(column.name);
  const std::string condition = condition_of(tree, range);
  const std::string where = tree.condition + (tree.condition.empty() || condition.empty() ? "" : " AND ") + condition;
  return fmt::format("SELECT {} FROM {} {}{}{} ORDER BY {}", joined(columns), quoted(tree.table),
                     tree.is_index ? "INDEXED BY " + quoted(tree.name) : "NOT INDEXED", where.empty() ? "" : " WHERE ",
                     where, joined(tree.key));
}

/// Names a column whose value has another type than is declared, which STRICT tables refuse when it is written.
std::string wrong_type(const Statement& row, const Tree& tree) {
  for (std::size_t i = 0; i < tree.columns.size(); ++i) {
    const Column& column = tree.columns[i];
    const int at = static_cast<int>(i);
    const bool fits = row.is_null(at) ? column.may_be_null : column.type != "INTEGER" || row.is_integer(at);
    if (!fits) return fmt::format("column {} of {} holds what it never may", column.name, tree.name);
  }
  return {};
}

/// Reads the trees of a file, a slice at a time.
class Reader {
 public:
  explicit Reader(const Database& database) : database_(database) {}

  Result<std::vector<Tree>> find_trees() const;
  /// Reads `tree` from where the slice before ended, until `until`. True at its end.
  Result<bool> read_slice(const Tree& tree, steady_clock::time_point until);

  std::uint64_t entries() const { return entries_; }

 private:
  Result<Tree> table_of(const std::string& name) const;
  Result<std::optional<Tree>> index_of(const std::string& name, const Tree& table, const std::string& sql) const;
  Result<bool> read_range(const Tree& tree, Range range, steady_clock::time_point until);
  /// Notes where the next slice begins; false if it cannot begin there.
  bool note_key(const Statement& row, const Tree& tree);
  static Error damage(const std::string& what) { return {Code::kDataLoss, what}; }

  const Database& database_;
  Columns last_key_;
  std::uint64_t entries_ = 0;
};

Result<std::vector<std::vector<std::string>>> all_rows(const Database& database, const std::string& sql) {
  auto statement = database.prepare(sql, "read what is in it");
  if (!statement) return statement.error();
  std::vector<std::vector<std::string>> rows;
  const std::size_t width = statement->columns().size();
  while (true) {
    const auto more = statement->next();
    if (!more) return more.error();
    if (!*more) return rows;
    rows.emplace_back();
    for (std::size_t i = 0; i < width; ++i) rows.back().push_back(statement->text(static_cast<int>(i)));
  }
}

Result<Tree> Reader::table_of(const std::string& name) const {
  const auto columns = all_rows(
      database_, fmt::format("SELECT name, type, \"notnull\" FROM pragma_table_info('{}') ORDER BY cid", name));
  if (!columns) return columns.error();
  const auto key =
      all_rows(database_, fmt::format("SELECT name FROM pragma_table_info('{}') WHERE pk > 0 ORDER BY pk", name));
  if (!key) return key.error();
  const auto without_rowid =
      database_.integer(fmt::format("SELECT wr FROM pragma_table_list WHERE name = '{}'", name), "read the schema");
  if (!without_rowid) return without_rowid.error();
  Tree tree{.name = name, .table = name, .key = {}, .columns = {}, .condition = {}};
  if (*without_rowid == 0) {
    tree.key = {"rowid"};
  } else {
    for (const auto& row : *key) tree.key.push_back(quoted(row[0]));
  }
  for (const std::string& column : tree.key) tree.columns.push_back({column, "", true});
  for (const auto& row : *columns) tree.columns.push_back({quoted(row[0]), row[1], row[2] != "1"});
  return tree;
}

/// None for an index whose entries cannot be read by their order.
Result<std::optional<Tree>> Reader::index_of(const std::string& name, const Tree& table, const std::string& sql) const {
  const auto columns =
      all_rows(database_, fmt::format("SELECT cid, name, \"desc\" FROM pragma_index_xinfo('{}') ORDER BY seqno", name));
  if (!columns) return columns.error();
  Tree tree{.name = name, .table = table.table, .is_index = true, .key = {}, .columns = {}, .condition = {}};
  for (const auto& row : *columns) {
    if (row[0] == "-2" || row[2] == "1") return std::optional<Tree>();
    tree.key.push_back(row[0] == "-1" ? "rowid" : quoted(row[1]));
    tree.columns.push_back({tree.key.back(), "", true});
  }
  if (const auto where = sql.find(" WHERE "); where != std::string::npos) tree.condition = sql.substr(where + 7);
  return std::optional<Tree>(std::move(tree));
}

Result<std::vector<Tree>> Reader::find_trees() const {
  const auto tables = all_rows(database_, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  if (!tables) return tables.error();
  std::vector<Tree> trees;
  for (const auto& table : *tables) {
    auto tree = table_of(table[0]);
    if (!tree) return tree.error();
    trees.push_back(*tree);
    const auto indexes = all_rows(
        database_, fmt::format("SELECT l.name, coalesce(s.sql, '') FROM pragma_index_list('{}') l JOIN sqlite_schema s "
                               "ON s.name = l.name WHERE s.rootpage > 0 ORDER BY l.name",
                               table[0]));
    if (!indexes) return indexes.error();
    for (const auto& index : *indexes) {
      auto found = index_of(index[0], *tree, index[1]);
      if (!found) return found.error();
      if (*found) trees.push_back(**std::move(found));
    }
  }
  return trees;
}

bool Reader::note_key(const Statement& row, const Tree& tree) {
  Columns key;
  for (std::size_t i = 0; i < tree.key.size(); ++i) {
    const int at = static_cast<int>(i);
    // Nothing is greater than NULL. A key that is a BLOB would be bound as a text, which comes before all of them.
    if (!row.is_integer(at) && !row.is_text(at)) return false;
    key.emplace_back(tree.key[i], row.is_integer(at) ? Value(row.integer(at)) : Value(row.text(at)));
  }
  last_key_ = std::move(key);
  return true;
}

Result<bool> Reader::read_slice(const Tree& tree, steady_clock::time_point until) {
  std::vector<Range> ranges{Range::kAll};
  if (!last_key_.empty()) ranges = {Range::kLater};
  if (last_key_.size() > 1) ranges.insert(ranges.begin(), Range::kSameBeginning);
  for (const Range range : ranges) {
    const auto at_end = read_range(tree, range, until);
    if (!at_end || !*at_end) return at_end;
  }
  last_key_.clear();
  return true;
}

Result<bool> Reader::read_range(const Tree& tree, Range range, steady_clock::time_point until) {
  auto row = database_.prepare(select_entries(tree, range), "check " + tree.name);
  if (!row) return row.error();
  if (Status bound = row->bind_columns(last_key_, columns_compared(tree, range)); !bound) return bound.error();
  for (std::uint64_t read = 1;; ++read) {
    const auto more = row->next();
    if (!more) return more.error();
    if (!*more) return true;
    ++entries_;
    row->read_columns();
    if (const std::string wrong = wrong_type(*row, tree); !wrong.empty()) return damage(wrong);
    if (read % kRowsPerLook == 0 && steady_clock::now() >= until && note_key(*row, tree)) return false;
  }
}

void be_polite() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19); }

}  // namespace

std::unique_ptr<IntegrityCheck> IntegrityCheck::start(const std::filesystem::path& file, IntegrityCheckPace pace,
                                                      std::function<void(const IntegrityReport&)> report) {
  return std::unique_ptr<IntegrityCheck>(new IntegrityCheck(file, pace, std::move(report)));
}

IntegrityCheck::IntegrityCheck(std::filesystem::path file, IntegrityCheckPace pace,
                               std::function<void(const IntegrityReport&)> report)
    : file_(std::move(file)), pace_(pace), report_(std::move(report)) {
  thread_ = std::thread([this] { run(); });
  ::pthread_setname_np(thread_.native_handle(), "topolet-check");
}

IntegrityCheck::~IntegrityCheck() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_up_.notify_all();
  thread_.join();
}

bool IntegrityCheck::pause(milliseconds time) {
  const auto until = steady_clock::now() + time;
  MutexLock lock(mutex_);
  while (!stopping_ && wake_up_.wait_until(mutex_, until)) {
  }
  return !stopping_;
}

void IntegrityCheck::run() {
  be_polite();
  if (!pause(pace_.delay)) return;
  const auto began = steady_clock::now();
  IntegrityReport report;
  const auto finish = [&](const Error& error) {
    if (error.code != Code::kDataLoss) return;
    report.damage = error.message;
    report_(report);
  };
  const auto database = Database::open(file_, Database::Access::kReadOnly);
  if (!database) return finish(database.error());
  Reader reader(*database);
  const auto trees = reader.find_trees();
  if (!trees) return finish(trees.error());
  for (const Tree& tree : *trees) {
    bool at_end = false;
    for (int slices = 0; !at_end; ++slices) {
      if (slices > 0 && !pause(pace_.pause)) return;
      const auto read = reader.read_slice(tree, steady_clock::now() + pace_.slice);
      if (!read) return finish(read.error());
      at_end = *read;
    }
    ++report.trees;
  }
  report.entries = reader.entries();
  report.duration = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  report_(report);
}

}  // namespace topolet::store
