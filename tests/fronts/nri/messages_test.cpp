// What goes over the wire, byte by byte: NRI's field numbers are in nobody's header here.
#include "core/fronts/nri/messages.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace topolet::nri {
namespace {

using namespace std::string_view_literals;
using operations::Admission;
using placement::AddedFields;
using placement::IoClass;
using placement::IoPriority;
using placement::MemoryMode;
using placement::MemoryPolicy;
using placement::Scheduler;
using placement::SchedulerClass;

/// A field of bytes, shorter than 128.
std::string field_of(int number, std::string_view bytes) {
  std::string field{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())};
  field += bytes;
  return field;
}

/// adjust 1 { linux 6 { resources 2 { cpu 2 { cpus 6 } }, and the rest } }.
std::string create_answer_with(std::string_view rest) {
  const std::string resources = field_of(2, field_of(2, field_of(6, "1")));
  return field_of(1, field_of(6, resources + std::string(rest)));
}

std::string answer_with(const AddedFields& added) {
  Admission admission;
  admission.set = operations::ContainerCpuset{CpuSet{1}, {}};
  admission.added = added;
  return make_create_answer(admission);
}
std::string answer_with(const MemoryPolicy& memory_policy) {
  AddedFields added;
  added.memory_policy = memory_policy;
  return answer_with(added);
}
std::string answer_with(const Scheduler& scheduler) {
  AddedFields added;
  added.scheduler = scheduler;
  return answer_with(added);
}
std::string answer_with(const IoPriority& io_priority) {
  AddedFields added;
  added.io_priority = io_priority;
  return answer_with(added);
}

TEST(NriCreateAnswer, HasOnlyTheCpusWithoutSettings) { EXPECT_EQ(answer_with(AddedFields()), create_answer_with("")); }

TEST(NriCreateAnswer, TellsTheIoPriorityInField5) {
  EXPECT_EQ(answer_with(IoPriority{IoClass::kBestEffort, 6}), create_answer_with("\x2a\x04\x08\x02\x10\x06"sv));
  EXPECT_EQ(answer_with(IoPriority{IoClass::kRealtime, 0}), create_answer_with("\x2a\x02\x08\x01"sv));
  EXPECT_EQ(answer_with(IoPriority{IoClass::kIdle, 0}), create_answer_with("\x2a\x02\x08\x03"sv));
}

TEST(NriCreateAnswer, TellsTheSchedulerInField10) {
  EXPECT_EQ(answer_with(Scheduler{SchedulerClass::kOther, 5}), create_answer_with("\x52\x04\x08\x01\x10\x05"sv));
  EXPECT_EQ(answer_with(Scheduler{SchedulerClass::kBatch, -5}),
            create_answer_with("\x52\x0d\x08\x04\x10\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv));
  EXPECT_EQ(answer_with(Scheduler{SchedulerClass::kIdle, 0}), create_answer_with("\x52\x02\x08\x06"sv));
}

TEST(NriCreateAnswer, TellsTheMemoryPolicyInField12) {
  const auto of = [](MemoryMode mode, const NodeSet& nodes) { return answer_with(MemoryPolicy{mode, nodes}); };
  EXPECT_EQ(of(MemoryMode::kPreferred, {1}), create_answer_with("\x62\x05\x08\x01\x12\x01"
                                                                "1"sv));
  EXPECT_EQ(of(MemoryMode::kBind, {0, 1}), create_answer_with("\x62\x07\x08\x02\x12\x03"
                                                              "0-1"sv));
  EXPECT_EQ(of(MemoryMode::kInterleave, {0, 2}), create_answer_with("\x62\x07\x08\x03\x12\x03"
                                                                    "0,2"sv));
  EXPECT_EQ(of(MemoryMode::kLocal, {}), create_answer_with("\x62\x02\x08\x04"sv));
  EXPECT_EQ(of(MemoryMode::kPreferredMany, {0}), create_answer_with("\x62\x05\x08\x05\x12\x01"
                                                                    "0"sv));
  EXPECT_EQ(of(MemoryMode::kWeightedInterleave, {0}), create_answer_with("\x62\x05\x08\x06\x12\x01"
                                                                         "0"sv));
}

TEST(NriCreateAnswer, TellsTheFlagsOfTheMemoryPolicy) {
  const auto with = [](bool is_static, bool is_relative, bool balances) {
    return answer_with(MemoryPolicy{MemoryMode::kBind, {1}, is_static, is_relative, balances});
  };
  EXPECT_EQ(with(true, false, true), create_answer_with("\x62\x09\x08\x02\x12\x01"
                                                        "1\x1a\x02\x00\x02"sv));
  EXPECT_EQ(with(false, true, false), create_answer_with("\x62\x08\x08\x02\x12\x01"
                                                         "1\x1a\x01\x01"sv));
}

TEST(NriCreateAnswer, TellsTheRdtClassBesideTheOthers) {
  const std::string resources = field_of(2, field_of(2, field_of(6, "1")) + field_of(5, field_of(1, "gold")));
  AddedFields added;
  added.rdt_class = "gold";
  added.io_priority = IoPriority{IoClass::kIdle, 0};
  EXPECT_EQ(answer_with(added), field_of(1, field_of(6, resources + std::string("\x2a\x02\x08\x03"))));
}

}  // namespace
}  // namespace topolet::nri
