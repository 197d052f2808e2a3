#include "tests/cluster_api/apiserver.hpp"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <iterator>

#include "tests/cluster_api/apiserver_impl.hpp"

namespace topolet::testing {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

std::shared_ptr<asio::ssl::context> tls_context(const Certificate& certificate, const std::string& ca_pem) {
  auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  context->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1);
  context->use_certificate_chain(asio::buffer(certificate.certificate_pem));
  context->use_private_key(asio::buffer(certificate.key_pem), asio::ssl::context::pem);
  context->add_certificate_authority(asio::buffer(ca_pem));
  // A wrong client certificate is answered with 401, as by the real server, and not by an end of the handshake.
  context->set_verify_mode(asio::ssl::verify_peer);
  context->set_verify_callback([](bool, asio::ssl::verify_context&) { return true; });
  // OpenSSL refuses to resume sessions with client certificates without it.
  const unsigned char name[] = "topolet";
  SSL_CTX_set_session_id_context(context->native_handle(), name, sizeof name);
  return context;
}

}  // namespace

void ApiServer::Impl::listen(const Certificate& used) {
  certificate = used;
  auto made = tls_context(certificate, ca.pem());
  acceptor.open(tcp::v4());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  acceptor.bind(endpoint);
  acceptor.listen();
  {
    MutexLock lock(mutex);
    tls = std::move(made);
    is_listening = true;
  }
  accepting = std::thread([this] { accept_connections(); });
}

void ApiServer::Impl::stop_listening() {
  if (!accepting.joinable()) return;
  {
    MutexLock lock(mutex);
    is_listening = false;
  }
  ::shutdown(acceptor.native_handle(), SHUT_RDWR);
  accepting.join();
  acceptor.close();
}

void ApiServer::Impl::accept_connections() {
  while (true) {
    tcp::socket socket(context);
    error_code error;
    acceptor.accept(socket, error);
    std::vector<std::unique_ptr<Connection>> ended;
    MutexLock lock(mutex);
    if (!is_listening) return;
    if (error) continue;
    socket.set_option(tcp::no_delay(true), error);
    ended = take_connections(true);
    connections.push_back(std::make_unique<Connection>(*this, ++made_connections, std::move(socket), tls));
    connections.back()->begin();
    note_change();
  }
}

std::vector<std::unique_ptr<ApiServer::Connection>> ApiServer::Impl::take_connections(bool only_ended) {
  std::vector<std::unique_ptr<Connection>> taken;
  std::vector<std::unique_ptr<Connection>> left;
  for (auto& connection : connections) {
    (only_ended && !connection->has_ended() ? left : taken).push_back(std::move(connection));
  }
  connections = std::move(left);
  return taken;
}

void ApiServer::Impl::close_connections() {
  std::vector<std::unique_ptr<Connection>> taken;
  {
    MutexLock lock(mutex);
    taken = take_connections(false);
    for (const auto& connection : taken) connection->shut_down();
    note_change();
  }
  // Their threads end before this does.
  taken.clear();
}

ApiServer::ApiServer() : ApiServer(Options{}) {}

ApiServer::ApiServer(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {
  impl_->listen(impl_->certificate);
}

ApiServer::~ApiServer() { stop(); }

std::string ApiServer::url() const { return fmt::format("https://127.0.0.1:{}", impl_->endpoint.port()); }

std::string ApiServer::ca_pem() const { return impl_->ca.pem(); }

const Ca& ApiServer::ca() const { return impl_->ca; }

void ApiServer::set_tokens(std::set<std::string> tokens) {
  MutexLock lock(impl_->mutex);
  impl_->tokens = std::move(tokens);
}

void ApiServer::add_collection(Collection collection) {
  MutexLock lock(impl_->mutex);
  impl_->store.add(std::move(collection));
}

void ApiServer::drop_collection(const std::string& collection) {
  MutexLock lock(impl_->mutex);
  impl_->store.drop(impl_->locate(collection).collection().path);
  impl_->note_change();
}

Json ApiServer::put(const std::string& collection, Json object) {
  MutexLock lock(impl_->mutex);
  Json stored = impl_->store.put(impl_->locate(collection), std::move(object));
  impl_->note_change();
  return stored;
}

bool ApiServer::remove(const std::string& collection, const std::string& name, const std::string& name_space) {
  MutexLock lock(impl_->mutex);
  const Answer made = impl_->store.erase(impl_->locate(collection, name, name_space), Json());
  impl_->note_change();
  return made.code == 200;
}

std::optional<Json> ApiServer::get(const std::string& collection, const std::string& name,
                                   const std::string& name_space) const {
  MutexLock lock(impl_->mutex);
  const Answer made = impl_->store.read(impl_->locate(collection, name, name_space));
  if (made.code != 200) return std::nullopt;
  return made.body;
}

std::vector<Version> ApiServer::history(const std::string& collection) const {
  MutexLock lock(impl_->mutex);
  const ObjectStore::Location location = impl_->locate(collection);
  std::vector<Version> versions;
  std::copy_if(location.kept->history.begin(), location.kept->history.end(), std::back_inserter(versions),
               [&](const Version& version) { return location.contains(version.object); });
  return versions;
}

void ApiServer::compact() {
  MutexLock lock(impl_->mutex);
  impl_->store.compact();
}

std::vector<ApiServer::Request> ApiServer::requests() const { return requests(""); }

std::vector<ApiServer::Request> ApiServer::requests(const std::string& method, const std::string& path_prefix) const {
  MutexLock lock(impl_->mutex);
  std::vector<Request> matching;
  std::copy_if(impl_->requests.begin(), impl_->requests.end(), std::back_inserter(matching),
               [&](const Request& request) {
                 return (method.empty() || request.method == method) && begins_with(request.path, path_prefix);
               });
  return matching;
}

std::size_t ApiServer::open_watches(const std::string& path_prefix) const {
  MutexLock lock(impl_->mutex);
  return static_cast<std::size_t>(
      std::count_if(impl_->watched_paths.begin(), impl_->watched_paths.end(),
                    [&](const auto& watched) { return begins_with(watched.second, path_prefix); }));
}

std::size_t ApiServer::open_connections() const {
  MutexLock lock(impl_->mutex);
  return static_cast<std::size_t>(std::count_if(impl_->connections.begin(), impl_->connections.end(),
                                                [](const auto& connection) { return !connection->has_ended(); }));
}

bool ApiServer::wait_for(const std::function<bool()>& condition, std::chrono::milliseconds timeout) const {
  const std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    std::uint64_t seen_changes = 0;
    {
      MutexLock lock(impl_->mutex);
      seen_changes = impl_->changes;
    }
    if (condition()) return true;
    MutexLock lock(impl_->mutex);
    while (impl_->changes == seen_changes) {
      if (!impl_->changed.wait_until(impl_->mutex, deadline) && std::chrono::steady_clock::now() >= deadline)
        return false;
    }
  }
}

void ApiServer::misbehave(Misbehaviour misbehaviour) {
  MutexLock lock(impl_->mutex);
  impl_->misbehaviours.push_back(std::move(misbehaviour));
}

void ApiServer::behave() {
  MutexLock lock(impl_->mutex);
  impl_->misbehaviours.clear();
}

void ApiServer::release() {
  MutexLock lock(impl_->mutex);
  ++impl_->releases;
  impl_->note_change();
}

void ApiServer::send_to_watches(const std::string& path_prefix, const std::string& text) {
  MutexLock lock(impl_->mutex);
  impl_->sent_texts.push_back({path_prefix, text});
  impl_->note_change();
}

void ApiServer::send_bookmarks() {
  MutexLock lock(impl_->mutex);
  ++impl_->bookmarks;
  impl_->note_change();
}

void ApiServer::end_watches() {
  MutexLock lock(impl_->mutex);
  ++impl_->ends_of_watches;
  impl_->note_change();
}

void ApiServer::ignore_new_connections(bool on) {
  MutexLock lock(impl_->mutex);
  impl_->ignores_new_connections = on;
}

void ApiServer::close_connections() { impl_->close_connections(); }

void ApiServer::stop() {
  impl_->stop_listening();
  impl_->close_connections();
}

void ApiServer::start(const std::optional<Certificate>& certificate) {
  if (!impl_->accepting.joinable()) impl_->listen(certificate.value_or(impl_->certificate));
}

void ApiServer::restart(const std::optional<Certificate>& certificate) {
  stop();
  start(certificate);
}

}  // namespace topolet::testing
