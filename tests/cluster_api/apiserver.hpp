// A server for tests that a client takes for the Kubernetes API server: TLS, tokens, resourceVersions, lists in pages
// and watches, on 127.0.0.1. A test puts objects into it, looks at what the client asked and wrote, and tells it to
// fail in the ways that servers and networks do.
//
//   ApiServer server({.tokens = {"secret"}});
//   server.put("/api/v1/pods", {{"metadata", {{"namespace", "default"}, {"name", "web"}}}});
//   server.misbehave({.method = "GET", .path_prefix = "/api/v1/pods", .action = ApiServer::AnswerStatus{.code = 503}});
//   … a client with server.url(), server.ca_pem() and the token …
//   EXPECT_TRUE(server.wait_for([&] { return server.requests("WATCH", "/api/v1/pods").size() == 1; }));
//
// Speaks HTTP/1.1 with keep-alive, over TLS 1.2 or 1.3, without ALPN; JSON only, never compressed. GET, POST, PUT,
// PATCH (merge patch), DELETE, and GET with watch=1 or watch=true. Errors are objects of kind Status, except that an
// unknown path is 404 with plain text. `labelSelector` is refused with 400. The only subresource is the binding of a
// pod; others are unknown paths.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/clock.hpp"
#include "tests/cluster_api/certificates.hpp"
#include "tests/cluster_api/object_store.hpp"

namespace topolet::testing {

/// All functions may be called from any thread but for the constructor, the destructor, and stop() and start(), of
/// which only one may run at a time. What cannot be done at all (no port, no key) is a std::exception. The destructor
/// closes everything at once, whatever clients are doing.
///
/// Where a function takes a `collection`, it is a path that lists objects: "/api/v1/pods", or, for those of one
/// namespace,
/// "/api/v1/namespaces/NAMESPACE/pods". An object in metadata without a namespace is then in that one. An unknown path
/// is a std::invalid_argument.
class ApiServer {
 public:
  struct Options {
    std::set<std::string> tokens{};  ///< see set_tokens()
    std::vector<Collection> collections = default_collections();
    /// How a watch is told that its resourceVersion has expired: by an answer with the HTTP code 410, or by 200 and an
    /// event of type ERROR whose object is a Status of code 410. The real server does either.
    bool expired_watch_gets_event = true;
    /// The clock of times here and in versions, and of the length of a watch or a misbehaviour.
    Clock clock = {};
  };

  /// One request as it came.
  struct Request {
    std::string method{};         ///< "GET", or "WATCH" for a GET that watches
    std::string target{};         ///< as sent: "/api/v1/pods?limit=500"
    std::string path{};           ///< of the target, not decoded: "/api/v1/pods"
    Query query{};                ///< of the target, decoded
    std::string body{};           ///< as sent
    std::string authorization{};  ///< the header as sent: "Bearer secret"; empty if there is none
    std::string content_type{};
    std::string user_agent{};
    std::uint64_t connection = 0;  ///< the number of the connection, from 1
    /// The code of the answer, as soon as it is being sent; 0 until then, and for good where none is sent.
    unsigned answered = 0;
    std::chrono::steady_clock::time_point time{};
  };

  // Ways to misbehave. "Until told" is until release().

  /// Answers so, and does nothing else. The body is a Status.
  struct AnswerStatus {
    unsigned code = 500;
    std::map<std::string, std::string> headers{};  ///< {"Retry-After", "1"}: in seconds
    std::string message = "told to fail";
    std::string reason{};  ///< empty: Kubernetes' word for the code
  };
  /// Answers with a body that is what is given here, whatever the request is.
  struct AnswerText {
    std::string body = "<html>not JSON</html>";
    std::string content_type = "text/html";
    unsigned code = 200;
  };
  /// Does what is asked, and sends head and half of the body before it closes. Not for watches.
  struct HalfBody {};
  /// Does what is asked, and closes without any answer. Not for watches. If the connection has carried a request
  /// before, libcurl takes the end for one of an idle connection, and repeats the request over a new one by itself.
  struct LoseAnswer {};
  /// Closes without doing what is asked. See LoseAnswer for what libcurl makes of it.
  struct Drop {};
  /// Neither does what is asked nor answers; closes after `time`, or when told.
  struct Silence {
    std::optional<std::chrono::milliseconds> time{};
  };
  /// Begins to do what is asked after `time`, or when told.
  struct Delay {
    std::optional<std::chrono::milliseconds> time{};
  };
  /// Watches only: sends so many events, then half the line of the next one as soon as there is one, and closes.
  struct CutWatch {
    std::size_t after_events = 0;
  };
  /// Watches only: sends so many events, then half the line of the next one, its other half after `time` or when told,
  /// and goes on as usual.
  struct SplitWatch {
    std::size_t after_events = 0;
    std::optional<std::chrono::milliseconds> time{};
  };
  /// Watches only: sends the head and so many events, then nothing more, past timeoutSeconds too, as if the connection
  /// were dead; closes when told.
  struct SilentWatch {
    std::size_t after_events = 0;
  };
  using Action = std::variant<AnswerStatus, AnswerText, HalfBody, LoseAnswer, Drop, Silence, Delay, CutWatch,
                              SplitWatch, SilentWatch>;

  /// For which requests, and how many of them. A request takes the first misbehaviour that matches and has some left,
  /// before its authorization is looked at. One that is for watches only and matches something else is used up without
  /// effect, and so is one that is not for watches and matches a watch.
  struct Misbehaviour {
    std::string method{};       ///< as in Request, "WATCH" included; empty: any
    std::string path_prefix{};  ///< of Request::path; empty: any
    std::size_t times = 1;
    Action action;
    std::string body_part{};  ///< somewhere in Request::body; empty: any
  };

  ApiServer();
  explicit ApiServer(Options options);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  /// "https://127.0.0.1:PORT", the same as long as the server lives.
  std::string url() const;
  std::string ca_pem() const;
  /// The server's authority, which also issues client certificates that it takes instead of a token.
  const Ca& ca() const;
  /// Who is let in: requests with one of these in "Authorization: Bearer TOKEN", or over a connection with a client
  /// certificate of ca(). Others get 401. Holds for requests that come from now on; a watch that is open goes on.
  void set_tokens(std::set<std::string> tokens);

  // Objects.

  /// Serves another collection, or again one that was dropped.
  void add_collection(Collection collection);
  /// Requests to it get 404 as for any unknown path, as where a CustomResourceDefinition is missing.
  void drop_collection(const std::string& collection);
  /// Creates or replaces an object, always with a new resourceVersion. Fills in apiVersion, kind, and in metadata uid
  /// and creationTimestamp, where the object has none. Returns it as it is stored. Without a name, or a namespace where
  /// one is needed, it is a std::invalid_argument; nothing else is checked.
  Json put(const std::string& collection, Json object);
  /// False if there is none. `name_space` may also be part of `collection`.
  bool remove(const std::string& collection, const std::string& name, const std::string& name_space = "");
  std::optional<Json> get(const std::string& collection, const std::string& name,
                          const std::string& name_space = "") const;
  /// All versions ever stored, whoever wrote them, in order; of one namespace where the path has one.
  std::vector<Version> history(const std::string& collection) const;
  /// Every resourceVersion handed out until now has expired: a watch from there, and a list that is continued, get 410.
  /// Watches that are open go on.
  void compact();

  // Requests and watches of clients.

  std::vector<Request> requests() const;
  /// Those of one method (as in Request; empty: any) whose path begins so.
  std::vector<Request> requests(const std::string& method, const std::string& path_prefix = "") const;
  /// Watches whose head has been sent and that have not ended, of paths that begin so. One whose client went away ends
  /// within 20 ms.
  std::size_t open_watches(const std::string& path_prefix = "") const;
  /// Connections that are open, TLS established or not.
  std::size_t open_connections() const;
  /// Waits until `condition` is true; false if it is not after `timeout`. It is asked again whenever something here
  /// changed, on the caller's thread, and may call functions of the server.
  bool wait_for(const std::function<bool()>& condition,
                std::chrono::milliseconds timeout = std::chrono::minutes(1)) const;

  // Misbehaviour.

  void misbehave(Misbehaviour misbehaviour);
  /// Forgets those that have not been used up.
  void behave();
  /// Ends what waits until told: silences, delays and the like that began before this call.
  void release();
  /// Sends a text as it is to the open watches of paths that begin so, after the events that they are due.
  void send_to_watches(const std::string& path_prefix, const std::string& text);
  /// Sends a BOOKMARK to the open watches with allowWatchBookmarks. They get one at the end of timeoutSeconds, too.
  void send_bookmarks();
  /// Ends the open watches as if timeoutSeconds were over.
  void end_watches();
  /// While on, connections are accepted, but no byte is ever sent over those that are made from now on.
  void ignore_new_connections(bool on);
  /// Closes all connections in the middle of whatever they do. Has happened on return.
  void close_connections();
  /// Stops listening and closes all connections: clients are refused, while the port stays the server's.
  void stop();
  /// Listens again on the same port, with `certificate` if one is given, else with the one used before.
  void start(const std::optional<Certificate>& certificate = std::nullopt);
  /// stop() and start().
  void restart(const std::optional<Certificate>& certificate = std::nullopt);

 private:
  struct Impl;
  class Connection;
  std::unique_ptr<Impl> impl_;
};

}  // namespace topolet::testing
