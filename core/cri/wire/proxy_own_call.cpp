#include "core/cri/wire/proxy_own_call.hpp"

#include <utility>

#include "core/cri/wire/proxy_metadata.hpp"

namespace topolet::cri {
namespace {

/// What topoletd is asked is short. The limit of the runtime's messages is for those.
constexpr std::size_t kMaxRequestBytes = 64 << 10;

/// Answers the client at the latest when nobody holds it any more.
class OwnCallHandle final : public OwnCall {
 public:
  explicit OwnCallHandle(std::shared_ptr<PendingOwnCall> call) : call_(std::move(call)) {}
  OwnCallHandle(const OwnCallHandle&) = delete;
  OwnCallHandle& operator=(const OwnCallHandle&) = delete;
  ~OwnCallHandle() override {
    call_->reject({grpc::StatusCode::UNAVAILABLE, "topoletd dropped " + path() + " unanswered; try again"});
  }

  const std::string& path() const override { return call_->path(); }
  const std::string& request() const override { return call_->request(); }
  void answer(const std::string& response) override { call_->answer(response); }
  void reject(const Error& error) override {
    call_->reject({static_cast<grpc::StatusCode>(error.code), error.message});
  }

 private:
  const std::shared_ptr<PendingOwnCall> call_;
};

}  // namespace

void PendingOwnCall::serve(const std::shared_ptr<ProxyContext>& proxy, const std::shared_ptr<IncomingCall>& incoming) {
  std::shared_ptr<PendingOwnCall>(new PendingOwnCall(proxy, incoming))->read();
}

PendingOwnCall::PendingOwnCall(std::shared_ptr<ProxyContext> proxy, std::shared_ptr<IncomingCall> incoming)
    : proxy_(std::move(proxy)),
      incoming_(std::move(incoming)),
      path_(incoming_->context.method()),
      request_op_(proxy_->loop),
      sent_op_(proxy_->loop) {}

void PendingOwnCall::read() {
  incoming_->set_on_end([self = shared_from_this()](bool) { self->on_end(); });
  incoming_->stream.Read(&request_, request_op_.arm(shared_from_this()));
}

void PendingOwnCall::on_request(bool ok) {
  if (!ok) return reject({grpc::StatusCode::INVALID_ARGUMENT, path_ + " came without a request"});
  if (request_.Length() > kMaxRequestBytes) {
    return reject({grpc::StatusCode::RESOURCE_EXHAUSTED, "the request has " + std::to_string(request_.Length()) +
                                                             " bytes; topoletd takes at most " +
                                                             std::to_string(kMaxRequestBytes)});
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
  if (claim_reply()) incoming_->stream.Finish(status, sent_op_.arm_write(shared_from_this()));
}

void PendingOwnCall::on_end() {
  MutexLock lock(mutex_);
  ended_ = true;
}

}  // namespace topolet::cri
