#include "tests/bench/load_client.hpp"

#include <absl/synchronization/mutex.h>
#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

namespace topolet::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectWithin(20);

std::shared_ptr<grpc::Channel> connect(const std::string& socket) {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  auto channel = grpc::CreateCustomChannel("unix://" + socket, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + kConnectWithin)) {
    throw std::runtime_error("cannot connect to " + socket);
  }
  return channel;
}

/// The calls in flight for one script.
struct Flight {
  Script* script = nullptr;
  Script::Step step;
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

/// As many as are to be made in all; shared by the scripts of one load.
class Repeated final : public Script {
 public:
  Repeated(const Load& load, const grpc::ByteBuffer& request, std::size_t& left)
      : load_(load), request_(request), left_(left) {}

  bool next(grpc::ByteBuffer& /*response*/, Step& step) override {
    if (left_ == 0) return false;
    --left_;
    if (step.path.empty()) step = {load_.path, request_, 0, load_.is_echoed ? load_.request.size() : 0};
    return true;
  }

 private:
  const Load& load_;
  const grpc::ByteBuffer& request_;
  std::size_t& left_;
};

}  // namespace

class LoadClient::Connection {
 public:
  Connection(const std::string& socket, std::chrono::seconds deadline)
      : socket_(socket), deadline_(deadline), channel_(connect(socket)), stub_(channel_) {}
  ~Connection();

  std::vector<std::vector<double>> run(const std::vector<std::unique_ptr<Script>>& scripts, std::size_t kinds);
  Result<std::string> call_once(const std::string& path, const std::string& request);
  void open_unread_stream(const std::string& path);

 private:
  bool start_next(Flight& flight);
  void start(Flight& flight);
  std::string failure_of(const Flight& flight) const;
  void* next();

  const std::string socket_;
  const std::chrono::seconds deadline_;
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

std::vector<std::vector<double>> LoadClient::Connection::run(const std::vector<std::unique_ptr<Script>>& scripts,
                                                             std::size_t kinds) {
  std::vector<Flight> flights(scripts.size());
  std::vector<std::vector<double>> latencies_us(kinds);
  std::size_t in_flight = 0;
  std::string failure;
  for (std::size_t i = 0; i < flights.size(); ++i) {
    flights[i].script = scripts[i].get();
    if (start_next(flights[i])) ++in_flight;
  }
  while (in_flight > 0) {
    Flight& flight = *static_cast<Flight*>(next());
    latencies_us[flight.step.kind].push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - flight.started).count());
    if (failure.empty()) failure = failure_of(flight);
    // After a failure the calls in flight end, as they write into what is freed here.
    if (!failure.empty() || !start_next(flight)) --in_flight;
  }
  if (!failure.empty()) throw std::runtime_error(failure);
  return latencies_us;
}

bool LoadClient::Connection::start_next(Flight& flight) {
  if (!flight.script->next(flight.response, flight.step)) return false;
  start(flight);
  return true;
}

void LoadClient::Connection::start(Flight& flight) {
  flight.started = Clock::now();
  flight.reader.reset();
  flight.context.emplace();
  flight.context->set_deadline(std::chrono::system_clock::now() + deadline_);
  flight.reader = stub_.PrepareUnaryCall(&*flight.context, flight.step.path, flight.step.request, &queue_);
  flight.reader->StartCall();
  flight.reader->Finish(&flight.response, &flight.status, &flight);
}

Result<std::string> LoadClient::Connection::call_once(const std::string& path, const std::string& request) {
  Flight flight;
  flight.step = {.path = path, .request = to_buffer(request)};
  start(flight);
  next();
  if (!flight.status.ok()) return Error{static_cast<Code>(flight.status.error_code()), failure_of(flight)};
  return to_bytes(flight.response);
}

/// Empty if it went well.
std::string LoadClient::Connection::failure_of(const Flight& flight) const {
  const Script::Step& step = flight.step;
  if (!flight.status.ok()) {
    return fmt::format("{} on {} failed: {} (code {})", step.path, socket_, flight.status.error_message(),
                       flight.status.error_code());
  }
  if (step.echoed_bytes == 0 || flight.response.Length() == step.echoed_bytes) return {};
  return fmt::format("{} on {} was answered with {} bytes instead of {}", step.path, socket_, flight.response.Length(),
                     step.echoed_bytes);
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

LoadClient::LoadClient(const std::string& socket, std::chrono::seconds deadline)
    : connection_(std::make_unique<Connection>(socket, deadline)) {}

LoadClient::~LoadClient() = default;

std::vector<double> LoadClient::run(const Load& load) {
  const grpc::ByteBuffer request = to_buffer(load.request);
  std::size_t left = load.calls;
  std::vector<std::unique_ptr<Script>> scripts;
  for (std::size_t i = 0; i < std::min(load.concurrency, load.calls); ++i) {
    scripts.push_back(std::make_unique<Repeated>(load, request, left));
  }
  return connection_->run(scripts, 1).front();
}

std::vector<std::vector<double>> LoadClient::run(const std::vector<std::unique_ptr<Script>>& scripts,
                                                 std::size_t kinds) {
  return connection_->run(scripts, kinds);
}

Result<std::string> LoadClient::try_call(const std::string& path, const std::string& request) {
  return connection_->call_once(path, request);
}

std::string LoadClient::call(const std::string& path, const std::string& request) {
  Result<std::string> answer = try_call(path, request);
  if (!answer) throw std::runtime_error(answer.error().message);
  return *std::move(answer);
}

void LoadClient::open_unread_streams(const std::string& path, std::size_t count) {
  while (count-- > 0) connection_->open_unread_stream(path);
}

}  // namespace topolet::bench
