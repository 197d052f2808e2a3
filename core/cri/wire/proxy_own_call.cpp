#include "core/cri/wire/proxy_own_call.hpp"

#include <utility>

#include "core/cri/wire/proxy_metadata.hpp"

namespace topolet::cri {
namespace {

/// Returns the size limit of requests to topoletd. They are short, though Watch.Fits names all containers that a node
/// waits for. The limit of the runtime's messages is for those.
std::size_t max_request_bytes(OwnSocket socket) { return socket == OwnSocket::kControl ? 64 << 10 : 1 << 20; }

/// Answers the client at the latest when nobody holds it any more.
class OwnCallHandle final : public OwnCall {
 public:
  explicit OwnCallHandle(std::shared_ptr<PendingOwnCall> call) : call_(std::move(call)) {}
  OwnCallHandle(const OwnCallHandle&) = delete;
  OwnCallHandle& operator=(const OwnCallHandle&) = delete;
  ~OwnCallHandle() override {
    call_->reject({grpc::StatusCode::UNAVAILABLE, "topoletd dropped " + path() + " unanswered; try again"});
  }

  OwnSocket socket() const override { return call_->socket(); }
  const std::string& path() const override { return call_->path(); }
  const std::string& request() const override { return call_->request(); }
  void answer(const std::string& response) override { call_->answer(response); }
  void reject(const Error& error) override {
    call_->reject({static_cast<grpc::StatusCode>(error.code), error.message});
  }
  void send(std::shared_ptr<const std::string> message) override { call_->send(std::move(message)); }
  std::size_t unsent_bytes() const override { return call_->unsent_bytes(); }
  void cut_off() override { call_->cut_off(); }
  bool has_ended() const override { return call_->has_ended(); }

 private:
  const std::shared_ptr<PendingOwnCall> call_;
};

/// The bytes of the message, which lives as long as gRPC needs them.
grpc::ByteBuffer share(std::shared_ptr<const std::string> message) {
  const std::string& bytes = *message;
  auto* const owner = new std::shared_ptr<const std::string>(std::move(message));
  const grpc::Slice slice(
      const_cast<char*>(bytes.data()), bytes.size(),
      [](void* held) { delete static_cast<std::shared_ptr<const std::string>*>(held); }, owner);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

void PendingOwnCall::serve(const std::shared_ptr<ProxyContext>& proxy, const std::shared_ptr<IncomingCall>& incoming) {
  auto client = proxy->admission.find(incoming->context.peer());
  // Nobody is taken for somebody who may do more.
  if (client == nullptr || !client->own_socket()) {
    return incoming->reject({grpc::StatusCode::UNAVAILABLE, "the connection has ended; connect again"});
  }
  std::shared_ptr<PendingOwnCall>(new PendingOwnCall(proxy, incoming, std::move(client)))->read();
}

PendingOwnCall::PendingOwnCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming,
                               std::shared_ptr<ClientCalls> client)
    : proxy_(std::move(proxy)),
      incoming_(std::move(incoming)),
      socket_(*client->own_socket()),
      path_(incoming_->context.method()),
      ticket_(proxy_->admission, std::move(client)),
      request_op_(proxy_->loop),
      message_op_(proxy_->loop),
      sent_op_(proxy_->loop) {}

void PendingOwnCall::read() {
  incoming_->set_on_end([self = shared_from_this()](bool) { self->on_end(); });
  incoming_->stream.Read(&request_, request_op_.arm(shared_from_this()));
}

void PendingOwnCall::on_request(bool ok) {
  if (!ok) return reject({grpc::StatusCode::INVALID_ARGUMENT, path_ + " came without a request"});
  ticket_.begin(request_.Length());
  if (const std::size_t most = max_request_bytes(socket_); request_.Length() > most) {
    return reject({grpc::StatusCode::RESOURCE_EXHAUSTED, "the request has " + std::to_string(request_.Length()) +
                                                             " bytes; topoletd takes at most " + std::to_string(most)});
  }
  request_bytes_ = flatten(request_);
  const auto handle = std::make_shared<OwnCallHandle>(shared_from_this());
  if (proxy_->hooks.on_own_call) proxy_->hooks.on_own_call(handle);
}

void PendingOwnCall::answer(const std::string& response) {
  MutexLock lock(mutex_);
  if (!claim_reply()) return;
  incoming_->stream.WriteAndFinish(make_buffer(response), grpc::WriteOptions(), grpc::Status(),
                                   sent_op_.arm_write(shared_from_this()));
}

void PendingOwnCall::reject(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (!claim_reply()) return;
  if (!writing_) return incoming_->stream.Finish(status, sent_op_.arm_write(shared_from_this()));
  last_status_ = status;
}

void PendingOwnCall::send(std::shared_ptr<const std::string> message) {
  MutexLock lock(mutex_);
  if (ended_ || replied_) return;
  unsent_bytes_ += message->size();
  unsent_.push_back(std::move(message));
  if (!writing_) write_next();
}

void PendingOwnCall::write_next() {
  writing_ = true;
  incoming_->stream.Write(share(unsent_.front()), message_op_.arm_write(shared_from_this()));
}

void PendingOwnCall::on_message_sent(bool ok) {
  MutexLock lock(mutex_);
  writing_ = false;
  unsent_bytes_ -= unsent_.front()->size();
  unsent_.pop_front();
  ticket_.set_response(unsent_bytes_);
  if (!ok || ended_) return;
  if (!unsent_.empty()) return write_next();
  if (last_status_) incoming_->stream.Finish(*last_status_, sent_op_.arm_write(shared_from_this()));
}

std::size_t PendingOwnCall::unsent_bytes() const {
  MutexLock lock(mutex_);
  return unsent_bytes_;
}

void PendingOwnCall::cut_off() {
  MutexLock lock(mutex_);
  if (!ended_) incoming_->context.TryCancel();
}

bool PendingOwnCall::has_ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

void PendingOwnCall::on_end() {
  {
    MutexLock lock(mutex_);
    ended_ = true;
  }
  ticket_.end(/*answered=*/true);
}

}  // namespace topolet::cri
