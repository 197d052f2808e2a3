#include "core/machine/rdt_classes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.hpp"

namespace topolet::machine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(RdtClasses, AreTheKernelsGroups) {
  const TempDir resctrl;
  for (const char* directory : {"info/L3", "mon_groups"}) std::filesystem::create_directories(resctrl.file(directory));
  for (const char* file : {"schemata", "silver/schemata", "gold/schemata", "gold/mon_groups/a/tasks"})
    resctrl.write(file, "");
  EXPECT_THAT(rdt_classes(resctrl.path()), ElementsAre("gold", "silver"));
}

TEST(RdtClasses, AreNoneWhereResctrlIsNotMounted) {
  const TempDir sys_fs;
  EXPECT_THAT(rdt_classes(sys_fs.path()), IsEmpty()) << "the mount point is there";
  EXPECT_THAT(rdt_classes(sys_fs.path() / "resctrl"), IsEmpty());
}

}  // namespace
}  // namespace topolet::machine
