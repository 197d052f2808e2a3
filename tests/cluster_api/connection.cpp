#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "tests/cluster_api/apiserver_impl.hpp"

namespace topolet::testing {
namespace {

namespace http = boost::beast::http;
using Time = std::chrono::steady_clock::time_point;

constexpr std::uint64_t kMaxBodyBytes = 64 << 20;
constexpr std::string_view kBinding = "/binding";

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

std::string query_text(const Query& query, const char* name) {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

bool is_true(const std::string& parameter) { return parameter == "1" || parameter == "true"; }

std::string event_line(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump() + '\n';
}

/// Returns the line about a version for a watch that selects some objects; empty: none. An object that no longer
/// matches is deleted for it, in the last content that matched.
std::string version_line(const Version& version, const FieldSelector& selector) {
  const bool matched = version.type != ChangeType::kAdded && version.previous && selector.matches(*version.previous);
  const bool matches = version.type != ChangeType::kDeleted && selector.matches(version.object);
  if (matches) return event_line(matched ? "MODIFIED" : "ADDED", version.object);
  if (!matched) return "";
  Json last = *version.previous;
  last["metadata"]["resourceVersion"] = std::to_string(version.resource_version);
  return event_line("DELETED", last);
}

}  // namespace

void ApiServer::Connection::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    fmt::print(stderr, "test apiserver: connection {}: {}\n", number_, error.what());
  }
  shut_down();
  MutexLock lock(server_.mutex);
  has_ended_ = true;
  server_.note_change();
}

void ApiServer::Connection::serve() {
  {
    MutexLock lock(server_.mutex);
    if (server_.ignores_new_connections) {
      // The client's first message lies there unread, so its going away is not seen.
      while (!is_shut_down_) server_.changed.wait(server_.mutex);
      return;
    }
  }
  boost::system::error_code error;
  stream_.handshake(boost::asio::ssl::stream_base::server, error);
  if (error) return;
  while (const auto call = read_call()) {
    if (!answer(*call) || !call->keeps_alive) return;
  }
}

std::optional<ApiServer::Connection::Call> ApiServer::Connection::read_call() {
  http::request_parser<http::string_body> parser;
  parser.body_limit(kMaxBodyBytes);
  boost::system::error_code error;
  http::read_header(stream_, buffer_, parser, error);
  if (error) return std::nullopt;
  if (parser.get()[http::field::expect] == "100-continue" && !write("HTTP/1.1 100 Continue\r\n\r\n"))
    return std::nullopt;
  http::read(stream_, buffer_, parser, error);
  if (error) return std::nullopt;
  return log_call(parser.get());
}

ApiServer::Connection::Call ApiServer::Connection::log_call(const http::request<http::string_body>& message) {
  Request request;
  request.target = std::string(message.target());
  const HttpTarget target = parse_target(request.target);
  request.method = std::string(message.method_string());
  if (request.method == "GET" && is_true(query_text(target.query, "watch"))) request.method = "WATCH";
  request.path = target.raw_path;
  request.query = target.query;
  request.body = message.body();
  request.authorization = std::string(message[http::field::authorization]);
  request.content_type = std::string(message[http::field::content_type]);
  request.user_agent = std::string(message[http::field::user_agent]);
  request.connection = number_;
  request.time = now();

  Call call{.method = request.method, .target = target, .body = request.body, .content_type = request.content_type};
  call.keeps_alive = message.keep_alive();
  MutexLock lock(server_.mutex);
  call.log_index = server_.requests.size();
  call.is_authorized = server_.tokens.count(bearer_token(request.authorization)) > 0 || has_client_certificate();
  call.releases = server_.releases;
  call.action = take_action(request);
  server_.requests.push_back(std::move(request));
  server_.note_change();
  return call;
}

std::optional<ApiServer::Action> ApiServer::Connection::take_action(const Request& request) {
  auto& misbehaviours = server_.misbehaviours;
  const auto found = std::find_if(misbehaviours.begin(), misbehaviours.end(), [&](const Misbehaviour& misbehaviour) {
    return (misbehaviour.method.empty() || misbehaviour.method == request.method) &&
           begins_with(request.path, misbehaviour.path_prefix) && misbehaviour.times > 0 &&
           request.body.find(misbehaviour.body_part) != std::string::npos;
  });
  if (found == misbehaviours.end()) return std::nullopt;
  Action action = found->action;
  if (--found->times == 0) misbehaviours.erase(found);
  return action;
}

bool ApiServer::Connection::has_client_certificate() {
  SSL* const ssl = stream_.native_handle();
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl), X509_free);
  return certificate != nullptr && SSL_get_verify_result(ssl) == X509_V_OK;
}

bool ApiServer::Connection::answer(const Call& call) {
  if (call.action) return misbehave(call, *call.action);
  return answer_plainly(call);
}

bool ApiServer::Connection::answer_plainly(const Call& call) {
  if (call.is_watch() && call.is_authorized) return watch(call);
  const Answer made = do_call(call);
  // An unknown path is not a missing object: the real server has no Status for it.
  if (made.body.is_string())
    return send_answer(call, made.code, made.body.get<std::string>(), {{"Content-Type", "text/plain"}});
  return send_answer(call, made.code, made.body.dump(), {});
}

bool ApiServer::Connection::misbehave(const Call& call, const Action& action) {
  return std::visit(
      Overloaded{
          [&](const AnswerStatus& answer) {
            return send_answer(call, answer.code, status_object(answer.code, answer.message, answer.reason).dump(),
                               answer.headers);
          },
          [&](const AnswerText& answer) {
            return send_answer(call, answer.code, answer.body, {{"Content-Type", answer.content_type}});
          },
          [&](const HalfBody&) {
            if (call.is_watch()) return answer_plainly(call);
            const Answer made = do_call(call);
            const std::string body = made.body.dump();
            note_answered(call, made.code);
            write(http_head(made.code, {}, static_cast<long>(body.size())) + body.substr(0, body.size() / 2));
            return false;
          },
          [&](const LoseAnswer&) {
            if (call.is_watch()) return answer_plainly(call);
            do_call(call);
            return false;
          },
          [&](const Drop&) { return false; },
          [&](const Silence& silence) {
            wait_silently(call, silence.time);
            return false;
          },
          [&](const Delay& delay) { return wait_silently(call, delay.time) && answer_plainly(call); },
          [&](const auto&) { return answer_plainly(call); },
      },
      action);
}

/// False if the connection is over.
bool ApiServer::Connection::wait_silently(const Call& call, const std::optional<std::chrono::milliseconds>& time) {
  const Time deadline = time ? now() + *time : Time::max();
  MutexLock lock(server_.mutex);
  while (server_.releases == call.releases && now() < deadline) {
    if (!wait(deadline)) return false;
  }
  return is_connected();
}

bool ApiServer::Connection::send_answer(const Call& call, unsigned code, const std::string& body,
                                        std::map<std::string, std::string> headers) {
  note_answered(call, code);
  if (!call.keeps_alive) headers.emplace("Connection", "close");
  return write(http_head(code, std::move(headers), static_cast<long>(body.size())) + body);
}

bool ApiServer::Connection::write(const std::string& text) {
  boost::system::error_code error;
  boost::asio::write(stream_, boost::asio::buffer(text), error);
  return !error;
}

Answer ApiServer::Connection::do_call(const Call& call) {
  if (!call.is_authorized) return {401, status_object(401, "Unauthorized")};
  MutexLock lock(server_.mutex);
  std::string path = call.target.path;
  const bool is_binding = path.ends_with(kBinding);
  if (is_binding) path.resize(path.size() - kBinding.size());
  const auto location = server_.store.locate(path);
  const bool has_bindings = location && location->collection().kind == "Pod" && !location->name.empty();
  if (!location || (is_binding && !has_bindings)) return {404, Json("404 page not found\n")};
  Answer made = is_binding ? bind_in_store(call, *location) : do_in_store(call, *location);
  server_.note_change();
  return made;
}

Answer ApiServer::Connection::bind_in_store(const Call& call, const ObjectStore::Location& location) {
  if (call.method != "POST") return {405, status_object(405, call.method + " is not for this path")};
  const Json body = Json::parse(call.body, nullptr, false);
  if (body.is_discarded()) return {400, status_object(400, "the body is not JSON")};
  return server_.store.bind(location, body);
}

Answer ApiServer::Connection::do_in_store(const Call& call, const ObjectStore::Location& location) {
  const bool is_collection = location.name.empty();
  ObjectStore& store = server_.store;
  if (!query_text(call.target.query, "labelSelector").empty())
    return {400, status_object(400, "no labelSelector here")};
  if (call.method == "GET") return is_collection ? store.list(location, call.target.query) : store.read(location);
  Json body = Json::parse(call.body.empty() && call.method == "DELETE" ? "{}" : call.body, nullptr, false);
  if (body.is_discarded()) return {400, status_object(400, "the body is not JSON")};
  const std::string type = call.content_type.substr(0, call.content_type.find(';'));
  const bool is_patch = call.method == "PATCH";
  const std::string wanted_type = is_patch ? "application/merge-patch+json" : "application/json";
  if (call.method != "DELETE" && type != wanted_type) return {415, status_object(415, "send " + wanted_type)};
  if (call.method == "POST" && is_collection) return store.create(location, std::move(body));
  if (call.method == "PUT" && !is_collection) return store.replace(location, std::move(body));
  if (is_patch && !is_collection) return store.merge_patch(location, body);
  if (call.method == "DELETE" && !is_collection) return store.erase(location, body);
  return {405, status_object(405, call.method + " is not for this path")};
}

bool ApiServer::Connection::watch(const Call& call) {
  std::vector<std::string> lines;
  std::optional<WatchState> state;
  Answer refused;
  {
    MutexLock lock(server_.mutex);
    auto begun = begin_watch(call, lines);
    if (auto* const begun_state = std::get_if<WatchState>(&begun)) state = std::move(*begun_state);
    if (!state) refused = std::get<Answer>(std::move(begun));
  }
  if (!state && refused.code == 410 && server_.options.expired_watch_gets_event) {
    note_answered(call, 200);
    return write(http_head(200, {}, -1) + http_chunk(event_line("ERROR", refused.body)) + http_chunk(""));
  }
  if (!state) {
    const bool is_text = refused.body.is_string();
    return send_answer(call, refused.code, is_text ? refused.body.get<std::string>() : refused.body.dump(),
                       {{"Content-Type", is_text ? "text/plain" : "application/json"}});
  }

  if (!write(http_head(200, {}, -1))) return false;
  {
    MutexLock lock(server_.mutex);
    server_.watched_paths[number_] = call.target.raw_path;
  }
  note_answered(call, 200);
  const std::unique_ptr<Connection, void (*)(Connection*)> watching(this, [](Connection* connection) {
    MutexLock lock(connection->server_.mutex);
    connection->server_.watched_paths.erase(connection->number_);
    connection->server_.note_change();
  });
  while (true) {
    bool is_over = false;
    {
      MutexLock lock(server_.mutex);
      is_over = take_lines(call, *state, lines);
      while (!is_over && lines.empty()) {
        if (!wait(state->deadline)) return false;
        is_over = take_lines(call, *state, lines);
      }
    }
    for (const std::string& line : lines) {
      if (!send_event(call, *state, line)) return false;
    }
    lines.clear();
    if (is_over) return write(http_chunk(""));
  }
}

std::variant<Answer, ApiServer::Connection::WatchState> ApiServer::Connection::begin_watch(
    const Call& call, std::vector<std::string>& lines) {
  ObjectStore& store = server_.store;
  const Query& query = call.target.query;
  const auto location = store.locate(call.target.path);
  if (!location) return Answer{404, Json("404 page not found\n")};
  if (!query_text(query, "labelSelector").empty()) return Answer{400, status_object(400, "no labelSelector here")};
  std::string error;
  FieldSelector selector(query_text(query, "fieldSelector"), location->collection(), error);
  const std::string from_text = query_text(query, "resourceVersion");
  const auto from = parse_number(from_text.empty() ? "0" : from_text);
  const std::string timeout = query_text(query, "timeoutSeconds");
  const auto timeout_s = parse_number(timeout.empty() ? "0" : timeout);
  if (!from || !timeout_s) error = "resourceVersion or timeoutSeconds is not a number";
  if (!error.empty()) return Answer{400, status_object(400, error)};
  if (*from > 0 && store.is_expired(*from)) return store.expired(*from);

  WatchState state{.location = *location, .selector = std::move(selector)};
  const auto& history = location->kept->history;
  if (*from == 0) {
    // From wherever the server likes: it begins with what there is.
    state.next_version = history.size();
    for (const auto& [key, object] : location->kept->objects) {
      if (location->contains(object) && state.selector.matches(object)) lines.push_back(event_line("ADDED", object));
    }
  }
  while (state.next_version < history.size() && history[state.next_version].resource_version <= *from) {
    ++state.next_version;
  }
  state.next_text = server_.sent_texts.size();
  state.bookmarks = server_.bookmarks;
  state.ends = server_.ends_of_watches;
  state.wants_bookmarks = is_true(query_text(query, "allowWatchBookmarks"));
  if (*timeout_s > 0 && !call.action_if<SilentWatch>()) state.deadline = now() + std::chrono::seconds(*timeout_s);
  return state;
}

bool ApiServer::Connection::take_lines(const Call& call, WatchState& state, std::vector<std::string>& lines) {
  const auto& history = state.location.kept->history;
  for (; state.next_version < history.size(); ++state.next_version) {
    const Version& version = history[state.next_version];
    if (!state.location.contains(version.object)) continue;
    if (std::string line = version_line(version, state.selector); !line.empty()) lines.push_back(std::move(line));
  }
  for (; state.next_text < server_.sent_texts.size(); ++state.next_text) {
    const auto& sent = server_.sent_texts[state.next_text];
    if (begins_with(call.target.raw_path, sent.path_prefix)) lines.push_back(sent.text);
  }
  const bool is_silent = call.action_if<SilentWatch>() != nullptr;
  const bool is_asked = std::exchange(state.bookmarks, server_.bookmarks) != server_.bookmarks;
  const bool is_over = !is_silent && (server_.ends_of_watches != state.ends || now() >= state.deadline);
  if (state.wants_bookmarks && (is_asked || is_over)) lines.push_back(event_line("BOOKMARK", bookmark(state)));
  // No last chunk may follow.
  if (is_silent && server_.releases != call.releases) shut_down();
  return is_over || is_shut_down_;
}

Json ApiServer::Connection::bookmark(const WatchState& state) const {
  const auto& kind = state.location.collection().kind;
  const std::string& path = state.location.collection().path;
  const std::string root = path.substr(0, path.rfind('/'));
  return {{"kind", kind},
          {"apiVersion", root.substr(root.find('/', 1) + 1)},
          {"metadata", {{"resourceVersion", std::to_string(server_.store.resource_version())}}}};
}

bool ApiServer::Connection::send_event(const Call& call, WatchState& state, const std::string& line) {
  const std::size_t number = state.sent_events++;
  const std::string half = line.substr(0, line.size() / 2);
  if (const auto* silent = call.action_if<SilentWatch>(); silent && number >= silent->after_events) return true;
  if (const auto* cut = call.action_if<CutWatch>(); cut && number == cut->after_events) {
    write(http_chunk(half));
    return false;
  }
  if (const auto* split = call.action_if<SplitWatch>(); split && number == split->after_events) {
    return write(http_chunk(half)) && wait_silently(call, split->time) && write(http_chunk(line.substr(half.size())));
  }
  return write(http_chunk(line));
}

}  // namespace topolet::testing
