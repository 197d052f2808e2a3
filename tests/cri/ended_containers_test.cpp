#include "core/cri/messages/ended_containers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/cri/messages/lens.pb.h"
#include "core/cri/messages/requests.hpp"

namespace topolet::testing {
namespace {

using operations::ExitSeen;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int32_t kRunning = 1;
constexpr std::int32_t kExited = 2;

std::vector<ExitSeen> read(const std::string& method, const std::string& answer) {
  const std::string path = "/runtime.v1.RuntimeService/" + method;
  return cri::read_ended_containers({path, {answer}});
}

void add(lens::ListContainersResponse& list, const std::string& id, std::int32_t state) {
  lens::Container& container = *list.add_containers();
  container.set_id(id);
  container.set_sandbox_id("a sandbox");
  container.mutable_metadata()->set_name("web");
  container.set_state(state);
}

TEST(EndedContainers, AreTheExitedOnesOfAList) {
  lens::ListContainersResponse list;
  EXPECT_THAT(read("ListContainers", list.SerializeAsString()), IsEmpty());
  add(list, "runs", kRunning);
  EXPECT_THAT(read("ListContainers", list.SerializeAsString()), IsEmpty());
  add(list, "ended", kExited);
  add(list, "runs too", kRunning);
  add(list, "", kExited);
  add(list, "ended too", kExited);
  EXPECT_THAT(read("ListContainers", list.SerializeAsString()),
              ElementsAre(ExitSeen{"ended", {}}, ExitSeen{"ended too", {}}));
  EXPECT_THAT(read("StreamContainers", list.SerializeAsString()),
              ElementsAre(ExitSeen{"ended", {}}, ExitSeen{"ended too", {}}));
}

TEST(EndedContainers, HaveTheirExitCodeFromAContainerStatus) {
  lens::ContainerStatusResponse response;
  lens::ContainerStatus& status = *response.mutable_status();
  status.set_id("web");
  status.set_state(kRunning);
  response.add_info()->set_value("{}");
  EXPECT_THAT(read("ContainerStatus", response.SerializeAsString()), IsEmpty());
  status.set_state(kExited);
  EXPECT_THAT(read("ContainerStatus", response.SerializeAsString()), ElementsAre(ExitSeen{"web", 0}));
  status.set_exit_code(137);
  EXPECT_THAT(read("ContainerStatus", response.SerializeAsString()), ElementsAre(ExitSeen{"web", 137}));
  status.set_exit_code(-1);
  EXPECT_THAT(read("ContainerStatus", response.SerializeAsString()), ElementsAre(ExitSeen{"web", -1}));
}

TEST(EndedContainers, AreTheStoppedAndDeletedOnesOfEvents) {
  lens::ContainerEvent event;
  event.set_container_id("web");
  for (const std::int32_t created_or_started : {0, 1}) {
    event.set_type(created_or_started);
    EXPECT_THAT(read("GetContainerEvents", event.SerializeAsString()), IsEmpty());
  }
  for (const std::int32_t stopped_or_deleted : {2, 3}) {
    event.set_type(stopped_or_deleted);
    EXPECT_THAT(read("GetContainerEvents", event.SerializeAsString()), ElementsAre(ExitSeen{"web", {}}));
  }
  event.set_container_id("");
  EXPECT_THAT(read("GetContainerEvents", event.SerializeAsString()), IsEmpty());
}

TEST(EndedContainers, EndWithWhatCannotBeRead) {
  lens::ListContainersResponse list;
  add(list, "ended", kExited);
  const std::string whole = list.SerializeAsString();
  add(list, "ended too", kExited);
  const std::string both = list.SerializeAsString();
  for (std::size_t size = 0; size < both.size(); ++size) {
    const auto ended = read("ListContainers", both.substr(0, size));
    if (size < whole.size()) {
      EXPECT_THAT(ended, IsEmpty()) << size;
    } else {
      EXPECT_THAT(ended, ElementsAre(ExitSeen{"ended", {}})) << size;
    }
  }
  EXPECT_THAT(read("ListContainers", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), IsEmpty());
}

/// Cuts a message anywhere, also between no bytes.
cri::MessagePieces cut(std::string_view message, std::mt19937& random) {
  cri::MessagePieces pieces;
  while (!message.empty()) {
    const std::size_t size =
        std::uniform_int_distribution<std::size_t>(0, std::min<std::size_t>(40, message.size()))(random);
    pieces.push_back(message.substr(0, size));
    message.remove_prefix(size);
  }
  return pieces;
}

TEST(EndedContainers, AreTheSameInWhateverPiecesAListComes) {
  // Fields that nobody reads, of the other wire types: 7 has eight bytes, 9 four.
  const std::string unknown = std::string("\x39") + "abcdefgh" + "\x4d" + "abcd";
  std::mt19937 random(1);
  for (int run = 0; run < 500; ++run) {
    lens::ListContainersResponse list;
    for (int i = std::uniform_int_distribution(0, 30)(random); i > 0; --i) {
      add(list, std::string(random() % 70, 'c') + std::to_string(i), static_cast<std::int32_t>(random() % 4));
      lens::Container& container = *list.mutable_containers(list.containers_size() - 1);
      container.mutable_metadata()->set_attempt(static_cast<std::uint32_t>(random()));
      ASSERT_TRUE(container.MergeFromString(unknown));
    }
    const std::string answer = list.SerializeAsString();
    std::vector<ExitSeen> expected;
    for (const lens::Container& container : list.containers()) {
      if (container.state() == kExited) expected.push_back({container.id(), {}});
    }
    EXPECT_EQ(cri::read_ended_containers({"/runtime.v1.RuntimeService/ListContainers", cut(answer, random)}), expected);
  }
}

}  // namespace
}  // namespace topolet::testing
