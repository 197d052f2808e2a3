#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/roles.hpp"

namespace topolet::bench {
namespace {

bool names(const std::string& path, const std::string& method) { return path == kServicePath + method; }

/// What the calls share.
struct Desk {
  grpc::AsyncGenericService service;
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  grpc::ByteBuffer pushed;
  std::size_t held_calls = 0;
  std::vector<class ServedCall*> held;
};

/// Owns itself from its construction, when it waits for a call, until it has answered it.
class ServedCall {
 public:
  explicit ServedCall(Desk& desk) : desk_(desk) {
    desk_.service.RequestCall(&context_, &stream_, desk_.queue.get(), desk_.queue.get(), this);
  }
  void on_event(bool ok);
  void echo() {
    step_ = Step::kLeaving;
    stream_.WriteAndFinish(request_, grpc::WriteOptions(), grpc::Status(), this);
  }

 private:
  enum class Step { kArriving, kReading, kPushing, kLeaving };

  void on_arrived();
  void on_request();
  void push();
  void hold();
  void end() {
    step_ = Step::kLeaving;
    stream_.Finish(grpc::Status(), this);
  }

  Desk& desk_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer request_;
  Step step_ = Step::kArriving;
  std::size_t pushed_ = 0;
};

void ServedCall::on_event(bool ok) {
  if (step_ == Step::kLeaving || (step_ == Step::kArriving && !ok)) {
    delete this;
  } else if (!ok) {
    end();
  } else if (step_ == Step::kArriving) {
    on_arrived();
  } else if (step_ == Step::kReading) {
    on_request();
  } else {
    push();
  }
}

void ServedCall::on_arrived() {
  new ServedCall(desk_);
  step_ = Step::kReading;
  stream_.Read(&request_, this);
}

void ServedCall::on_request() {
  if (names(context_.method(), kStreamMethod)) return push();
  if (names(context_.method(), kHeldMethod)) return hold();
  echo();
}

void ServedCall::push() {
  if (pushed_++ == kPushedMessages) return end();
  step_ = Step::kPushing;
  stream_.Write(desk_.pushed, this);
}

void ServedCall::hold() {
  desk_.held.push_back(this);
  if (desk_.held.size() < desk_.held_calls) return;
  for (ServedCall* call : desk_.held) call->echo();
  desk_.held.clear();
}

}  // namespace

void run_runtime(const std::string& listen, std::size_t held_calls) {
  Desk desk;
  desk.held_calls = held_calls;
  const grpc::Slice slice(std::string(kPushedBytes, 'p'));
  desk.pushed = grpc::ByteBuffer(&slice, 1);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterAsyncGenericService(&desk.service);
  builder.AddListeningPort("unix://" + listen, grpc::InsecureServerCredentials());
  desk.queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  new ServedCall(desk);
  void* tag = nullptr;
  for (bool ok = false; desk.queue->Next(&tag, &ok);) static_cast<ServedCall*>(tag)->on_event(ok);
}

}  // namespace topolet::bench
