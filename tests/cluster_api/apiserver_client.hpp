// Clients of the stand-in for the API server, which ask as directly as libcurl lets them, and a server to ask.
#pragma once

#include <curl/curl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <stdexcept>
#include <thread>

#include "core/base/mutex.hpp"
#include "tests/cluster_api/apiserver.hpp"
#include "tests/support/manual_clock.hpp"

namespace topolet::testing {

inline const std::string kPods = "/api/v1/pods";
inline const std::string kWebPods = "/api/v1/namespaces/web/pods";
inline const std::string kNodes = "/api/v1/nodes";
inline const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/web/leases";
inline const std::string kTopologies = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

struct Reply {
  CURLcode result = CURLE_OK;
  long code = 0;
  std::string text{};
  std::string headers{};

  Json json() const { return Json::parse(text, nullptr, false); }
  std::string reason() const { return json().value("reason", ""); }
};

/// One handle, so that connections are kept as a client keeps them.
class Client {
 public:
  explicit Client(const ApiServer& server) : url_(server.url()), ca_pem_(server.ca_pem()) {}
  ~Client() {
    curl_easy_cleanup(handle_);
    curl_multi_cleanup(multi_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Reply send_text(const std::string& method, const std::string& target, const std::string& body) {
    curl_easy_reset(handle_);
    Reply reply;
    set(CURLOPT_URL, (url_ + target).c_str());
    set(CURLOPT_CUSTOMREQUEST, method.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, timeout_ms);
    set_trust();
    const auto append = +[](char* data, std::size_t size, std::size_t count, void* text) {
      static_cast<std::string*>(text)->append(data, size * count);
      return size * count;
    };
    set(CURLOPT_HEADERFUNCTION, append);
    set(CURLOPT_HEADERDATA, &reply.headers);
    set(CURLOPT_WRITEFUNCTION, on_data != nullptr ? on_data : append);
    set(CURLOPT_WRITEDATA, on_data != nullptr ? data_for : &reply.text);
    if (!body.empty()) {
      set(CURLOPT_POSTFIELDS, body.c_str());
      set(CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    }
    const std::string type = method == "PATCH" ? "application/merge-patch+json" : "application/json";
    curl_slist* headers = curl_slist_append(nullptr, ("Content-Type: " + type).c_str());
    if (!token.empty()) headers = curl_slist_append(headers, ("Authorization: Bearer " + token).c_str());
    set(CURLOPT_HTTPHEADER, headers);
    reply.result = perform();
    curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &reply.code);
    curl_slist_free_all(headers);
    return reply;
  }
  Reply send(const std::string& method, const std::string& target, const Json& body) {
    return send_text(method, target, body.dump());
  }
  Reply send(const std::string& method, const std::string& target) { return send_text(method, target, ""); }
  Reply get(const std::string& target) { return send("GET", target); }

  /// From another thread: closes the connection of the request that runs.
  void leave() {
    is_leaving_ = true;
    curl_multi_wakeup(multi_);
  }

  std::string token = "secret";
  Certificate own_certificate;
  long timeout_ms = 60000;
  curl_write_callback on_data = nullptr;
  void* data_for = nullptr;

 private:
  template <typename T>
  void set(CURLoption option, T value) {
    ASSERT_EQ(curl_easy_setopt(handle_, option, value), CURLE_OK);
  }
  /// As curl_easy_perform() does it, which nobody can wake.
  CURLcode perform() {
    curl_multi_add_handle(multi_, handle_);
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    while (!is_leaving_ && curl_multi_perform(multi_, &running) == CURLM_OK && running > 0) {
      curl_multi_poll(multi_, nullptr, 0, 1000, nullptr);
    }
    int left = 0;
    if (const CURLMsg* message = curl_multi_info_read(multi_, &left)) result = message->data.result;
    curl_multi_remove_handle(multi_, handle_);
    return result;
  }
  static curl_blob blob(const std::string& text) {
    return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
  }
  void set_trust() {
    const curl_blob ca = blob(ca_pem_);
    set(CURLOPT_CAINFO_BLOB, &ca);
    if (own_certificate.key_pem.empty()) return;
    const curl_blob certificate = blob(own_certificate.certificate_pem);
    const curl_blob key = blob(own_certificate.key_pem);
    set(CURLOPT_SSLCERT_BLOB, &certificate);
    set(CURLOPT_SSLCERTTYPE, "PEM");
    set(CURLOPT_SSLKEY_BLOB, &key);
    set(CURLOPT_SSLKEYTYPE, "PEM");
  }

  CURL* const handle_ = curl_easy_init();
  CURLM* const multi_ = curl_multi_init();
  std::atomic<bool> is_leaving_{false};
  const std::string url_;
  const std::string ca_pem_;
};

/// A watch of its own thread, and what it got until now.
class Watch {
 public:
  Watch(const ApiServer& server, const std::string& target) : client_(server) {
    client_.on_data = [](char* data, std::size_t size, std::size_t count, void* watch) {
      static_cast<Watch*>(watch)->take({data, size * count});
      return size * count;
    };
    client_.data_for = this;
    done_ = std::async(std::launch::async, [this, target] { return client_.get(target); });
  }
  ~Watch() { client_.leave(); }

  /// "ADDED a", by the objects' names, until there are so many; BOOKMARK and ERROR without a name.
  std::vector<std::string> events(std::size_t count) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (whole_lines() < count && changed_.wait_until(mutex_, deadline)) {
    }
    std::vector<std::string> events;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const Json event = Json::parse(text_.substr(begin, end - begin), nullptr, false);
      if (event.is_discarded()) {
        events.push_back("?");
        continue;
      }
      const std::string name = metadata_text(event.at("object"), "name");
      events.push_back(event.at("type").get<std::string>() + (name.empty() ? "" : ' ' + name));
    }
    return events;
  }
  std::string text_with(const std::string& part) {
    MutexLock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (text_.find(part) == std::string::npos && changed_.wait_until(mutex_, deadline)) {
    }
    return text_;
  }
  /// Waits for the end.
  Reply reply() { return done_.get(); }
  bool goes_on() const { return done_.wait_for(std::chrono::seconds(0)) != std::future_status::ready; }

 private:
  void take(const std::string& data) {
    MutexLock lock(mutex_);
    text_ += data;
    changed_.notify_all();
  }
  std::size_t whole_lines() const TOPOLET_REQUIRES(mutex_) {
    return static_cast<std::size_t>(std::count(text_.begin(), text_.end(), '\n'));
  }

  Client client_;
  Mutex mutex_;
  CondVar changed_;
  std::string text_ TOPOLET_GUARDED_BY(mutex_);
  std::future<Reply> done_;
};

inline Json pod(const std::string& name, const std::string& node = "n1") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"namespace", "web"}, {"name", name}}},
          {"spec", {{"nodeName", node}}}};
}

inline Json topology(const std::string& name, const std::string& available) {
  const Json cpu = {{"name", "cpu"}, {"capacity", "8"}, {"allocatable", "8"}, {"available", available}};
  return {{"apiVersion", "topology.node.k8s.io/v1alpha2"},
          {"kind", "NodeResourceTopology"},
          {"metadata", {{"name", name}}},
          {"zones", {{{"name", "node-0"}, {"type", "Node"}, {"resources", Json::array({cpu})}}}}};
}

inline std::vector<std::string> names(const Json& list) {
  std::vector<std::string> found;
  for (const Json& item : list.at("items")) found.push_back(metadata_text(item, "name"));
  return found;
}

inline std::string version_of(const Json& object) { return metadata_text(object, "resourceVersion"); }

class ApiServerTest : public ::testing::Test {
 protected:
  ApiServer::Options options() const { return {.tokens = {"secret"}, .clock = clock_.clock()}; }
  std::string now() { return version_of(client_.get(kPods).json()); }
  std::string watch_target(const std::string& path, const std::string& more = "") {
    return path + "?watch=1&resourceVersion=" + now() + more;
  }
  bool is_watched(std::size_t watches = 1) {
    return server_.wait_for([&] { return server_.open_watches() == watches; });
  }
  /// Lets time pass until the reply has come.
  Reply as_time_passes(std::future<Reply> reply) {
    while (reply.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
      clock_.advance(std::chrono::milliseconds(1));
    return reply.get();
  }
  Reply get_as_time_passes(const std::string& target) {
    return as_time_passes(std::async(std::launch::async, [&] { return client_.get(target); }));
  }
  void misbehave_once(ApiServer::Action action, const std::string& method = "", const std::string& path = "") {
    server_.misbehave({.method = method, .path_prefix = path, .action = std::move(action)});
  }

  ManualClock clock_;
  ApiServer server_{options()};
  Client client_{server_};
};

}  // namespace topolet::testing
