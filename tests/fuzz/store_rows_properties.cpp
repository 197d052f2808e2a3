#include "tests/fuzz/store_rows_properties.hpp"

#include <charconv>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/stored_fields.hpp"
#include "store/store.hpp"

namespace topolet {
namespace {

using Row = std::map<std::string, store::Value>;

Row row_of(const std::string& text) {
  Row row;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto space = line.find(' ');
    if (space == std::string::npos || line.size() < space + 3) continue;
    const std::string value = line.substr(space + 3);
    std::int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    row[line.substr(0, space)] = line[space + 1] == 'i' ? store::Value(number) : store::Value(value);
  }
  return row;
}

template <class T>
constexpr bool kIsPlain = std::is_integral_v<T> || std::is_same_v<T, std::string>;

/// A number or a text in the row is the field's value, digit for digit.
template <class T>
bool same_value(const store::Value& column, const T& field) {
  if constexpr (std::is_same_v<T, std::string>) {
    return column == store::Value(field);
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return column == store::Value(static_cast<std::int64_t>(field));
  } else {
    return column == store::Value(std::int64_t{field});
  }
}

template <class Of, class ForEach>
std::string plain_value_violation(const Row& row, const Of& read, ForEach for_each) {
  std::string violation;
  for_each(read, [&](const char* column, const auto& field) {
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (kIsPlain<T>) {
      const auto found = row.find(column);
      if (found != row.end() && !same_value(found->second, field))
        violation = std::string("column ") + column + " is read as another value";
    }
  });
  return violation;
}

std::string error_violation(const Error& error, const Row& row) {
  if (error.code != Code::kDataLoss) return "refused with another code than DATA_LOSS";
  for (const auto& [column, value] : row) {
    if (error.message.find("column " + column + ": ") != std::string::npos) return {};
  }
  return "an error that names no column of the row: " + error.message;
}

/// The row as a table gives it, with all columns: those that it lacks are as they are of an empty value.
template <class Value>
Row completed(Row row) {
  for (auto& [column, value] : engine::encode(Value())) row.try_emplace(column, std::move(value));
  return row;
}

constexpr std::int64_t kDecision = 1;

/// A store in memory with one decision.
std::unique_ptr<store::Store> make_store() {
  auto store = store::Store::open_in_memory("boot", 0);
  if (!store) throw std::runtime_error(store.error().message);
  store::DecidedRow row;
  row.event = "placed";
  row.mode = "shared";
  const auto decision = (*store)->add(row);
  if (!decision || *decision != kDecision) throw std::runtime_error("the store does not number the first decision 1");
  return *std::move(store);
}

std::string allocation_violation(const Row& row, store::Store& store, bool& accepted) {
  const auto read = engine::decode_allocation({kDecision, row});
  if (!read) return error_violation(read.error(), row);
  accepted = true;
  const store::Columns columns = engine::encode(*read);
  if (const Status put = store.put_allocation(kDecision, columns); !put) return put.error().message;
  const auto rows = store.allocations();
  if (!rows || rows->size() != 1) return "the store does not give back what was written";
  const auto again = engine::decode_allocation(rows->front());
  if (!again || *again != *read) return "written and read back, it is another allocation";
  if (engine::encode(*again) != columns) return "read back, the allocation is written differently";
  return plain_value_violation(row, *read, [](const auto& of, auto field) { for_each_field_of_allocation(of, field); });
}

std::string pod_violation(const Row& row, store::Store& store, bool& accepted) {
  const auto read = engine::decode_pod(row);
  if (!read) return error_violation(read.error(), row);
  accepted = true;
  const store::Columns columns = engine::encode(*read);
  if (const Status put = store.put_pod(columns); !put) return put.error().message;
  const auto rows = store.pods();
  if (!rows || rows->size() != 1) return "the store does not give back what was written";
  const auto again = engine::decode_pod(rows->front());
  if (!again || *again != *read) return "written and read back, it is another pod";
  if (const Status removed = store.remove_pod(read->sandbox.id); !removed) return removed.error().message;
  return plain_value_violation(row, *read, [](const auto& of, auto field) { for_each_field_of_pod(of, field); });
}

}  // namespace

TextJudgement judge_store_rows(const std::string& text) {
  static const std::unique_ptr<store::Store> kStore = make_store();
  const Row row = row_of(text);
  TextJudgement result;
  result.violation = allocation_violation(completed<engine::Allocation>(row), *kStore, result.accepted);
  if (result.violation.empty()) result.violation = pod_violation(completed<engine::Pod>(row), *kStore, result.accepted);
  return result;
}

}  // namespace topolet
