#include "cluster/extender/forwarder.hpp"

#include <fmt/format.h>

#include <utility>

namespace topolet::extender {
namespace {

Error unreachable(const api::LeaderElection::Leader& leader, const std::string& why) {
  return {Code::kUnavailable, fmt::format("the leader {} cannot be reached: {}", leader.identity, why)};
}

api::ApiServer server_at(const std::string& address, const http::TlsFiles& tls) {
  const http::TlsFiles::Paths& paths = tls.paths();
  api::ApiServer server;
  server.url = "https://" + address;
  server.ca.file = paths.client_ca;
  server.tls_server_name = tls.names().dns_name;
  server.client_certificate.file = paths.certificate;
  server.client_key.file = paths.key;
  return server;
}

}  // namespace

void Forwarder::send(const std::string& path, std::string body, const api::LeaderElection::Leader& leader,
                     OnAnswer on_answer) {
  if (leader.identity == silent_ && loop_.now() < silent_until_)
    return on_answer(unreachable(leader, "it did not answer a moment ago"));
  api::HttpRequest request;
  request.method = "POST";
  request.path = "/forwarded" + path;
  // Without it libcurl would wait to be asked for large bodies.
  request.headers = {"Content-Type: application/json", "Expect:"};
  request.body = std::move(body);
  const bool can_be_answered_here = path == "/filter" || path == "/prioritize";
  request.timeout = can_be_answered_here ? options_.answerable : options_.patience;
  const std::uint64_t number = ++last_number_;
  Waiting& waiting = waiting_[number];
  waiting.on_answer = std::move(on_answer);
  waiting.transfer =
      loop_.send(server_at(leader.address, tls_), request,
                 [this, number, leader](api::HttpAnswer answer) { finish(number, leader, std::move(answer)); });
}

void Forwarder::finish(std::uint64_t number, const api::LeaderElection::Leader& leader, api::HttpAnswer answer) {
  const auto waiting = waiting_.extract(number);
  if (waiting.empty()) return;
  const OnAnswer& on_answer = waiting.mapped().on_answer;
  if (answer.status == 200) {
    silent_.clear();
    return on_answer(std::move(answer.body));
  }
  const std::string why = answer.status == 0 ? answer.error : fmt::format("it answered {}", answer.status);
  log_.warn("{} cannot be reached at {}: {}", leader.identity, leader.address, why);
  if (answer.status == 0) {
    silent_ = leader.identity;
    silent_until_ = loop_.now() + options_.avoid;
  }
  on_answer(unreachable(leader, why));
}

void Forwarder::give_up() {
  silent_.clear();
  for (auto& [number, waiting] : std::exchange(waiting_, {})) {
    loop_.abort(waiting.transfer);
    waiting.on_answer(Error{Code::kAborted, "another replica leads by now"});
  }
}

}  // namespace topolet::extender
