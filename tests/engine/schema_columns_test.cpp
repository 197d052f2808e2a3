#include <map>
#include <string>

#include "core/engine/state/codec.hpp"
#include "tests/store/scratch.hpp"

namespace topolet::engine {
namespace {

using Types = std::map<std::string, std::string>;  // by column

/// `columns` as a table would have to declare them.
Types types_of(const store::Columns& columns) {
  Types types;
  for (const auto& [name, value] : columns) {
    types[name] = std::holds_alternative<std::int64_t>(value) ? "INTEGER" : "TEXT";
  }
  return types;
}

class SchemaColumnsTest : public store::StoreTest {
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
  expected["decision"] = "INTEGER";
  for (const std::string shared : {"cpus", "vacating", "generation"}) {
    auto own = expected.extract(shared);
    own.key() = "own_" + shared;
    expected.insert(std::move(own));
  }
  EXPECT_EQ(declared("allocation_row"), expected);
}

TEST_F(SchemaColumnsTest, AreThoseOfAPod) {
  const auto store = open();
  Types expected = types_of(encode(Pod()));
  expected["boot"] = "INTEGER";
  EXPECT_EQ(declared("pod"), expected);
}

TEST_F(SchemaColumnsTest, AreThoseOfAReportedCapacity) {
  const auto store = open();
  Types expected = types_of(encode(ReportedCapacity()));
  expected["node"] = "INTEGER";
  EXPECT_EQ(declared("reported_capacity"), expected);
}

}  // namespace
}  // namespace topolet::engine
