#include "core/plugin_checker/exported_symbols.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace topolet::plugin_checker {
namespace {

using testing::ElementsAre;

TEST(ExportedSymbols, AreThoseOfTheDynamicTable) {
  const auto exported = exported_symbols(TOPOLET_MISFIT_DIR "/two-symbols.so");
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_THAT(*exported, ElementsAre("one_more_symbol", "topolet_plugin_v1"));
}

TEST(ExportedSymbols, RefusesWhatIsNoElfFile) {
  EXPECT_FALSE(exported_symbols(__FILE__));
  EXPECT_FALSE(exported_symbols("/no/such/file.so"));
}

}  // namespace
}  // namespace topolet::plugin_checker
