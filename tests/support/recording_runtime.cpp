#include "tests/support/recording_runtime.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/support/byte_buffer.hpp"

namespace topolet::testing {
namespace {

constexpr std::chrono::seconds kPatience{60};

// Only their addresses matter: tags of one exchange's own queue.
int g_end_tag;
int g_step_tag;

std::string method_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

bool ServerCall::wait_for(void* tag) {
  void* got = nullptr;
  bool ok = false;
  mark_handed_over(&queue_);
  while (queue_.Next(&got, &ok)) {
    mark_taken(&queue_);
    if (got == &g_end_tag) note_end();
    if (got == tag) return ok;
  }
  return false;
}

void ServerCall::note_end() {
  ended_ = true;
  const bool cancelled = context_.IsCancelled();
  runtime_.record([&] { record_->cancelled = cancelled; });
}

std::optional<std::string> ServerCall::read() {
  grpc::ByteBuffer buffer;
  stream_.Read(&buffer, &g_step_tag);
  if (!wait_for(&g_step_tag)) return std::nullopt;
  std::string message = to_bytes(buffer);
  runtime_.record([&] { record_->messages.push_back(message); });
  return message;
}

bool ServerCall::write(const std::string& message) {
  stream_.Write(to_buffer(message), &g_step_tag);
  return wait_for(&g_step_tag);
}

void ServerCall::send_header() {
  stream_.SendInitialMetadata(&g_step_tag);
  wait_for(&g_step_tag);
}

void ServerCall::wait_for_cancellation() {
  if (!ended_) wait_for(&g_end_tag);
}

void ServerCall::finish(const grpc::Status& status) {
  if (!ended_) {
    stream_.Finish(status, &g_step_tag);
    wait_for(&g_step_tag);
  }
  if (!ended_) wait_for(&g_end_tag);
  queue_.Shutdown();
  wait_for(nullptr);
  runtime_.record([&] { record_->ended = true; });
}

RecordingRuntime::RecordingRuntime(const std::string& socket_path) : endpoint_("unix://" + socket_path) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 64 << 20);
  builder.AddListeningPort(endpoint_, grpc::InsecureServerCredentials());
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) throw std::runtime_error("cannot listen on " + endpoint_);
  acceptor_ = std::thread([this] { accept_calls(); });
}

RecordingRuntime::~RecordingRuntime() {
  server_->Shutdown(std::chrono::system_clock::now());
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    queue_->Shutdown();
  }
  acceptor_.join();
}

void RecordingRuntime::accept_calls() {
  std::vector<std::thread> handlers;
  while (true) {
    std::unique_ptr<ServerCall> exchange(new ServerCall(*this));
    if (!request_call(*exchange)) break;
    void* tag = nullptr;
    bool ok = false;
    if (!queue_->Next(&tag, &ok) || !ok) break;
    handlers.emplace_back([this, owned = std::move(exchange)] { serve(*owned); });
  }
  for (std::thread& handler : handlers) handler.join();
}

bool RecordingRuntime::request_call(ServerCall& exchange) {
  MutexLock lock(mutex_);
  if (stopping_) return false;
  exchange.context_.AsyncNotifyWhenDone(&g_end_tag);
  service_.RequestCall(&exchange.context_, &exchange.stream_, &exchange.queue_, queue_.get(), this);
  return true;
}

void RecordingRuntime::serve(ServerCall& exchange) {
  RecordedCall call{.path = exchange.path(),
                    .metadata = {},
                    .deadline = exchange.context_.deadline(),
                    .messages = {},
                    .ended = false,
                    .cancelled = false};
  for (const auto& [key, value] : exchange.context_.client_metadata()) {
    call.metadata.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  record([&]() TOPOLET_REQUIRES(mutex_) { exchange.record_ = &records_.emplace_back(std::move(call)); });
  exchange.finish(handler_of(exchange.path())(exchange));
}

void RecordingRuntime::record(const std::function<void()>& change) {
  MutexLock lock(mutex_);
  change();
  changed_.notify_all();
}

void RecordingRuntime::handle(const std::string& method, Handler handler) {
  MutexLock lock(mutex_);
  handlers_[method] = std::move(handler);
}

void RecordingRuntime::handle_others(Handler handler) {
  MutexLock lock(mutex_);
  other_ = std::move(handler);
}

RecordingRuntime::Handler RecordingRuntime::handler_of(const std::string& path) const {
  MutexLock lock(mutex_);
  const auto found = handlers_.find(method_of(path));
  return found == handlers_.end() ? other_ : found->second;
}

RecordingRuntime::Handler RecordingRuntime::answer(std::string response) {
  return [response = std::move(response)](ServerCall& exchange) {
    exchange.read();
    exchange.write(response);
    return grpc::Status::OK;
  };
}

RecordingRuntime::Handler RecordingRuntime::refuse(grpc::Status status) {
  return [status = std::move(status)](ServerCall& exchange) {
    exchange.read();
    return status;
  };
}

std::vector<RecordedCall> RecordingRuntime::select(const std::string& method) const {
  std::vector<RecordedCall> found;
  for (const RecordedCall& call : records_) {
    if (method.empty() || method_of(call.path) == method) found.push_back(call);
  }
  return found;
}

std::vector<RecordedCall> RecordingRuntime::calls(const std::string& method) const {
  MutexLock lock(mutex_);
  return select(method);
}

std::vector<RecordedCall> RecordingRuntime::wait_for_count(const std::string& method, std::size_t count,
                                                           bool ended) const {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  const auto counts = [&](const RecordedCall& call) {
    return (method.empty() || method_of(call.path) == method) && (call.ended || !ended);
  };
  MutexLock lock(mutex_);
  while (static_cast<std::size_t>(std::count_if(records_.begin(), records_.end(), counts)) < count) {
    if (!changed_.wait_until(mutex_, give_up)) return {};
  }
  return select(method);
}

std::vector<RecordedCall> RecordingRuntime::wait_for_arrivals(const std::string& method, std::size_t count) const {
  return wait_for_count(method, count, /*ended=*/false);
}

std::vector<RecordedCall> RecordingRuntime::wait_for_ends(const std::string& method, std::size_t count) const {
  return wait_for_count(method, count, /*ended=*/true);
}

}  // namespace topolet::testing
