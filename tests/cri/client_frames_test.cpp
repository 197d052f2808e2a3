#include "core/cri/socket/client_frames.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace topolet::cri {
namespace {

enum : std::uint8_t { kData = 0, kHeaders = 1, kReset = 3, kPing = 6, kWindowUpdate = 8, kContinuation = 9 };
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;

std::string frame_of(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, const std::string& payload) {
  std::string bytes;
  for (const int shift : {16, 8, 0}) bytes += static_cast<char>(payload.size() >> shift & 0xff);
  return bytes + static_cast<char>(type) + static_cast<char>(flags) + std::string(3, '\0') + static_cast<char>(stream) +
         payload;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint8_t stream, std::size_t size) {
  return frame_of(type, flags, stream, std::string(size, 'p'));
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
  take(frame(kData, 0, 1, 30000));
  EXPECT_GE(frames_.unfinished_bytes(), ClientFrames::kCallMemoryBytes + 30000);
  EXPECT_TRUE(frames_.in_message());
  take(frame(kData, kEndStream, 1, 0));
  EXPECT_EQ(frames_.unfinished_bytes(), 0U);
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
  take(frame(kHeaders, kEndHeaders | kEndStream, 41, 50));
  EXPECT_EQ(frames_.unfinished_bytes(), 0U);
}

TEST_P(ClientFramesTest, CountTheFieldsOfAHeader) {
  constexpr std::uint8_t kPadded = 8;
  constexpr std::uint8_t kPriority = 32;
  const auto bytes_for = [this](std::uint8_t flags, const std::string& payload) {
    const std::size_t before = frames_.unfinished_bytes();
    take(frame_of(kHeaders, flags, 1, payload));
    return frames_.unfinished_bytes() - before - 2 * (payload.size() + 9);
  };
  bytes_for(0, "");
  const std::string text(300, '\xff');
  const std::string long_text = std::string("\x7f\xad\x01") + text;  // 300 = 127 + 45 + 128 * 1
  using namespace std::string_literals;
  const std::size_t one = ClientFrames::kFieldMemoryBytes;
  EXPECT_EQ(bytes_for(0, std::string(1000, '\xbe')), 1000 * one) << "each byte is a field that was sent before";
  EXPECT_EQ(bytes_for(0, "\x40\x01x\x02yz\xbe\xbe"s), 3 * one);
  EXPECT_EQ(bytes_for(0, "\x00\x01x\x02yz\x10\x01x\x02yz"s), 2 * one);
  EXPECT_EQ(bytes_for(0, "\x04\x02yz\x44\x02yz"s), 2 * one) << "names that were sent before";
  EXPECT_EQ(bytes_for(0, "\x0f\x81\x01\x01y\x7f\x81\x01\x01y\xff\x81\x01"s), 3 * one) << "long indexes";
  EXPECT_EQ(bytes_for(0, "\x00"s + long_text + long_text + "\xbe"), 2 * one);
  EXPECT_EQ(bytes_for(kPadded | kPriority, "\x00\xff\xff\xff\xff\xff\xbe"s), one);
  bytes_for(0, "\x00\x05x"s);
  const std::size_t before = frames_.unfinished_bytes();
  take(frame_of(kContinuation, kEndHeaders, 1, "xxxx\x01y\xbe"));
  EXPECT_EQ(frames_.unfinished_bytes() - before, one + std::size_t{2 * (7 + 9)}) << "a field may go over two frames";
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
