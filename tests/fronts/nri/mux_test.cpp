#include "core/fronts/nri/mux.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/fronts/nri/big_endian.hpp"
#include "core/fronts/nri/ttrpc.hpp"
#include "tests/support/dice.hpp"

namespace topolet::nri {
namespace {

std::string text(std::size_t length, char first = 'a') {
  std::string text(length, ' ');
  for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>(first + static_cast<char>(i % 23));
  return text;
}

std::map<Channel, std::string> read(FrameReader& reader, std::string_view bytes, std::size_t piece) {
  std::map<Channel, std::string> streams;
  for (std::size_t begin = 0; begin < bytes.size(); begin += piece)
    reader.read(bytes.substr(begin, piece), [&](Channel channel, std::string_view part) { streams[channel] += part; });
  return streams;
}

TEST(Mux, SendsNoFrameThatTheRuntimeCannotRead) {
  for (const std::size_t length :
       {std::size_t{1}, std::size_t{100}, std::size_t{4096}, std::size_t{4097}, std::size_t{20000}}) {
    std::string frames;
    append_frames(Channel::kPlugin, text(length), frames);
    std::string payload;
    while (!frames.empty()) {
      EXPECT_EQ(read_big_endian(frames.data()), 1U);
      const std::size_t bytes = read_big_endian(frames.data() + 4);
      EXPECT_GT(bytes, 0U);
      EXPECT_LE(bytes, 4096U);
      payload += frames.substr(8, bytes);
      frames.erase(0, 8 + bytes);
    }
    EXPECT_EQ(payload, text(length));
  }
}

TEST(Mux, ReadsFramesInPiecesOfAnySize) {
  std::string bytes;
  append_frames(Channel::kPlugin, text(5000), bytes);
  append_frames(Channel::kRuntime, text(3, 'x'), bytes);
  append_frames(Channel::kPlugin, text(1, 'z'), bytes);
  for (const std::size_t piece : {1U, 7U, 8U, 9U, 4096U, 100000U}) {
    FrameReader reader;
    const auto streams = read(reader, bytes, piece);
    EXPECT_EQ(streams.at(Channel::kPlugin), text(5000) + "z") << piece;
    EXPECT_EQ(streams.at(Channel::kRuntime), text(3, 'x')) << piece;
  }
}

TEST(Mux, ReadsFramesThatAreLongerThanThoseThatItSends) {
  std::string bytes;
  append_big_endian(1, bytes);
  append_big_endian(100000, bytes);
  bytes += text(100000);
  FrameReader reader;
  EXPECT_EQ(read(reader, bytes, 4096).at(Channel::kPlugin), text(100000));
}

TEST(Mux, DropsWhatIsForOtherChannelsAndSkipsEmptyFrames) {
  std::string bytes;
  append_frames(static_cast<Channel>(7), "not ours", bytes);
  append_big_endian(1, bytes);
  append_big_endian(0, bytes);
  append_frames(Channel::kPlugin, "ours", bytes);
  FrameReader reader;
  const auto streams = read(reader, bytes, 3);
  EXPECT_EQ(streams.size(), 1U);
  EXPECT_EQ(streams.at(Channel::kPlugin), "ours");
}

TEST(Ttrpc, ReadsMessagesInPiecesOfAnySize) {
  testing::Dice dice(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> sent;
    std::string bytes;
    for (std::size_t i = 0; i <= dice.below(5); ++i) {
      sent.push_back(text(dice.below(9000)));
      ASSERT_TRUE(append_message(static_cast<std::uint32_t>(2 * i + 1), MessageType::kRequest, sent.back(), bytes));
    }
    std::vector<std::string> received;
    MessageReader reader;
    while (!bytes.empty()) {
      const std::size_t piece = std::min(bytes.size(), 1 + dice.below(5000));
      ASSERT_TRUE(reader
                      .read(bytes.substr(0, piece),
                            [&](std::uint32_t call, MessageType type, const std::string& payload) {
                              EXPECT_EQ(call, 2 * received.size() + 1);
                              EXPECT_EQ(type, MessageType::kRequest);
                              received.push_back(payload);
                            })
                      .has_value());
      bytes.erase(0, piece);
    }
    EXPECT_EQ(received, sent);
  }
}

TEST(Ttrpc, NeitherSendsNorReadsWhatIsTooLong) {
  std::string bytes = "before";
  const Status sent = append_message(1, MessageType::kResponse, std::string(kMaxSentBytes + 1, 'x'), bytes);
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(
      sent.error().message,
      "a message of 1044471 bytes is not sent to the runtime: its NRI socket takes at most 1044470 bytes at once");
  EXPECT_EQ(bytes, "before");
  std::string frames;
  bytes.clear();
  EXPECT_TRUE(append_message(1, MessageType::kResponse, std::string(kMaxSentBytes, 'x'), bytes).has_value());
  append_frames(Channel::kPlugin, bytes, frames);
  EXPECT_EQ(frames.size(), kMaxUnreadFrames * (8 + kMaxFrameBytes));

  std::string header;
  append_big_endian(kMaxMessageBytes + 1, header);
  append_big_endian(1, header);
  header += std::string("\1\0", 2);
  MessageReader reader;
  const Status read = reader.read(header, [](auto...) { FAIL(); });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Code::kResourceExhausted);
}

TEST(Ttrpc, CarriesCallsAndErrors) {
  const Request request{"service", "method", "payload\xff", 5};
  const Result<Request> decoded = decode_request(encode(request));
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->service, "service");
  EXPECT_EQ(decoded->method, "method");
  EXPECT_EQ(decoded->payload, "payload\xff");
  EXPECT_EQ(decoded->timeout_ns, 5);
  EXPECT_FALSE(decode_request("\xff").has_value());

  EXPECT_EQ(decode_response(encode_response(std::string("yes"))).value(), "yes");
  EXPECT_EQ(decode_response("").value(), "");  // no status is success
  const Result<std::string> error = decode_response(encode_response(Error{Code::kAborted, "no"}));
  EXPECT_EQ(error.error(), (Error{Code::kAborted, "no"}));
  EXPECT_FALSE(decode_response("\xff").has_value());
}

}  // namespace
}  // namespace topolet::nri
