#include "core/cri/socket/client_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace topolet::cri {
namespace {

enum : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kWindowUpdate = 8, kContinuation = 9 };
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, std::size_t size) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xff);
  return bytes + static_cast<char>(type) + static_cast<char>(flags) + std::string(3, '\0') + static_cast<char>(stream) +
         std::string(size, 'p');
}

class ClientFramesTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  ClientFramesTest() { take("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); }

  /// In pieces, as they may arrive. Returns the work.
  std::size_t take(const std::string& bytes) {
    std::size_t work = 0;
    for (std::size_t at = 0; at < bytes.size(); at += GetParam()) {
      const std::size_t size = std::min(GetParam(), bytes.size() - at);
      work += frames_.take(reinterpret_cast<const unsigned char*>(bytes.data()) + at, size);
    }
    return work;
  }

  ClientFrames frames_;
};

INSTANTIATE_TEST_SUITE_P(Pieces, ClientFramesTest, ::testing::Values(1, 7, 100000));

TEST_P(ClientFramesTest, AreFinishedWithACompleteRequest) {
  take(frame(kHeaders, kEndHeaders, 1, 50));
  EXPECT_GE(frames_.unfinished_bytes(), ClientFrames::kCallMemoryBytes);
  EXPECT_EQ(frames_.unfinished_requests(), 1U);
  take(frame(kData, 0, 1, 30000));
  EXPECT_GE(frames_.unfinished_bytes(), ClientFrames::kCallMemoryBytes + 30000);
  EXPECT_TRUE(frames_.in_message());
  take(frame(kData, kEndStream, 1, 0));
  EXPECT_EQ(frames_.unfinished_bytes(), 0U);
  EXPECT_EQ(frames_.unfinished_requests(), 0U);
  EXPECT_EQ(frames_.begun_requests(), 1U);
  EXPECT_EQ(frames_.complete_requests(), 1U);
  take(frame(kWindowUpdate, 0, 0, 4));
  EXPECT_EQ(frames_.unfinished_bytes(), 0U) << "it only reads the response";
}

TEST_P(ClientFramesTest, CountAHeaderThatNeverEnds) {
  take(frame(kHeaders, kEndStream, 1, 50));
  for (int i = 0; i < 10; ++i) take(frame(kContinuation, 0, 1, 16000));
  EXPECT_GE(frames_.unfinished_bytes(), 160000U);
  EXPECT_EQ(frames_.complete_requests(), 0U);
  take(frame(kContinuation, kEndHeaders, 1, 0));
  EXPECT_EQ(frames_.unfinished_bytes(), 0U) << "the first frame said that nothing follows the header";
}

TEST_P(ClientFramesTest, CountWhatOtherRequestsHoldWhenOneIsComplete) {
  take(frame(kHeaders, kEndHeaders, 1, 50) + frame(kData, 0, 1, 100000));
  take(frame(kHeaders, kEndHeaders, 3, 50) + frame(kData, kEndStream, 3, 10));
  EXPECT_GE(frames_.unfinished_bytes(), 100000U);
}

TEST_P(ClientFramesTest, CountRequestsThatWereCancelledUntilOneIsComplete) {
  for (std::uint8_t stream = 1; stream < 41; stream += 2) {
    take(frame(kHeaders, kEndHeaders, stream, 50) + frame(kReset, 0, stream, 4));
  }
  EXPECT_GE(frames_.unfinished_bytes(), 20 * ClientFrames::kCallMemoryBytes);
  EXPECT_EQ(frames_.begun_requests(), 0U);
  EXPECT_EQ(frames_.unfinished_requests(), 0U);
  take(frame(kHeaders, kEndHeaders | kEndStream, 41, 50));
  EXPECT_EQ(frames_.unfinished_bytes(), 0U);
}

TEST_P(ClientFramesTest, AreMoreWorkTheSmallerTheyAre) {
  std::string pings;
  for (int i = 0; i < 100; ++i) pings += frame(kPing, 0, 0, 8);
  const std::size_t many = take(pings);
  EXPECT_GT(many, 2 * take(frame(kData, 0, 1, pings.size())));
  EXPECT_GT(take(frame(kHeaders, 0, 1, 50)), take(frame(kData, 0, 1, 50)) + ClientFrames::kCallWorkBytes - 1);
}

}  // namespace
}  // namespace topolet::cri
