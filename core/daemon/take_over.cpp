#include "core/daemon/take_over.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/base/text.hpp"
#include "core/base/unix_address.hpp"
#include "core/cri/socket/listener_socket.hpp"

namespace topolet::daemon {
namespace {

using nlohmann::json;

/// The version of the messages between the two processes.
constexpr int kProtocol = 1;
constexpr std::size_t kMaxMessageBytes = 16 << 10;
constexpr std::size_t kMaxDescriptors = 16;
/// The other process has nothing to do before it answers.
constexpr std::chrono::seconds kPrompt{5};
/// It brings calls to an end and closes its database.
constexpr std::chrono::seconds kHandOver{60};

struct Message {
  json content;
  std::vector<UniqueFd> descriptors;
};

bool send_message(int connection, const json& content, const std::vector<int>& descriptors = {}) {
  if (descriptors.size() > kMaxDescriptors) return false;
  // Text that is not UTF-8, such as a path, is sent with question marks.
  std::string line = content.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  iovec bytes{line.data(), line.size()};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  if (!descriptors.empty()) {
    const std::size_t size = descriptors.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), size);
  }
  return ::sendmsg(connection, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

void take_descriptors(msghdr& header, std::vector<UniqueFd>& descriptors) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> numbers((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(part), numbers.size() * sizeof(int));
    for (const int fd : numbers) descriptors.emplace_back(fd);
  }
}

/// Ends a sentence about the other process.
Error unheard(std::string what) { return {Code::kUnavailable, std::move(what)}; }

std::string shown(const std::string& text) {
  constexpr std::size_t kShown = 200;
  return "'" + printable(trimmed(text), kShown) + "'";
}

/// Receives a message. UNAVAILABLE if the other process ends, sends something that is not a JSON object, or nothing in
/// time.
Result<Message> receive_message(int connection, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  Message message;
  std::string line;
  while (line.empty() || line.back() != '\n') {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd wait{connection, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      return unheard(fmt::format("said {} within {} ms", line.empty() ? "nothing" : "no whole line", patience.count()));
    }
    std::array<char, 4096> buffer{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
    iovec bytes{buffer.data(), buffer.size()};
    msghdr header{};
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t count = ::recvmsg(connection, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return unheard(line.empty() ? "said nothing" : "did not end its line: " + shown(line));
    take_descriptors(header, message.descriptors);
    if (message.descriptors.size() > kMaxDescriptors) return unheard("sent too many descriptors");
    line.append(buffer.data(), static_cast<std::size_t>(count));
    if (line.size() > kMaxMessageBytes)
      return unheard(fmt::format("said more than {} bytes: {}", kMaxMessageBytes, shown(line)));
  }
  message.content = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!message.content.is_object()) return unheard("said what is no JSON object: " + shown(line));
  return message;
}

// Another version may say anything by the same names: what is of another type counts as not said.

std::string text_in(const json& content, const std::string& name) {
  const auto found = content.find(name);
  return found != content.end() && found->is_string() ? found->get<std::string>() : "";
}

std::int64_t number_in(const json& content, const std::string& name) {
  const auto found = content.find(name);
  return found != content.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

bool is_true_in(const json& content, const std::string& name) {
  const auto found = content.find(name);
  return found != content.end() && found->is_boolean() && found->get<bool>();
}

bool has_ended(int connection) {
  char byte = 0;
  return ::recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/// The two may differ in it: nothing that is under way depends on the watch socket.
constexpr const char* kWatchOption = "daemon.watch";
/// That who asks takes the locks of the runtime, and of who answers, how many there are.
constexpr const char* kRuntimeLocks = "runtime-locks";
/// That who asks goes on with the connection to the runtime's NRI.
constexpr const char* kTakesNri = "takes-nri";

json describe(const config::DaemonOptions& options) {
  return {{"daemon.listen", options.listen},
          {"daemon.control", options.control},
          {"daemon.state-dir", options.state_dir.string()}};
}

std::optional<ucred> peer_of(int connection) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

void add_sockets(const cri::Listener::Sockets& sockets, const std::string& name, json& content,
                 std::vector<int>& descriptors) {
  if (!sockets.socket) return;
  content[name] = sockets.lock ? 2 : 1;
  descriptors.push_back(sockets.socket.get());
  if (sockets.lock) descriptors.push_back(sockets.lock.get());
}

/// False if the descriptors are fewer than was said.
bool extract_sockets(Message& message, std::size_t& next, const std::string& name, cri::Listener::Sockets& sockets) {
  const std::int64_t count = number_in(message.content, name);
  if (count < 1 || count > 2 || next + static_cast<std::size_t>(count) > message.descriptors.size()) return false;
  sockets.socket = std::move(message.descriptors[next++]);
  if (count == 2) sockets.lock = std::move(message.descriptors[next++]);
  return true;
}

/// What arrived of the runtime's NRI goes in a file of its own: it may be as long as a message of that.
Status add_nri(const nri::ReleasedSession& session, json& content, std::vector<int>& descriptors, UniqueFd& file) {
  file.reset(::memfd_create("topolet-nri", MFD_CLOEXEC));
  const std::string& unread = session.connection.unread;
  if (!file || ::pwrite(file.get(), unread.data(), unread.size(), 0) != static_cast<ssize_t>(unread.size()))
    return Error{Code::kUnavailable, fmt::format("cannot keep what the runtime has said: {}", std::strerror(errno))};
  content["nri"] = {{"plugin", session.plugin},
                    {"next-call", session.connection.next_call},
                    {"runtime", session.runtime.name},
                    {"version", session.runtime.version},
                    {"nri-version", session.runtime.nri_version},
                    {"request-timeout-ms", session.runtime.request_timeout.count()},
                    {"unread", unread.size()}};
  descriptors.push_back(session.connection.socket.get());
  descriptors.push_back(file.get());
  return {};
}

/// None if there is none, or it cannot be read.
std::optional<nri::ReleasedSession> extract_nri(Message& message, std::size_t& next) {
  const auto told = message.content.find("nri");
  if (told == message.content.end() || !told->is_object() || next + 2 > message.descriptors.size()) return std::nullopt;
  nri::ReleasedSession session;
  session.connection.socket = std::move(message.descriptors[next++]);
  const UniqueFd file = std::move(message.descriptors[next++]);
  session.connection.next_call = static_cast<std::uint32_t>(number_in(*told, "next-call"));
  session.connection.unread.resize(static_cast<std::size_t>(std::max<std::int64_t>(number_in(*told, "unread"), 0)));
  std::string& unread = session.connection.unread;
  if (::pread(file.get(), unread.data(), unread.size(), 0) != static_cast<ssize_t>(unread.size())) return std::nullopt;
  session.plugin = text_in(*told, "plugin");
  session.runtime = {text_in(*told, "runtime"), text_in(*told, "version"), text_in(*told, "nri-version"),
                     std::chrono::milliseconds(number_in(*told, "request-timeout-ms"))};
  return session;
}

}  // namespace

std::string take_over_path(const config::DaemonOptions& options) { return options.control + ".take-over"; }

Result<std::optional<Predecessor>> Predecessor::ask(const config::DaemonOptions& options) {
  const std::string path = take_over_path(options);
  const auto address = unix_address(path);
  if (!address) return address.error();
  UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(connection.get(), as_sockaddr(*address), sizeof(sockaddr_un)) != 0) {
    if (errno == ENOENT || errno == ECONNREFUSED) return std::optional<Predecessor>();
    return Error{Code::kFailedPrecondition,
                 fmt::format("cannot ask the topoletd that runs to hand over, on {}: {}", path, std::strerror(errno))};
  }
  const auto peer = peer_of(connection.get());
  if (!peer || peer->uid != ::geteuid()) {
    return Error{Code::kPermissionDenied,
                 fmt::format("whoever listens on {} runs as another user; run as the same one", path)};
  }
  json request = describe(options);
  request["take-over"] = kProtocol;
  request[kRuntimeLocks] = true;
  request[kTakesNri] = true;
  if (!options.watch.empty()) request[kWatchOption] = options.watch;
  if (!send_message(connection.get(), request)) return std::optional<Predecessor>();
  Result<Message> answer = receive_message(connection.get(), kHandOver);
  const std::string who = fmt::format("the topoletd that runs (process {})", peer->pid);
  if (!answer) {
    if (has_ended(connection.get())) return std::optional<Predecessor>();
    return Error{answer.error().code, fmt::format("{} did not hand over: it {}", who, answer.error().message)};
  }
  if (answer->content.contains("refused")) {
    const std::string why = text_in(answer->content, "refused");
    return Error{Code::kFailedPrecondition,
                 fmt::format("{} does not hand over: {}", who, why.empty() ? "it gives no reason" : why)};
  }
  HandedOver sockets;
  std::size_t next = 0;
  if ((!options.listen.empty() && !extract_sockets(*answer, next, "listen", sockets.listen)) ||
      !extract_sockets(*answer, next, "control", sockets.control)) {
    return Error{Code::kUnavailable,
                 fmt::format("{} did not hand over its sockets, but said {}; stop it and start this one", who,
                             shown(answer->content.dump()))};
  }
  extract_sockets(*answer, next, "watch", sockets.watch);
  for (auto left = number_in(answer->content, kRuntimeLocks); left > 0 && next < answer->descriptors.size(); --left)
    sockets.runtime_locks.push_back(std::move(answer->descriptors[next++]));
  sockets.nri = extract_nri(*answer, next);
  return std::optional<Predecessor>(Predecessor(std::move(connection), std::move(sockets), peer->pid));
}

void Predecessor::report_serving() {
  if (send_message(connection_.get(), {{"serving", true}}))
    static_cast<void>(receive_message(connection_.get(), kPrompt));
  connection_.reset();
}

Status Successor::read_request(const config::DaemonOptions& options) {
  Result<Message> request = receive_message(connection_.get(), kPrompt);
  if (!request) return Error{request.error().code, "it did not say what it wants: it " + request.error().message};
  if (is_true_in(request->content, "nri-plugin") && request->descriptors.size() == 1) {
    nri_plugin_ = std::move(request->descriptors.front());
    return {};
  }
  if (number_in(request->content, "take-over") != kProtocol) {
    return Error{
        Code::kFailedPrecondition,
        fmt::format("it does not ask as this version does (\"take-over\": {}), but {}: it is of a version that "
                    "takes over in another way; stop this one and start that one",
                    kProtocol, shown(request->content.dump()))};
  }
  wants_watch_ = !options.watch.empty() && text_in(request->content, kWatchOption) == options.watch;
  wants_runtime_locks_ = is_true_in(request->content, kRuntimeLocks);
  wants_nri_ = is_true_in(request->content, kTakesNri);
  const json ours = describe(options);
  for (const auto& [option, value] : ours.items()) {
    const std::string theirs = text_in(request->content, option);
    if (theirs == value.get<std::string>()) continue;
    return Error{Code::kFailedPrecondition,
                 fmt::format("{} is {} there and {} here; a change of it needs a restart", option,
                             theirs.empty() ? "not given" : theirs, value.get<std::string>())};
  }
  return {};
}

void Successor::refuse(const std::string& why) { send_message(connection_.get(), {{"refused", why}}); }

bool Successor::hand_over(const HandedOver& sockets) {
  json content;
  std::vector<int> descriptors;
  add_sockets(sockets.listen, "listen", content, descriptors);
  add_sockets(sockets.control, "control", content, descriptors);
  add_sockets(sockets.watch, "watch", content, descriptors);
  if (wants_runtime_locks_) {
    content[kRuntimeLocks] = sockets.runtime_locks.size();
    for (const UniqueFd& lock : sockets.runtime_locks) descriptors.push_back(lock.get());
  }
  UniqueFd unread;
  // Without it the other process connects anew.
  if (sockets.nri && wants_nri_ && !add_nri(*sockets.nri, content, descriptors, unread)) content.erase("nri");
  return send_message(connection_.get(), content, descriptors);
}

bool Successor::wait_until_serving(std::chrono::milliseconds patience) {
  const Result<Message> message = receive_message(connection_.get(), patience);
  return message && is_true_in(message->content, "serving");
}

void Successor::let_go() { send_message(connection_.get(), {{"done", true}}); }

Result<std::unique_ptr<TakeOverSocket>> TakeOverSocket::open(const std::string& path) {
  if (const Status cleared = cri::clear_socket_path(path); !cleared) return cleared.error();
  auto socket = cri::listen_on(path, {.mode = 0600});
  if (!socket) return socket.error();
  return std::unique_ptr<TakeOverSocket>(new TakeOverSocket(path, *std::move(socket)));
}

TakeOverSocket::~TakeOverSocket() { ::unlink(path_.c_str()); }

std::optional<Successor> TakeOverSocket::accept() {
  UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return std::nullopt;
  const auto peer = peer_of(connection.get());
  if (!peer || peer->uid != ::geteuid()) return std::nullopt;
  return Successor(std::move(connection), peer->pid);
}

}  // namespace topolet::daemon
