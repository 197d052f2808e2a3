#include "core/cri/socket/listener.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/log.hpp"
#include "core/cri/socket/client_reads.hpp"
#include "core/cri/socket/listener_socket.hpp"

namespace topolet::cri {
namespace {

/// The time for which nothing is accepted after the process ran out of descriptors or memory.
constexpr int kPauseMs = 100;

}  // namespace

Result<std::unique_ptr<Listener>> Listener::open(const ListenerOptions& options, Log& log) {
  std::unique_ptr<Listener> listener(new Listener(options, log));
  Status status = options.inherited_fd >= 0 ? listener->inherit_socket() : listener->bind_socket();
  if (status.has_value()) status = listener->prepare_poll();
  if (!status) return status.error();
  return listener;
}

Listener::~Listener() { stop(); }

Status Listener::bind_socket() {
  auto lock = lock_socket(options_.path);
  if (!lock) return lock.error();
  lock_ = std::move(*lock);
  if (Status status = clear_socket_path(options_.path); !status.has_value()) return status;
  SocketAccess access{.mode = options_.mode};
  if (options_.group) access.group = *options_.group;
  auto socket = listen_on(options_.path, access_like(options_.copy_access_from, access));
  if (!socket) return socket.error();
  socket_ = std::move(*socket);
  read_inode();
  return {};
}

void Listener::read_inode() {
  struct stat file {};
  if (::lstat(options_.path.c_str(), &file) != 0) return;
  device_ = file.st_dev;
  inode_ = file.st_ino;
}

Status Listener::inherit_socket() {
  socket_.reset(options_.inherited_fd);
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    return Error{Code::kFailedPrecondition, "the inherited descriptor " + std::to_string(options_.inherited_fd) +
                                                " is not a listening socket; check the socket unit"};
  }
  ::fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (options_.inherited_lock_fd < 0) return {};
  lock_.reset(options_.inherited_lock_fd);
  ::fcntl(lock_.get(), F_SETFD, FD_CLOEXEC);
  read_inode();
  return {};
}

Status Listener::prepare_poll() {
  stop_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  post_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (poll_for(stop_event_.get(), EPOLLIN) && poll_for(post_event_.get(), EPOLLIN) && poll_for(socket_.get(), EPOLLIN))
    return {};
  return Error{Code::kResourceExhausted,
               "cannot wait for connections on " + options_.path + ": " + std::strerror(errno)};
}

bool Listener::poll_for(int fd, std::uint32_t events) const {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  return ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void Listener::start(OnConnection on_connection, MemoryGuard::OnMemoryShort on_memory_short) {
  on_connection_ = std::move(on_connection);
  if (options_.max_memory_bytes > 0) {
    guard_.emplace(options_.max_memory_bytes, connections_,
                   MemoryGuard::Actions{.disconnect = [this](int fd) { disconnect(fd); },
                                        .on_memory_short = std::move(on_memory_short)},
                   options_.memory_claims ? options_.memory_claims : std::make_shared<MemoryClaims>(), log_);
    poll_for(guard_->event_fd(), EPOLLIN);
  }
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "topolet-accept");
}

void Listener::post(std::function<void()> work) {
  {
    MutexLock lock(posting_);
    posted_.push_back(std::move(work));
  }
  ::eventfd_write(post_event_.get(), 1);
}

void Listener::run_posted() {
  eventfd_t ignored = 0;
  ::eventfd_read(post_event_.get(), &ignored);
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(posting_);
    posted.swap(posted_);
  }
  for (const std::function<void()>& work : posted) work();
}

std::vector<UniqueFd> Listener::stop_accepting() {
  ::eventfd_write(stop_event_.get(), 1);
  return accepting_ended_.get_future().get();
}

std::vector<UniqueFd> Listener::end_accepting() {
  eventfd_t ignored = 0;
  ::eventfd_read(stop_event_.get(), &ignored);
  if (!paused_) ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  is_accepting_ = false;
  paused_ = false;
  return connections_.duplicates();
}

Listener::Sockets Listener::duplicate_sockets() const {
  const auto duplicate = [](const UniqueFd& fd) { return UniqueFd(fd ? ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0) : -1); };
  return {duplicate(socket_), duplicate(lock_)};
}

void Listener::stop() {
  if (thread_.joinable()) {
    stopping_ = true;
    ::eventfd_write(stop_event_.get(), 1);
    thread_.join();
    // Nobody gives turns any more.
    connections_.stop_following();
  }
  if (!socket_) return;
  unlink_own();
  socket_.reset();
  lock_.reset();
}

void Listener::disconnect_all() {
  stop();
  connections_.disconnect_all_connections();
}

void Listener::unlink_own() const {
  struct stat file {};
  if (inode_ == 0 || ::lstat(options_.path.c_str(), &file) != 0) return;
  if (file.st_dev == device_ && file.st_ino == inode_) ::unlink(options_.path.c_str());
}

void Listener::run() {
  std::array<epoll_event, 16> events{};
  while (true) {
    const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
    if (paused_) resume();
    if (guard_) guard_->run();
    for (int i = 0; i < count; ++i) {
      const int fd = events.at(static_cast<std::size_t>(i)).data.fd;
      if (fd == stop_event_.get()) {
        if (stopping_) return;
        if (is_accepting_) accepting_ended_.set_value(end_accepting());
      } else if (fd == post_event_.get()) {
        run_posted();
      } else if (fd == socket_.get()) {
        if (is_accepting_) accept_all();
      } else if (!guard_ || fd != guard_->event_fd()) {
        // The client has closed, and cannot be answered. The bytes it sent before may be calls without end.
        connections_.end_reading(fd);
        untrack(fd);
      }
    }
    open_connections_ = connections_.size();
  }
}

int Listener::wait_ms() const {
  const int pause_ms = paused_ ? kPauseMs : -1;
  if (!guard_) return pause_ms;
  const int guard_ms = guard_->wait_ms();
  return paused_ ? std::min(pause_ms, guard_ms) : guard_ms;
}

void Listener::accept_all() {
  while (true) {
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
      accept_connection(std::move(connection));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return pause(errno);
    }
  }
}

void Listener::accept_connection(UniqueFd connection) {
  accept_failure_logged_ = false;
  const pid_t process = peer_process(connection.get());
  if (!evict_for(process)) return;
  // gRPC shuts a connection down when it is done with it, and that shows on the duplicate. Without one, for want of
  // descriptors, the connection is served but not counted.
  UniqueFd duplicate(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  const int duplicate_fd = duplicate.get();
  if (duplicate && poll_for(duplicate.get(), EPOLLRDHUP)) {
    const auto followed = guard_ ? client_reads::start(connection.get(), guard_->event_fd()) : client_reads::Followed();
    connections_.add(std::move(duplicate), process, followed);
  }
  connections_.set_calls(duplicate_fd, on_connection_(std::move(connection)));
}

bool Listener::evict_for(pid_t process) {
  const bool full = connections_.size() >= options_.max_connections;
  if (full != std::exchange(limit_warned_, full) && full) {
    const Connections::ProcessConnections largest_process = connections_.process_with_most();
    log_.warn(
        "{} has {} connections, the limit (daemon.max-connections), {} of them from process {}; until that process "
        "closes some, further ones of it are refused, and its newest are closed to admit other processes",
        options_.path, connections_.size(), largest_process.connections, largest_process.process);
  }
  if (!full) return true;
  const std::optional<int> fd = connections_.connection_to_evict(process);
  if (!fd) return false;
  disconnect(*fd);
  return true;
}

void Listener::disconnect(int duplicate_fd) {
  connections_.end_reading(duplicate_fd);
  // gRPC, which owns the connection, sees this as its client's leaving.
  ::shutdown(duplicate_fd, SHUT_RDWR);
  untrack(duplicate_fd);
}

void Listener::untrack(int duplicate_fd) {
  // Closing alone does not end the poll: gRPC's descriptor keeps the connection open.
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, duplicate_fd, nullptr);
  connections_.remove(duplicate_fd);
}

void Listener::pause(int error) {
  if (!std::exchange(accept_failure_logged_, true)) {
    log_.error("cannot accept connections on {}: {}; trying again", options_.path, std::strerror(error));
  }
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
  paused_ = true;
}

void Listener::resume() { paused_ = !poll_for(socket_.get(), EPOLLIN); }

}  // namespace topolet::cri
