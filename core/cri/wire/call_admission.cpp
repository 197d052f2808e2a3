#include "core/cri/wire/call_admission.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/cri/wire/event_loop.hpp"
#include "core/cri/wire/peer_names.hpp"

namespace topolet::cri {
namespace {

/// The time that a call waits while the runtime has few, and between two checks of that.
constexpr std::chrono::milliseconds kCheckAgain{20};
/// The longest time that it waits if memory is not short.
constexpr std::chrono::milliseconds kLongestWait{1000};

}  // namespace

ClientCalls::Load ClientCalls::load() const {
  Load load{.bytes = bytes_,
            .response_bytes = response_bytes_,
            .answered = answered_,
            .arrived = arrived_,
            .awaited_requests = awaited_requests_};
  if (load.response_bytes != 0) {
    load.unread_for = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.steady() - unread_since_.load());
  }
  return load;
}

/// To be called when the bytes are counted no more. A client that leaves a large answer unread does not make up for it
/// by reading small ones.
void ClientCalls::note_read(std::size_t response_bytes) {
  if (response_bytes == 0) return;
  const auto since = unread_since_.load();
  const double read = static_cast<double>(response_bytes) / static_cast<double>(response_bytes + response_bytes_);
  unread_since_ = since + std::chrono::duration_cast<Time::duration>(read * (clock_.steady() - since));
}

std::shared_ptr<ClientCalls> CallAdmission::open(ino_t connection, std::optional<OwnSocket> own_socket) {
  auto client = std::make_shared<ClientCalls>(own_socket, clock_);
  MutexLock lock(mutex_);
  if (clients_.size() >= purge_at_) {
    std::erase_if(clients_, [](const auto& entry) { return entry.second.expired(); });
    purge_at_ = std::max<std::size_t>(64, 2 * clients_.size());
  }
  clients_.insert_or_assign(connection, client);
  return client;
}

std::shared_ptr<ClientCalls> CallAdmission::find(std::string_view peer) const {
  const ino_t connection = connection_of(peer);
  if (connection == 0) return nullptr;
  MutexLock lock(mutex_);
  const auto found = clients_.find(connection);
  return found == clients_.end() ? nullptr : found->second.lock();
}

bool CallAdmission::may_have_more(const ClientCalls& client) const {
  if (client.going_ == 0) return true;
  if (client.response_bytes_ >= kMostUnreadBytes) return false;
  const std::size_t share = memory_short_ ? kCallsWhenShort : std::max(kLeastCalls, kCallsOfAll / clients_going_);
  return client.going_ < std::min<std::uint64_t>(share, kFirstCalls + client.answered_);
}

bool CallAdmission::may_wait(const ClientCalls& client) const {
  if (waiting_ < kWaitingOfAll) return true;
  return client.waiting_.size() < std::max(kLeastWaiting, kWaitingOfAll / clients_waiting_.size());
}

void CallAdmission::begin(ClientCalls& client) {
  ++going_;
  if (client.going_++ == 0) ++clients_going_;
}

void CallAdmission::end(ClientCalls& client) {
  --going_;
  if (--client.going_ == 0) --clients_going_;
  start_waiting(client);
}

void CallAdmission::wait(ClientCalls& client, std::uint64_t ticket, std::function<void()> start) {
  client.waiting_.emplace(ticket, ClientCalls::Waiting{std::move(start), clock_.steady()});
  ++waiting_;
  clients_waiting_.insert(&client);
  if (std::exchange(checks_again_, true)) return;
  loop_.post([this] { check_again(); }, kCheckAgain);
}

void CallAdmission::start_oldest(ClientCalls& client) {
  const auto oldest = client.waiting_.begin();
  const std::function<void()> start = std::move(oldest->second.start);
  client.waiting_.erase(oldest);
  forget_waiting(client);
  begin(client);
  start();
}

/// To be called when one of the client's is taken away.
void CallAdmission::forget_waiting(ClientCalls& client) {
  --waiting_;
  if (client.waiting_.empty()) clients_waiting_.erase(&client);
}

void CallAdmission::start_waiting(ClientCalls& client) {
  while (!client.waiting_.empty() && may_have_more(client)) start_oldest(client);
}

/// For what changes without a call of the client that ends: time passes, and others have fewer calls.
void CallAdmission::check_again() {
  const std::vector<ClientCalls*> clients(clients_waiting_.begin(), clients_waiting_.end());
  const auto now = clock_.steady();
  for (ClientCalls* client : clients) {
    start_waiting(*client);
    hurry(*client, now);
  }
  checks_again_ = !clients_waiting_.empty();
  if (checks_again_) loop_.post([this] { check_again(); }, kCheckAgain);
}

void CallAdmission::hurry(ClientCalls& client, ClientCalls::Time now) {
  while (!client.waiting_.empty() && client.response_bytes_ < kMostUnreadBytes) {
    const auto waited = now - client.waiting_.begin()->second.since;
    if (waited < (going_ < kFewOfAll && !memory_short_ ? kCheckAgain : kLongestWait)) return;
    if (memory_short_ && now - client.hurried_at_ < kLongestWait) return;
    client.hurried_at_ = now;
    start_oldest(client);
  }
}

bool CallAdmission::begin_stream(ClientCalls& client) {
  const std::size_t clients = clients_streaming_ + (client.streams_ == 0 ? 1 : 0);
  if (streams_ >= kStreamsOfAll && client.streams_ >= std::max(kLeastStreams, kStreamsOfAll / clients)) return false;
  ++streams_;
  if (client.streams_++ == 0) ++clients_streaming_;
  return true;
}

void CallAdmission::end_stream(ClientCalls& client) {
  --streams_;
  if (--client.streams_ == 0) --clients_streaming_;
}

CallTicket::CallTicket(CallAdmission& admission, std::shared_ptr<ClientCalls> client)
    : admission_(admission), client_(std::move(client)) {
  if (client_ == nullptr) return;
  ++client_->arrived_;
  ++client_->awaited_requests_;
  awaits_request_ = true;
}

void CallTicket::note_request() {
  if (std::exchange(awaits_request_, false)) --client_->awaited_requests_;
}

bool CallTicket::begin_stream() {
  if (client_ == nullptr) return true;
  note_request();
  is_stream_ = admission_.begin_stream(*client_);
  if (is_stream_) charge(CallAdmission::kGoingBytes);
  return is_stream_;
}

void CallTicket::begin(std::size_t request_bytes) {
  if (client_ == nullptr || bytes_ != 0) return;
  note_request();
  charge(CallAdmission::kWaitingBytes + request_bytes);
}

bool CallTicket::wait_for_turn(std::function<void()> start) {
  if (client_ == nullptr) {
    start();
    return true;
  }
  const bool must_wait = !client_->waiting_.empty() || !admission_.may_have_more(*client_);
  if (must_wait && !admission_.may_wait(*client_)) {
    end(/*answered=*/false);
    return false;
  }
  number_ = ++admission_.last_ticket_;
  auto go = [this, start = std::move(start)] {
    is_going_ = true;
    charge(CallAdmission::kGoingBytes);
    start();
  };
  if (must_wait) {
    admission_.wait(*client_, number_, std::move(go));
  } else {
    admission_.begin(*client_);
    go();
  }
  return true;
}

void CallTicket::charge(std::size_t bytes) {
  bytes_ += bytes;
  client_->bytes_ += bytes;
}

void CallTicket::set_response(std::size_t bytes) {
  if (client_ == nullptr || bytes_ == 0) return;
  if (client_->response_bytes_ == 0) client_->unread_since_ = client_->clock_.steady();
  const std::size_t before = response_bytes_;
  client_->response_bytes_ += bytes - response_bytes_;
  client_->bytes_ += bytes - response_bytes_;
  bytes_ += bytes - response_bytes_;
  response_bytes_ = bytes;
  if (bytes == 0) client_->note_read(before);
}

void CallTicket::end(bool answered) {
  if (client_ == nullptr) return;
  note_request();
  const std::shared_ptr<ClientCalls> client = std::exchange(client_, nullptr);
  client->response_bytes_ -= response_bytes_;
  if (answered) {
    ++client->answered_;
    client->note_read(response_bytes_);
  }
  client->bytes_ -= bytes_;
  if (is_stream_) return admission_.end_stream(*client);
  if (is_going_) return admission_.end(*client);
  if (number_ == 0 || client->waiting_.erase(number_) == 0) return;
  admission_.forget_waiting(*client);
}

}  // namespace topolet::cri
