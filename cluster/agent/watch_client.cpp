#include "cluster/agent/watch_client.hpp"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "cluster/agent/socket_channel.hpp"

namespace topolet::agent {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kConnecting{500};
/// topoletd itself waits five seconds for what it decides with.
constexpr std::chrono::seconds kFitsPatience{8};
/// A machine of thousands of CPUs and containers has a snapshot of a few MiB.
constexpr int kMaxMessageBytes = 64 << 20;

}  // namespace

WatchClient::WatchClient(Options options, Node& node, Log& log)
    : options_(std::move(options)),
      node_(node),
      log_(log),
      channel_(connect_to_socket(options_.socket, kMaxMessageBytes)),
      stub_(watch::v1::Watch::NewStub(channel_)) {}

WatchClient::~WatchClient() { stop(); }

void WatchClient::start() {
  thread_ = std::thread([this] { run(); });
}

void WatchClient::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (context_ != nullptr) context_->TryCancel();
    ending_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  calls_.end();
}

void WatchClient::run() {
  auto next = kFirstPause;
  do {
    got_snapshot_ = false;
    follow();
    next = got_snapshot_ ? kFirstPause : std::min(2 * next, options_.longest_pause);
  } while (pause(next));
}

void WatchClient::follow() {
  grpc::ClientContext context;
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    context_ = &context;
  }
  // Without it, a call fails at once for as long as the channel rests between two attempts.
  channel_->WaitForConnected(std::chrono::system_clock::now() + kConnecting);
  watch::v1::WatchRequest request;
  request.set_load(options_.load);
  const auto stream = stub_->Watch(&context, request);
  watch::v1::WatchResponse response;
  while (stream->Read(&response)) take(response);
  const grpc::Status status = stream->Finish();
  bool is_ending = false;
  {
    MutexLock lock(mutex_);
    context_ = nullptr;
    is_ending = stopping_;
    if (got_snapshot_) ++counts_.lost_connections;
  }
  node_.set_connected(false, options_.clock.wall());
  if (!is_ending) note_loss(status.error_message());
}

void WatchClient::take(const watch::v1::WatchResponse& response) {
  const std::chrono::milliseconds now = options_.clock.wall();
  // Before the node is said to be known, so that who waits for that finds it counted.
  add_to_counts(response, now);
  if (response.has_snapshot()) {
    node_.begin(response.snapshot(), now);
    got_snapshot_ = true;
    log_.info("connected to topoletd {} on {}", response.snapshot().version(), options_.socket);
    is_told_ = false;
  }
  for (const watch::v1::Delta& delta : response.deltas().deltas()) node_.apply(delta, now);
  if (response.has_load()) node_.set_load(response.load());
}

void WatchClient::add_to_counts(const watch::v1::WatchResponse& response, std::chrono::milliseconds now) {
  MutexLock lock(mutex_);
  if (response.has_snapshot()) ++counts_.snapshots;
  const auto& deltas = response.deltas().deltas();
  counts_.deltas += static_cast<std::uint64_t>(deltas.size());
  // The clock may have been set meanwhile.
  if (!deltas.empty()) {
    counts_.last_lag =
        std::max(std::chrono::milliseconds(0), now - std::chrono::milliseconds(deltas.rbegin()->time_ms()));
  }
}

/// Once for as long as it lasts.
void WatchClient::note_loss(const std::string& why) {
  if (std::exchange(is_told_, true)) return;
  log_.warn(
      "no connection to topoletd on {}: {}; it is tried again every few seconds: check that topoletd runs, and that "
      "daemon.watch names this socket and daemon.watch-group a group of this process",
      options_.socket, why);
}

bool WatchClient::pause(std::chrono::milliseconds duration) {
  if (options_.pause) {
    options_.pause(duration);
  } else {
    wait_for_stop(duration);
  }
  MutexLock lock(mutex_);
  return !stopping_;
}

void WatchClient::wait_for_stop(std::chrono::milliseconds duration) {
  const auto until = std::chrono::steady_clock::now() + duration;
  MutexLock lock(mutex_);
  while (!stopping_ && ending_.wait_until(mutex_, until)) {
  }
}

Result<std::string> WatchClient::metrics(std::chrono::milliseconds patience) const {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + patience);
  watch::v1::MetricsResponse response;
  const grpc::Status status = stub_->Metrics(&context, {}, &response);
  if (!status.ok()) return Error{static_cast<Code>(status.error_code()), status.error_message()};
  return std::move(*response.mutable_text());
}

void WatchClient::ask_what_fits(watch::v1::FitsRequest request, OnFits on_answer) {
  calls_.call<watch::v1::FitsResponse>(
      kFitsPatience, std::move(request), [this](auto... arguments) { stub_->async()->Fits(std::move(arguments)...); },
      std::move(on_answer));
}

WatchCounts WatchClient::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

}  // namespace topolet::agent
