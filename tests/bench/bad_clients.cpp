#include "tests/bench/bad_clients.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

#include "core/base/unique_fd.hpp"
#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

// Frame types and flags of RFC 9113.
enum Frame : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
  kUnknown = 119
};
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::size_t kFrameHeaderBytes = 9;
/// The longest frame that gRPC accepts.
constexpr std::size_t kFrameBytes = 16 << 10;
constexpr std::int64_t kFirstWindow = 65535;
/// A message of that length is announced, and sent but for its end.
constexpr std::uint32_t kMessageBytes = 60 << 20;

std::string big_endian(std::uint32_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
  return big_endian(static_cast<std::uint32_t>(payload.size())).substr(1) + static_cast<char>(type) +
         static_cast<char>(flags) + big_endian(stream) + payload;
}

/// HPACK: a literal that is not indexed, with a literal name; both shorter than 127 bytes.
std::string field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
}

std::string request_fields(const std::string& path) {
  return field(":method", "POST") + field(":scheme", "http") + field(":path", path) + field(":authority", "localhost") +
         field("te", "trailers") + field("content-type", "application/grpc");
}

/// As many fields as go into a frame.
std::string many_fields() {
  const std::string one = field("endless", std::string(100, 'e'));
  std::string fields;
  while (fields.size() + one.size() <= kFrameBytes) fields += one;
  return fields;
}

std::string repeat(const std::string& bytes, std::size_t total) {
  std::string all;
  while (all.size() < total) all += bytes;
  return all;
}

const std::string& version_path() {
  static const std::string kPath = kServicePath + "Version";
  return kPath;
}

/// The bytes that one connection sends: some at the beginning, and then others for ever.
struct Sent {
  std::string first = {};
  /// `stream` is the next free one. Empty: nothing now.
  std::function<std::string(std::uint32_t& stream)> more;
  bool reads = true;
  std::chrono::milliseconds pause{0};
  bool fills_windows = false;  ///< `more` is message bytes, as many as the window permits
  std::uint32_t message_bytes = kMessageBytes;
  bool completes_messages = false;
  std::size_t closes_after = 0;  ///< bytes; 0: never
  bool has_name = false;         ///< of its own end, as the kernel makes one up
  std::size_t behaves_for = 0;   ///< so many calls that are answered come first
};

std::string message_of(const std::string& bytes) {
  return std::string(1, '\0') + big_endian(static_cast<std::uint32_t>(bytes.size())) + bytes;
}

std::function<std::string(std::uint32_t&)> always(std::string bytes) {
  return [bytes = std::move(bytes)](std::uint32_t&) { return bytes; };
}

std::function<std::string(std::uint32_t&)> for_each_stream(std::function<std::string(std::uint32_t)> make) {
  return [make = std::move(make)](std::uint32_t& stream) {
    const std::string bytes = make(stream);
    stream += 2;
    return bytes;
  };
}

std::string whole_call(const std::string& path, std::uint32_t stream, const std::string& message) {
  std::string bytes = frame(kHeaders, kEndHeaders, stream, request_fields(path));
  const std::string sent = message_of(message);
  for (std::size_t at = 0; at < sent.size(); at += kFrameBytes) {
    bytes += frame(kData, at + kFrameBytes >= sent.size() ? kEndStream : 0, stream, sent.substr(at, kFrameBytes));
  }
  return bytes;
}

/// A field that goes into HPACK's dynamic table, and then a byte for each time that it comes again.
std::string repeated_field(const std::string& name, const std::string& value, std::size_t times) {
  return std::string(1, '\x40') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value +
         std::string(times, '\xbe');
}

std::string reset(std::uint32_t stream) { return frame(kResetStream, 0, stream, big_endian(8)); }

std::string open_header(const std::string& path) { return frame(kHeaders, 0, 1, request_fields(path)); }

std::string whole_header(const std::string& path, std::uint32_t stream) {
  return frame(kHeaders, kEndHeaders, stream, request_fields(path));
}

const std::map<std::string, Sent>& kinds() {
  static const std::map<std::string, Sent> kKinds = {
      {"endless-header",
       {.first = open_header(version_path()), .more = always(frame(kContinuation, 0, 1, many_fields()))}},
      {"endless-field",
       {.first = open_header(version_path()) +
                 // A value of 256 MiB in HPACK's variable-length integers.
                 frame(kContinuation, 0, 1, std::string("\x00\x01x\x7f\x81\xff\xff\x7f", 8)),
        .more = always(frame(kContinuation, 0, 1, std::string(kFrameBytes, 'e')))}},
      {"empty-continuations",
       {.first = open_header(version_path()), .more = always(repeat(frame(kContinuation, 0, 1, ""), kFrameBytes))}},
      {"headers-only", {.more = for_each_stream([](std::uint32_t stream) {
                          std::string bytes = frame(kHeaders, 0, stream, request_fields(version_path()));
                          for (int i = 0; i < 15; ++i) bytes += frame(kContinuation, 0, stream, many_fields());
                          return bytes + frame(kContinuation, kEndHeaders, stream, "");
                        })}},
      {"open-calls",
       {.more = for_each_stream([](std::uint32_t stream) { return whole_header(version_path(), stream); })}},
      {"unfinished-messages",
       {.more =
            [](std::uint32_t& stream) {
              const std::string bytes = whole_header(version_path(), stream);
              stream += 2;
              return bytes;
            },
        .fills_windows = true}},
      {"pings", {.more = always(repeat(frame(kPing, 0, 0, "12345678"), kFrameBytes))}},
      {"pings-unread", {.more = always(repeat(frame(kPing, 0, 0, "12345678"), kFrameBytes)), .reads = false}},
      {"settings", {.more = always(repeat(frame(kSettings, 0, 0, ""), kFrameBytes))}},
      {"settings-unread", {.more = always(repeat(frame(kSettings, 0, 0, ""), kFrameBytes)), .reads = false}},
      {"empty-data",
       {.first = whole_header(version_path(), 1), .more = always(repeat(frame(kData, 0, 1, ""), kFrameBytes))}},
      {"resets", {.more = for_each_stream([](std::uint32_t stream) {
                    return whole_header(version_path(), stream) + frame(kResetStream, 0, stream, big_endian(8));
                  })}},
      {"resets-with-message", {.more = for_each_stream([](std::uint32_t stream) {
                                 return whole_header(version_path(), stream) +
                                        frame(kData, kEndStream, stream, message_of("")) +
                                        frame(kResetStream, 0, stream, big_endian(8));
                               })}},
      {"unread",
       {.more = for_each_stream([](std::uint32_t stream) {
          return whole_header(kServicePath + kBigMethod, stream) + frame(kData, kEndStream, stream, message_of(""));
        }),
        .reads = false}},
      {"unread-wide",
       {.first = frame(kSettings, 0, 0, std::string("\x00\x04\x7f\xff\xff\xff", 6)) +
                 frame(kWindowUpdate, 0, 0, big_endian(0x7fffffff - 65535)),
        .more = for_each_stream([](std::uint32_t stream) {
          return whole_header(kServicePath + kBigMethod, stream) + frame(kData, kEndStream, stream, message_of(""));
        }),
        .reads = false}},
      {"calls", {.more = for_each_stream([](std::uint32_t stream) {
                   return whole_header(version_path(), stream) + frame(kData, kEndStream, stream, message_of(""));
                 })}},
      {"creates", {.more = for_each_stream([](std::uint32_t stream) {
                     return whole_header(kServicePath + "CreateContainer", stream) +
                            frame(kData, kEndStream, stream, message_of(std::string(200, '\x01')));
                   })}},
      {"unknown-streams", {.more = for_each_stream([](std::uint32_t stream) {
                             return whole_header("/runtime.v9.Unknown/Talk", stream) +
                                    frame(kData, 0, stream, message_of("hello"));
                           })}},
      {"large-messages",
       {.more =
            [](std::uint32_t& stream) {
              const std::string bytes = whole_header(version_path(), stream);
              stream += 2;
              return bytes;
            },
        .fills_windows = true,
        .message_bytes = 4 << 20,
        .completes_messages = true}},
      {"trickle",
       {.first = open_header(version_path()),
        .more = always(frame(kContinuation, 0, 1, field("slow", "e"))),
        .pause = std::chrono::milliseconds(5)}},
      {"window-updates",
       {.first = whole_header(version_path(), 1),
        .more = always(repeat(frame(kWindowUpdate, 0, 0, big_endian(1)) + frame(kWindowUpdate, 0, 1, big_endian(1)),
                              kFrameBytes))}},
      {"priorities", {.more = always(repeat(frame(kPriority, 0, 1, std::string(5, '\x01')), kFrameBytes))}},
      {"wide-settings",
       {.more = always(frame(kSettings, 0, 0, repeat(std::string("\x00\x04\x00\x00\xff\xff", 6), 16380)))}},
      {"goaways", {.more = always(frame(kGoAway, 0, 0, std::string(16000, '\0')))}},
      {"unknown-frames", {.more = always(repeat(frame(kUnknown, 0, 0, std::string(4000, 'u')), kFrameBytes))}},
      {"calls-without-message", {.more = for_each_stream([](std::uint32_t stream) {
                                   return frame(kHeaders, kEndHeaders | kEndStream, stream,
                                                request_fields(version_path()));
                                 })}},
      {"creates-reset", {.more = for_each_stream([](std::uint32_t stream) {
                           return whole_call(kServicePath + "CreateContainer", stream, std::string(30000, '\x01')) +
                                  reset(stream);
                         })}},
      {"creates-reset-later", {.more = for_each_stream([](std::uint32_t stream) {
                                 return whole_call(kServicePath + "CreateContainer", stream, std::string(200, '\x01')) +
                                        (stream > 200 ? reset(stream - 200) : "");
                               })}},
      {"large-creates",
       {.more =
            [](std::uint32_t& stream) {
              const std::string bytes = whole_header(kServicePath + "CreateContainer", stream);
              stream += 2;
              return bytes;
            },
        .fills_windows = true,
        .message_bytes = 4 << 20,
        .completes_messages = true}},
      {"large-resets", {.more = for_each_stream([](std::uint32_t stream) {
                          return whole_header(version_path(), stream) +
                                 frame(kData, 0, stream, message_of(std::string(16000, 'm'))) + reset(stream);
                        })}},
      {"repeated-fields", {.more = for_each_stream([](std::uint32_t stream) {
                             return frame(kHeaders, kEndHeaders, stream,
                                          request_fields(version_path()) + repeated_field("a", "b", 15000));
                           })}},
      {"repeated-fields-calls", {.more = for_each_stream([](std::uint32_t stream) {
                                   return frame(kHeaders, kEndHeaders, stream,
                                                request_fields(version_path()) + repeated_field("a", "b", 15000)) +
                                          frame(kData, kEndStream, stream, message_of(""));
                                 })}},
      {"hit-and-run",
       {.more = for_each_stream([](std::uint32_t stream) { return whole_call(version_path(), stream, ""); }),
        .closes_after = 128 << 10}},
      {"hit-and-run-creates",
       {.more = for_each_stream([](std::uint32_t stream) {
          return whole_call(kServicePath + "CreateContainer", stream, std::string(200, '\x01'));
        }),
        .closes_after = 128 << 10}},
      {"connects", {.more = always(frame(kPing, 0, 0, "12345678")), .closes_after = 1}},
      {"named-calls",
       {.more = for_each_stream([](std::uint32_t stream) { return whole_call(version_path(), stream, ""); }),
        .has_name = true}},
      {"named-unread-wide",
       {.first = frame(kSettings, 0, 0, std::string("\x00\x04\x7f\xff\xff\xff", 6)) +
                 frame(kWindowUpdate, 0, 0, big_endian(0x7fffffff - 65535)),
        .more = for_each_stream([](std::uint32_t stream) { return whole_call(kServicePath + kBigMethod, stream, ""); }),
        .reads = false,
        .has_name = true}},
      // Reads what the window permits, which is all of the connection but little of each answer.
      {"unread-streams",
       {.first = frame(kWindowUpdate, 0, 0, big_endian(0x7fffffff - 65535)),
        .more = for_each_stream([](std::uint32_t stream) {
          return whole_call(kServicePath + (stream % 64 == 1 ? kBigMethod : "Version"), stream, "");
        }),
        .behaves_for = 100}},
      {"trickles",
       {.more =
            [](std::uint32_t& stream) {
              if (stream < 200) {
                stream += 2;
                return whole_header(version_path(), stream - 2) +
                       frame(kData, 0, stream - 2, std::string(1, '\0') + big_endian(1 << 20));
              }
              std::string bytes;
              for (std::uint32_t i = 1; i < 200; i += 2) bytes += frame(kData, 0, i, "x");
              return bytes;
            },
        .pause = std::chrono::milliseconds(5)}},
      {"garbage", {.first = std::string(4096, 'x'), .more = always(std::string(kFrameBytes, 'y'))}},
  };
  return kKinds;
}

/// One connection and all that belongs to it.
struct Link {
  UniqueFd socket;
  std::string unsent = {};
  std::string received = {};  ///< the beginning of a frame
  std::uint32_t stream = 1;
  std::int64_t connection_window = kFirstWindow;
  std::int64_t stream_window = 0;
  std::int64_t message_left = 0;
  std::chrono::steady_clock::time_point next_send{};
  std::size_t answered = 0;
  std::size_t sent = 0;
};

/// A connection that is made anew whenever it has ended.
class BadConnection {
 public:
  BadConnection(const sockaddr_un& address, const Sent& sent) : address_(address), sent_(sent) {}

  /// Does what can be done without waiting; returns what to poll for.
  pollfd work();

 private:
  bool connect();
  bool receive();
  void read_frames();
  void make_bytes();
  void make_message_bytes();
  bool send();

  const sockaddr_un& address_;
  const Sent& sent_;
  Link link_;
};

bool BadConnection::connect() {
  link_ = Link{.socket = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  if (sent_.has_name) {
    const sockaddr_un any{AF_UNIX, {}};
    ::bind(link_.socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any.sun_family));
  }
  if (::connect(link_.socket.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof(address_)) != 0) {
    link_.socket.reset();
    return false;
  }
  ::fcntl(link_.socket.get(), F_SETFL, O_NONBLOCK);
  link_.unsent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "");
  if (sent_.behaves_for == 0) link_.unsent += sent_.first;
  return true;
}

/// False if the other side has closed.
bool BadConnection::receive() {
  static std::array<char, 64 << 10> buffer;
  while (true) {
    const ssize_t got = ::recv(link_.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    if (!sent_.fills_windows && link_.answered >= sent_.behaves_for) continue;
    link_.received.append(buffer.data(), static_cast<std::size_t>(got));
    read_frames();
  }
}

void BadConnection::read_frames() {
  std::string& bytes = link_.received;
  const auto byte = [&](std::size_t at) { return static_cast<std::int64_t>(static_cast<unsigned char>(bytes[at])); };
  const auto number = [&](std::size_t at) {
    return byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
  };
  while (bytes.size() >= kFrameHeaderBytes) {
    const std::size_t size = static_cast<std::size_t>(byte(0) << 16 | byte(1) << 8 | byte(2));
    if (bytes.size() < kFrameHeaderBytes + size) return;
    if (byte(3) == kWindowUpdate) {
      const std::int64_t stream = number(5);
      if (stream == 0) link_.connection_window += number(9);
      if (stream + 2 == link_.stream) link_.stream_window += number(9);
    }
    if (byte(3) == kHeaders && (byte(4) & kEndStream) != 0 && ++link_.answered == sent_.behaves_for) {
      link_.unsent += sent_.first;
    }
    bytes.erase(0, kFrameHeaderBytes + size);
  }
}

void BadConnection::make_bytes() {
  if (link_.answered < sent_.behaves_for) {
    // One at a time, each when the one before is answered.
    if (link_.stream > 2 * link_.answered + 1) return;
    link_.unsent += whole_call(version_path(), link_.stream, "");
    link_.connection_window -= 5;
    link_.stream += 2;
    return;
  }
  if (sent_.fills_windows) return make_message_bytes();
  link_.unsent += sent_.more(link_.stream);
}

/// Message after message, each but for its last byte where they are not completed.
void BadConnection::make_message_bytes() {
  if (link_.message_left == 0) {
    link_.unsent += sent_.more(link_.stream);
    link_.unsent += frame(kData, 0, link_.stream - 2, std::string(1, '\0') + big_endian(sent_.message_bytes));
    link_.message_left = sent_.message_bytes - (sent_.completes_messages ? 0 : 1);
    link_.stream_window = kFirstWindow - 5;
    link_.connection_window -= 5;
  }
  const std::int64_t size =
      std::min({link_.message_left, link_.stream_window, link_.connection_window, std::int64_t{kFrameBytes}});
  if (size <= 0) return;
  const bool is_last = sent_.completes_messages && size == link_.message_left;
  link_.unsent +=
      frame(kData, is_last ? kEndStream : 0, link_.stream - 2, std::string(static_cast<std::size_t>(size), 'm'));
  link_.message_left -= size;
  link_.stream_window -= size;
  link_.connection_window -= size;
}

/// False if the other side has closed.
bool BadConnection::send() {
  const ssize_t sent = ::send(link_.socket.get(), link_.unsent.data(), link_.unsent.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  link_.unsent.erase(0, static_cast<std::size_t>(sent));
  link_.sent += static_cast<std::size_t>(sent);
  return sent_.closes_after == 0 || link_.sent < sent_.closes_after;
}

pollfd BadConnection::work() {
  if (!link_.socket && !connect()) return {-1, 0, 0};
  const bool reads = sent_.reads || link_.answered < sent_.behaves_for;
  bool open = !reads || receive();
  const auto now = std::chrono::steady_clock::now();
  if (open && link_.unsent.size() < kFrameBytes && now >= link_.next_send) {
    link_.next_send = now + sent_.pause;
    do {
      const std::size_t before = link_.unsent.size();
      make_bytes();
      if (link_.unsent.size() == before) break;
    } while (sent_.pause.count() == 0 && link_.unsent.size() < 4 * kFrameBytes);
  }
  open = open && (link_.unsent.empty() || send());
  if (!open) link_.socket.reset();
  // For a connection that reads nothing, the end shows when writing.
  const int events = (reads ? POLLIN : 0) | (link_.unsent.empty() ? 0 : POLLOUT);
  return {link_.socket.get(), static_cast<short>(events), 0};
}

}  // namespace

std::vector<std::string> bad_client_kinds() {
  std::vector<std::string> names;
  for (const auto& [name, sent] : kinds()) names.push_back(name);
  return names;
}

/// "known-KIND": after a hundred calls that are answered. "KIND+KIND": these in turn.
std::vector<Sent> parse_kinds(const std::string& names) {
  std::vector<Sent> parsed;
  for (std::size_t at = 0; at <= names.size();) {
    const std::size_t end = std::min(names.find('+', at), names.size());
    std::string name = names.substr(at, end - at);
    const bool known = name.starts_with("known-");
    if (known) name.erase(0, 6);
    const auto found = kinds().find(name);
    if (found == kinds().end()) throw std::runtime_error("no bad client does " + name);
    parsed.push_back(found->second);
    if (known) parsed.back().behaves_for = 100;
    at = end + 1;
  }
  return parsed;
}

void run_bad_clients(const std::string& socket, const std::string& kind, std::size_t connections) {
  const std::vector<Sent> mixture = parse_kinds(kind);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  std::vector<BadConnection> bad;
  for (std::size_t i = 0; i < connections; ++i) bad.emplace_back(address, mixture[i % mixture.size()]);
  std::vector<pollfd> polled(connections);
  while (true) {
    for (std::size_t i = 0; i < connections; ++i) polled[i] = bad[i].work();
    ::poll(polled.data(), polled.size(), 5);
  }
}

}  // namespace topolet::bench
