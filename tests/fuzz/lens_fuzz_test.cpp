// The properties of the lens on random messages and on damaged ones. A run is always the same; TOPOLET_FUZZ_SEED plays
// another, TOPOLET_FUZZ_ROUNDS makes it longer.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <string>

#include "tests/fuzz/damage.hpp"
#include "tests/fuzz/lens_properties.hpp"
#include "tests/fuzz/random_messages.hpp"
#include "tests/support/cri.pb.h"

namespace topolet {
namespace {

namespace api = ::runtime::v1;

struct Counts {
  int placeable = 0;
  int refused_by_both = 0;
  int more_accepted_by_lens = 0;

  void add(const Judgement& judgement) {
    placeable += judgement.placeable ? 1 : 0;
    refused_by_both += !judgement.full_accepts && !judgement.lens_accepts ? 1 : 0;
    more_accepted_by_lens += !judgement.full_accepts && judgement.lens_accepts ? 1 : 0;
  }
};

class LensFuzz : public ::testing::Test {
 protected:
  using Judge = Judgement (*)(const std::string&);

  LensFuzz() {
    silence_protobuf();
    std::cout << "TOPOLET_FUZZ_SEED=" << seed_ << "\n";
  }

  Counts whole(const google::protobuf::Message& prototype, Judge judge) {
    RandomMessages messages(seed_);
    Counts counts;
    for (std::uint64_t i = 0; i < rounds_ && !HasFailure(); ++i) {
      const std::string bytes = messages.wire(prototype);
      const Judgement judgement = judge(bytes);
      EXPECT_TRUE(judgement.full_accepts) << "the generator made what the CRI refuses: " << hex(bytes);
      expect_fine(judgement, bytes);
      counts.add(judgement);
    }
    return counts;
  }

  Counts damaged(const google::protobuf::Message& prototype, Judge judge) {
    RandomMessages messages(seed_);
    Counts counts;
    for (std::uint64_t i = 0; i < rounds_ && !HasFailure(); ++i) {
      const std::string bytes = messages.damaged(messages.wire(prototype));
      const Judgement judgement = judge(bytes);
      expect_fine(judgement, bytes);
      counts.add(judgement);
    }
    return counts;
  }

  int share(unsigned percent) const { return static_cast<int>(rounds_ * percent / 100); }

 private:
  void expect_fine(const Judgement& judgement, const std::string& bytes) const {
    ASSERT_EQ(judgement.violation, "") << "TOPOLET_FUZZ_SEED=" << seed_ << ", message " << hex(bytes);
  }

  const std::uint64_t seed_ = from_environment("TOPOLET_FUZZ_SEED", 1);
  const std::uint64_t rounds_ = from_environment("TOPOLET_FUZZ_ROUNDS", 5000);
};

TEST_F(LensFuzz, ReadsAndPatchesAnyCreateContainerRequest) {
  const Counts counts = whole(api::CreateContainerRequest(), judge_create_container);
  EXPECT_GT(counts.placeable, share(20)) << "the generator no longer makes requests that can be placed";
}

TEST_F(LensFuzz, ReadsAndPatchesAnyUpdate) {
  const Counts counts = whole(api::UpdateContainerResourcesRequest(), judge_update_container_resources);
  EXPECT_GT(counts.placeable, share(50));
}

TEST_F(LensFuzz, ReadsAnyListOfContainers) {
  const Counts counts = whole(api::ListContainersResponse(), judge_list_containers);
  EXPECT_EQ(counts.placeable, share(100));
}

TEST_F(LensFuzz, ReadsAnyContainerStatus) {
  const Counts counts = whole(api::ContainerStatusResponse(), judge_container_status);
  EXPECT_EQ(counts.placeable, share(100));
}

TEST_F(LensFuzz, NeverRefusesADamagedCreateThatTheCriAccepts) {
  const Counts counts = damaged(api::CreateContainerRequest(), judge_create_container);
  EXPECT_GT(counts.refused_by_both, share(5));
  EXPECT_GT(counts.more_accepted_by_lens, 0) << "damage in a part that the lens skips should pass";
}

TEST_F(LensFuzz, NeverRefusesADamagedUpdateThatTheCriAccepts) {
  const Counts counts = damaged(api::UpdateContainerResourcesRequest(), judge_update_container_resources);
  EXPECT_GT(counts.refused_by_both, share(5));
}

TEST_F(LensFuzz, SurvivesDamagedAnswers) {
  EXPECT_GT(damaged(api::ListContainersResponse(), judge_list_containers).refused_by_both, share(5));
  EXPECT_GT(damaged(api::ContainerStatusResponse(), judge_container_status).refused_by_both, share(5));
}

TEST_F(LensFuzz, TellsAnUnparsableMessageFromOneThatQuotesTheseWords) {
  api::CreateContainerRequest create;
  create.mutable_config()->mutable_metadata()->set_name("web");
  create.mutable_config()->mutable_linux()->mutable_resources()->set_cpuset_cpus("cannot be parsed");
  EXPECT_EQ(judge_create_container(create.SerializeAsString()).violation, "");
  api::UpdateContainerResourcesRequest update;
  update.mutable_linux()->set_cpuset_mems("UpdateContainerResourcesRequest cannot be parsed: it is damaged");
  EXPECT_EQ(judge_update_container_resources(update.SerializeAsString()).violation, "");
}

}  // namespace
}  // namespace topolet
