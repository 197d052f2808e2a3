#include <map>
#include <string>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/fields.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

using Types = std::map<std::string, std::string>;  // by column

/// `columns` as a table would have to declare them.
Types types_of(const Columns& columns) {
  Types types;
  for (const auto& [name, value] : columns) {
    types[name] = std::holds_alternative<std::int64_t>(value) ? "INTEGER" : "TEXT";
  }
  return types;
}

class SchemaColumnsTest : public StoreTest {
 protected:
  Types declared(const std::string& table) const {
    Types types;
    for (const auto& row : rows("SELECT name, type FROM pragma_table_info('" + table + "')", 2)) types[row[0]] = row[1];
    return types;
  }
};

TEST_F(SchemaColumnsTest, AreThoseOfAnAllocation) {
  const auto store = open();
  Types expected = types_of(encode(Allocation()));
  const Allocation allocation;
  for_each_field_of_allocation(allocation, [&](const char* column, const auto&) {
    EXPECT_EQ(expected.count(column), 1U) << column << " is in the list of fields and is not written";
  });
  for (const char* derived : {"state", "pending_since_ms"}) EXPECT_EQ(expected.count(derived), 1U) << derived;
  expected["decision"] = "INTEGER";
  EXPECT_EQ(declared("allocation"), expected);
}

TEST_F(SchemaColumnsTest, AreThoseOfAPod) {
  const auto store = open();
  Types expected = types_of(encode(Pod()));
  const Pod pod;
  for_each_field_of_pod(pod, [&](const char* column, const auto&) {
    EXPECT_EQ(expected.count(column), 1U) << column << " is in the list of fields and is not written";
  });
  expected["boot"] = "INTEGER";
  EXPECT_EQ(declared("pod"), expected);
}

}  // namespace
}  // namespace topolet::engine
