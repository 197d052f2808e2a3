// What a well-behaved gRPC library would not send, written onto the socket by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/cri/proxy_rig.hpp"

namespace topolet::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr const char* kVersion = "/runtime.v1.RuntimeService/Version";
constexpr const char* kTalk = "/runtime.v9.Unknown/Talk";

constexpr char kData = 0;
constexpr char kHeaders = 1;
constexpr char kSettings = 4;
constexpr char kEndStream = 1;
constexpr char kEndHeaders = 4;

using Fields = std::vector<std::pair<std::string, std::string>>;

/// An HTTP/2 client that makes one call, on stream 1.
class WireClient {
 public:
  explicit WireClient(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    send(frame(kSettings, 0, 0, ""));
  }

  void call(const std::string& path, const Fields& metadata) {
    Fields fields = {{":method", "POST"},         {":scheme", "http"}, {":path", path},
                     {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
    fields.insert(fields.end(), metadata.begin(), metadata.end());
    std::string block;
    for (const auto& [name, value] : fields) block += literal(name) + text(value);
    send(frame(kHeaders, kEndHeaders, 1, block));
  }
  /// Lengths below 256 only.
  void message(const std::string& bytes, bool last) {
    send(frame(kData, last ? kEndStream : char{0}, 1, std::string(4, '\0') + static_cast<char>(bytes.size()) + bytes));
  }
  void half_close() { send(frame(kData, kEndStream, 1, "")); }
  /// Blocks until the call's trailers have come, or the connection has ended.
  bool wait_for_end() {
    while (true) {
      const std::string header = receive(9);
      if (header.size() < 9) return false;
      const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(header[at]); };
      receive(static_cast<std::size_t>(byte(0)) << 16 | static_cast<std::size_t>(byte(1)) << 8 | byte(2));
      if (header[3] == kHeaders && (header[4] & kEndStream) != 0) return true;
    }
  }

 private:
  static std::string text(const std::string& value) { return static_cast<char>(value.size()) + value; }
  static std::string literal(const std::string& name) { return std::string(1, '\0') + text(name); }
  static std::string frame(char type, char flags, char stream, const std::string& payload) {
    std::string bytes(1, '\0');
    bytes += static_cast<char>(payload.size() >> 8);
    bytes += static_cast<char>(payload.size() & 0xff);
    return bytes + type + flags + std::string(3, '\0') + stream + payload;
  }
  void send(const std::string& bytes) const {
    EXPECT_EQ(::write(socket_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  std::string receive(std::size_t size) const {
    std::string bytes(size, '\0');
    std::size_t have = 0;
    while (have < size) {
      const ssize_t got = ::read(socket_.get(), bytes.data() + have, size - have);
      if (got <= 0) break;
      have += static_cast<std::size_t>(got);
    }
    bytes.resize(have);
    return bytes;
  }

  UniqueFd socket_;
};

class ProxyWire : public ::testing::TestWithParam<const char*> {
 protected:
  TempDir directory_;
  RecordingRuntime runtime_{directory_.file("runtime.sock")};
  ProxyRig rig_{directory_};
  WireClient wire_{directory_.file("topolet.sock")};
};

INSTANTIATE_TEST_SUITE_P(BothWays, ProxyWire, ::testing::Values(kVersion, kTalk),
                         [](const auto& test) { return test.index == 0 ? "Unary" : "Stream"; });

TEST_P(ProxyWire, DropsMetadataThatGrpcWouldAbortOn) {
  wire_.call(GetParam(), {{"good", "value"}, {"not-ascii", "\xc3\xa4\x80"}, {"control", "a\tb\x01"}});
  wire_.message("request", true);
  EXPECT_TRUE(wire_.wait_for_end());
  const auto calls = runtime_.calls();
  ASSERT_THAT(calls, SizeIs(1));
  EXPECT_THAT(calls[0].messages, ElementsAre("request"));
  EXPECT_THAT(calls[0].metadata, Contains(Pair("good", "value")));
  EXPECT_EQ(calls[0].metadata.count("not-ascii"), 0U);
  EXPECT_EQ(calls[0].metadata.count("control"), 0U);
}

TEST_P(ProxyWire, AnswersACallThatBringsNoMessage) {
  wire_.call(GetParam(), {});
  wire_.half_close();
  EXPECT_TRUE(wire_.wait_for_end());
  EXPECT_TRUE(rig_.client.call({.path = GetParam(), .message = ""}).status.ok());
}

TEST_P(ProxyWire, SurvivesClientsThatHangUpAnywhere) {
  {
    WireClient silent(directory_.file("topolet.sock"));
    WireClient in_headers(directory_.file("topolet.sock"));
    in_headers.call(GetParam(), {});
    WireClient after_message(directory_.file("topolet.sock"));
    after_message.call(GetParam(), {});
    after_message.message("request", false);
  }
  EXPECT_TRUE(rig_.client.call({.path = GetParam(), .message = ""}).status.ok());
}

}  // namespace
}  // namespace topolet::testing
