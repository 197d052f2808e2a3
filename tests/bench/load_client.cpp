#include "tests/bench/load_client.hpp"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>

namespace topolet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectWithin(20);
/// What the kubelet gives most of its calls.
constexpr std::chrono::minutes kCallDeadline(2);

std::shared_ptr<grpc::Channel> connect(const std::string& socket) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectWithin)) {
    throw std::runtime_error("cannot connect to " + socket);
  }
  return channel;
}

struct Flight {
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer response;
  grpc::Status status;
  Clock::time_point started;
};

struct UnreadStream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
};

}  // namespace

class LoadClient::Connection {
 public:
  explicit Connection(const std::string& socket) : socket_(socket), channel_(connect(socket)), stub_(channel_) {}
  ~Connection();

  std::vector<double> run(const Load& load);
  void open_unread_stream(const std::string& path);

 private:
  void start(Flight& flight, const Load& load, const grpc::ByteBuffer& request);
  void check(const Flight& flight, const Load& load) const;
  void* next();

  const std::string socket_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<UnreadStream>> streams_;
};

LoadClient::Connection::~Connection() {
  for (const auto& stream : streams_) stream->context.TryCancel();
  queue_.Shutdown();
  void* tag = nullptr;
  for (bool ok = false; queue_.Next(&tag, &ok);) {
  }
}

void* LoadClient::Connection::next() {
  void* tag = nullptr;
  bool ok = false;
  queue_.Next(&tag, &ok);
  return tag;
}

std::vector<double> LoadClient::Connection::run(const Load& load) {
  const grpc::Slice slice(std::string(load.message_bytes, 'm'));
  const grpc::ByteBuffer request(&slice, 1);
  std::vector<Flight> flights(std::min(load.concurrency, load.calls));
  std::vector<double> latencies_us;
  latencies_us.reserve(load.calls);
  std::size_t started = flights.size();
  for (Flight& flight : flights) start(flight, load, request);
  while (latencies_us.size() < load.calls) {
    Flight& flight = *static_cast<Flight*>(next());
    latencies_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - flight.started).count());
    check(flight, load);
    if (started++ < load.calls) start(flight, load, request);
  }
  return latencies_us;
}

void LoadClient::Connection::start(Flight& flight, const Load& load, const grpc::ByteBuffer& request) {
  flight.started = Clock::now();
  flight.reader.reset();
  flight.context.emplace();
  flight.context->set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  flight.reader = stub_.PrepareUnaryCall(&*flight.context, load.path, request, &queue_);
  flight.reader->StartCall();
  flight.reader->Finish(&flight.response, &flight.status, &flight);
}

void LoadClient::Connection::check(const Flight& flight, const Load& load) const {
  if (!flight.status.ok()) {
    throw std::runtime_error(fmt::format("{} on {} failed: {} (code {})", load.path, socket_,
                                         flight.status.error_message(), flight.status.error_code()));
  }
  if (flight.response.Length() != load.message_bytes) {
    throw std::runtime_error(fmt::format("{} on {} was answered with {} bytes instead of {}", load.path, socket_,
                                         flight.response.Length(), load.message_bytes));
  }
}

void LoadClient::Connection::open_unread_stream(const std::string& path) {
  UnreadStream& unread = *streams_.emplace_back(std::make_unique<UnreadStream>());
  unread.stream = stub_.PrepareCall(&unread.context, path, &queue_);
  unread.stream->StartCall(&unread);
  next();
  grpc::ByteBuffer nothing(nullptr, 0);
  unread.stream->WriteLast(nothing, grpc::WriteOptions(), &unread);
  next();
}

LoadClient::LoadClient(const std::string& socket) : connection_(std::make_unique<Connection>(socket)) {}

LoadClient::~LoadClient() = default;

std::vector<double> LoadClient::run(const Load& load) { return connection_->run(load); }

void LoadClient::open_unread_streams(const std::string& path, std::size_t count) {
  while (count-- > 0) connection_->open_unread_stream(path);
}

}  // namespace topolet::bench
