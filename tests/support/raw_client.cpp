#include "tests/support/raw_client.hpp"

#include "tests/support/byte_buffer.hpp"

namespace topolet::testing {
namespace {

std::multimap<std::string, std::string> copy_of(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  std::multimap<std::string, std::string> copy;
  for (const auto& [key, value] : metadata) {
    copy.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  return copy;
}

std::shared_ptr<grpc::Channel> connect(const std::string& endpoint) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 64 << 20);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

RawCall::RawCall(grpc::GenericStub& stub, const RawRequest& request) {
  for (const auto& [key, value] : request.metadata) context_.AddMetadata(key, value);
  context_.set_deadline(std::chrono::system_clock::now() + request.timeout);
  stream_ = stub.PrepareCall(&context_, request.path, &queue_);
  stream_->StartCall(this);
  wait();
}

RawCall::~RawCall() {
  if (!finished_) {
    cancel();
    finish();
  }
}

bool RawCall::wait() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

bool RawCall::write(const std::string& message) {
  stream_->Write(to_buffer(message), this);
  return wait();
}

void RawCall::half_close() {
  stream_->WritesDone(this);
  wait();
}

std::optional<std::string> RawCall::read() {
  grpc::ByteBuffer buffer;
  stream_->Read(&buffer, this);
  if (!wait()) return std::nullopt;
  return to_bytes(buffer);
}

std::multimap<std::string, std::string> RawCall::read_header() {
  stream_->ReadInitialMetadata(this);
  wait();
  return copy_of(context_.GetServerInitialMetadata());
}

RawResponse RawCall::finish() {
  RawResponse answer;
  while (auto message = read()) answer.messages.push_back(std::move(*message));
  stream_->Finish(&answer.status, this);
  wait();
  finished_ = true;
  answer.header = copy_of(context_.GetServerInitialMetadata());
  answer.trailer = copy_of(context_.GetServerTrailingMetadata());
  return answer;
}

RawClient::RawClient(const std::string& endpoint) : stub_(connect(endpoint)) {}

RawResponse RawClient::call(const RawRequest& request) {
  const std::unique_ptr<RawCall> call = open(request);
  if (call->write(request.message)) call->half_close();
  return call->finish();
}

std::unique_ptr<RawCall> RawClient::open(const RawRequest& request) {
  return std::make_unique<RawCall>(stub_, request);
}

}  // namespace topolet::testing
