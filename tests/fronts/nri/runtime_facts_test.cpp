#include "core/fronts/nri/runtime_facts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace topolet::nri {
namespace {

constexpr std::uint32_t kModes = 0x7e;

/// Such as "0.12: memory 7e, scheduler, I/O".
std::string shown(const std::string& name, const std::string& version, const std::string& nri) {
  const placement::Settable settable = settable_through({name, version, nri, {}}, kModes);
  const auto known = nri_version_of({name, version, nri, {}});
  std::string text = known ? std::to_string(known->first) + "." + std::to_string(known->second) + ":" : "unknown:";
  if (settable.memory_modes == kModes) text += " memory";
  if (settable.scheduler) text += " scheduler";
  if (settable.io_priority) text += " I/O";
  return text;
}

TEST(SettableThrough, IsWhatTheToldVersionOfNriHas) {
  EXPECT_EQ(shown("containerd", "v2.4.2", "v0.12.3"), "0.12: memory scheduler I/O");
  EXPECT_EQ(shown("containerd", "v2.4.2", "v0.11.0"), "0.11: scheduler I/O") << "not what its own version would say";
  EXPECT_EQ(shown("another", "7", "0.10.1-pre"), "0.10: I/O");
  EXPECT_EQ(shown("another", "7", "v0.9.0"), "0.9:");
  EXPECT_EQ(shown("another", "7", "v1.0.0"), "1.0: memory scheduler I/O");
}

TEST(SettableThrough, IsWhatAllRuntimesOfItsVersionHaveWhereNriIsNotTold) {
  EXPECT_EQ(shown("containerd", "1.7.27", ""), "0.3:");
  EXPECT_EQ(shown("containerd", "v2.1.4", ""), "0.3:");
  EXPECT_EQ(shown("containerd", "v2.2.0", ""), "0.10: I/O");
  EXPECT_EQ(shown("containerd", "v2.2.7", ""), "0.11: scheduler I/O");
  EXPECT_EQ(shown("containerd", "v2.3.4", ""), "0.12: memory scheduler I/O");
  EXPECT_EQ(shown("containerd", "2.4", ""), "0.12: memory scheduler I/O");
  EXPECT_EQ(shown("cri-o", "1.33.5", ""), "0.3:");
  EXPECT_EQ(shown("cri-o", "1.34.0", ""), "0.10: I/O");
  EXPECT_EQ(shown("cri-o", "1.36.3", ""), "0.11: scheduler I/O");
}

TEST(SettableThrough, IsNothingOfAnUnknownRuntime) {
  EXPECT_EQ(shown("another", "2.4.2", ""), "unknown:") << "what a runtime is too old for is dropped without an error";
  EXPECT_EQ(shown("containerd", "unknown", "(devel)"), "unknown:");
  EXPECT_EQ(settable_through({"another", "2.4.2", "", {}}, kModes).through, "NRI of unknown version of another 2.4.2");
}

TEST(SettableNow, IsOfTheRuntimeThatWasNotedLast) {
  SettableNow now(kModes);
  EXPECT_EQ(now.get(), (placement::Settable{.through = "NRI"})) << "nobody knows yet";
  now.note({"containerd", "v2.4.2", "v0.12.3", {}});
  EXPECT_EQ(now.get(), (placement::Settable{kModes, true, true, "NRI 0.12 of containerd v2.4.2"}));
  now.note({"cri-o", "1.33.1", "", {}});
  EXPECT_EQ(now.get(), (placement::Settable{0, false, false, "NRI 0.3 of cri-o 1.33.1"}));
}

}  // namespace
}  // namespace topolet::nri
