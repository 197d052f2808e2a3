#include "cluster/api/http_loop.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace topolet::api {
namespace {

/// More than a page of a list has; the server's own limit for an object is 3 MiB.
constexpr std::size_t kMaxBodyBytes = 64 << 20;
constexpr long kConnectTimeoutMs = 5000;
/// A dead connection is noticed after this, where nothing was sent on it, and what was sent is not confirmed.
constexpr unsigned kConfirmTimeoutMs = 30'000;
/// Rotated authorities count after this.
constexpr long kCaCacheSeconds = 300;

CURLM* make_multi() {
  // Once for the process, and before there are threads that use it.
  static const CURLcode kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURLM* multi = kInitialized == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi == nullptr) throw std::runtime_error("libcurl cannot be initialized");
  return multi;
}

int set_socket_options(void*, curl_socket_t socket, curlsocktype) {
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kConfirmTimeoutMs, sizeof kConfirmTimeoutMs);
  return CURL_SOCKOPT_OK;
}

struct curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

/// "HOST" and "PORT" of an URL, the host with its brackets.
std::pair<std::string, std::string> address_in(const std::string& url) {
  const std::size_t scheme = url.find("://");
  std::string rest = scheme == std::string::npos ? url : url.substr(scheme + 3);
  rest = rest.substr(0, rest.find('/'));
  const std::size_t bracket = rest.find(']');
  const std::size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon == std::string::npos) return {rest, url.starts_with("http://") ? "80" : "443"};
  return {rest.substr(0, colon), rest.substr(colon + 1)};
}

}  // namespace

struct HttpLoop::Transfer {
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    curl_slist_free_all(connect_to);
  }

  template <class Value>
  void set(CURLoption option, Value value) {
    // Only options that this libcurl does not have fail, and without memory nothing works anyway.
    curl_easy_setopt(easy, option, value);
  }
  void set_server(const ApiServer& server, const std::string& path);
  void set_pem(const Pem& pem, CURLoption as_blob, CURLoption as_file) {
    if (!pem.text.empty()) {
      struct curl_blob blob = blob_of(pem.text);
      set(as_blob, &blob);
    } else if (!pem.file.empty()) {
      set(as_file, pem.file.c_str());
    }
  }
  bool is_stream() const { return on_data != nullptr; }
  int status() const {
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return static_cast<int>(code);
  }
  std::size_t take(std::string_view data) {
    if (is_aborted) return 0;
    if (is_stream() && status() == 200) {
      on_data(data);
    } else if (body.size() + data.size() > kMaxBodyBytes) {
      return 0;
    } else {
      body += data;
    }
    return data.size();
  }
  /// Sets the message that libcurl itself would give.
  void note_time_out() {
    curl_off_t received_bytes = 0;
    curl_easy_getinfo(easy, CURLINFO_SIZE_DOWNLOAD_T, &received_bytes);
    const auto end = fmt::format_to_n(message.data(), message.size() - 1,
                                      "Operation timed out after {} milliseconds with {} bytes received",
                                      timeout.count(), received_bytes);
    *end.out = '\0';
  }
  static std::size_t write(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Transfer*>(self)->take({data, size * count});
  }
  HttpAnswer answer(CURLcode result) {
    HttpAnswer answer;
    answer.status = status();
    answer.body = std::move(body);
    curl_off_t seconds = 0;
    curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) answer.retry_after = std::chrono::seconds(seconds);
    // A truncated answer is treated as none.
    if (result != CURLE_OK) {
      answer.status = 0;
      answer.error = message[0] != '\0' ? message.data() : curl_easy_strerror(result);
      curl_off_t until_sending = 0;
      long sent_bytes = 0;
      curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &until_sending);
      curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent_bytes);
      answer.was_sent = until_sending > 0 || sent_bytes > 0;
    }
    return answer;
  }

  CURL* easy = curl_easy_init();
  curl_slist* headers = nullptr;
  curl_slist* connect_to = nullptr;
  std::array<char, CURL_ERROR_SIZE> message{};
  bool is_aborted = false;
  std::chrono::milliseconds timeout{0};
  std::pair<Time, std::uint64_t> time_out_timer;
  std::string sent_body;
  std::string body;
  OnDone on_done;
  OnData on_data;
};

void HttpLoop::Transfer::set_server(const ApiServer& server, const std::string& path) {
  std::string url = server.url;
  if (!server.tls_server_name.empty()) {
    const auto [host, port] = address_in(url);
    connect_to =
        curl_slist_append(nullptr, fmt::format("{}:{}:{}:{}", server.tls_server_name, port, host, port).c_str());
    set(CURLOPT_CONNECT_TO, connect_to);
    url = fmt::format("https://{}:{}", server.tls_server_name, port);
  }
  set(CURLOPT_URL, (url + path).c_str());
  set_pem(server.ca, CURLOPT_CAINFO_BLOB, CURLOPT_CAINFO);
  set_pem(server.client_certificate, CURLOPT_SSLCERT_BLOB, CURLOPT_SSLCERT);
  set_pem(server.client_key, CURLOPT_SSLKEY_BLOB, CURLOPT_SSLKEY);
  set(CURLOPT_CA_CACHE_TIMEOUT, kCaCacheSeconds);
  if (server.skips_verification) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!server.proxy_url.empty()) set(CURLOPT_PROXY, server.proxy_url.c_str());
}

HttpLoop::HttpLoop(Clock clock) : clock_(std::move(clock)), multi_(make_multi()) {}

HttpLoop::~HttpLoop() {
  stop();
  curl_multi_cleanup(multi_);
}

void HttpLoop::start() {
  thread_ = std::thread([this] { run(); });
}

void HttpLoop::stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  curl_multi_wakeup(multi_);
  if (thread_.joinable()) thread_.join();
  // The callbacks of these requests may refer to objects that are destroyed before this one.
  for (const auto& [number, transfer] : transfers_) curl_multi_remove_handle(multi_, transfer->easy);
  transfers_.clear();
  timers_.clear();
  take_tasks();
}

void HttpLoop::post(Task task) {
  {
    MutexLock lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  curl_multi_wakeup(multi_);
}

std::uint64_t HttpLoop::after(std::chrono::milliseconds delay, Task task) {
  timers_[{now() + delay, ++last_number_}] = std::move(task);
  return last_number_;
}

void HttpLoop::cancel(std::uint64_t timer) {
  const auto found =
      std::find_if(timers_.begin(), timers_.end(), [timer](const auto& entry) { return entry.first.second == timer; });
  if (found != timers_.end()) timers_.erase(found);
}

std::uint64_t HttpLoop::send(const ApiServer& server, const HttpRequest& request, OnDone on_done, OnData on_data) {
  auto transfer = std::make_unique<Transfer>();
  transfer->on_done = std::move(on_done);
  transfer->on_data = std::move(on_data);
  transfer->sent_body = request.body;
  for (const std::string& header : request.headers)
    transfer->headers = curl_slist_append(transfer->headers, header.c_str());
  transfer->set_server(server, request.path);
  transfer->set(CURLOPT_ERRORBUFFER, transfer->message.data());
  transfer->set(CURLOPT_HTTPHEADER, transfer->headers);
  transfer->set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (!request.body.empty()) {
    transfer->set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer->sent_body.size()));
    transfer->set(CURLOPT_POSTFIELDS, transfer->sent_body.c_str());
  }
  transfer->set(CURLOPT_PROTOCOLS_STR, "http,https");
  transfer->set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  transfer->set(CURLOPT_PIPEWAIT, 1L);
  transfer->set(CURLOPT_ACCEPT_ENCODING, "");
  transfer->set(CURLOPT_NOSIGNAL, 1L);
  transfer->set(CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  transfer->set(CURLOPT_TCP_KEEPALIVE, 1L);
  transfer->set(CURLOPT_TCP_KEEPIDLE, 30L);
  transfer->set(CURLOPT_TCP_KEEPINTVL, 10L);
  transfer->set(CURLOPT_SOCKOPTFUNCTION, &set_socket_options);
  transfer->set(CURLOPT_WRITEFUNCTION, &Transfer::write);
  transfer->set(CURLOPT_WRITEDATA, transfer.get());
  const std::uint64_t number = ++last_number_;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): libcurl keeps a pointer for its user, and a number is enough.
  transfer->set(CURLOPT_PRIVATE, reinterpret_cast<char*>(number));
  transfer->timeout = request.timeout;
  transfer->time_out_timer = {now() + request.timeout, number};
  timers_[transfer->time_out_timer] = [this, number] { time_out(number); };
  curl_multi_add_handle(multi_, transfer->easy);
  transfers_[number] = std::move(transfer);
  return number;
}

void HttpLoop::abort(std::uint64_t transfer) {
  const auto found = transfers_.find(transfer);
  if (found == transfers_.end()) return;
  found->second->is_aborted = true;
  // libcurl allows no removal from within its callbacks.
  post([this, transfer] {
    if (transfers_.contains(transfer)) take_transfer(transfer);
  });
}

std::vector<HttpLoop::Task> HttpLoop::take_tasks() {
  MutexLock lock(mutex_);
  return std::exchange(tasks_, {});
}

bool HttpLoop::is_stopping() const {
  MutexLock lock(mutex_);
  return stopping_;
}

std::chrono::milliseconds HttpLoop::until_next_timer() const {
  constexpr std::chrono::milliseconds kLongest = std::chrono::hours(1);
  if (timers_.empty()) return kLongest;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - now());
  return std::clamp(left, std::chrono::milliseconds(0), kLongest);
}

void HttpLoop::run_timers() {
  const Time now = this->now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto due = timers_.extract(timers_.begin());
    due.mapped()();
  }
}

void HttpLoop::end_transfers() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    char* number = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &number);
    end_transfer(reinterpret_cast<std::uint64_t>(number), result);
  }
}

void HttpLoop::time_out(std::uint64_t number) {
  transfers_.at(number)->note_time_out();
  end_transfer(number, CURLE_OPERATION_TIMEDOUT);
}

void HttpLoop::end_transfer(std::uint64_t number, int curl_code) {
  const std::unique_ptr<Transfer> ended = take_transfer(number);
  if (ended->is_aborted) return;
  ended->on_done(ended->answer(static_cast<CURLcode>(curl_code)));
}

/// One that has not ended.
std::unique_ptr<HttpLoop::Transfer> HttpLoop::take_transfer(std::uint64_t number) {
  std::unique_ptr<Transfer> taken = std::move(transfers_.extract(number).mapped());
  timers_.erase(taken->time_out_timer);
  curl_multi_remove_handle(multi_, taken->easy);
  return taken;
}

void HttpLoop::run() {
  while (!is_stopping()) {
    for (const Task& task : take_tasks()) task();
    run_timers();
    int running = 0;
    curl_multi_perform(multi_, &running);
    end_transfers();
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(until_next_timer().count()), nullptr);
  }
}

}  // namespace topolet::api
