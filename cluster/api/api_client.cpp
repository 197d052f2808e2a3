#include "cluster/api/api_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cluster/api/json_fields.hpp"
#include "core/base/read_file.hpp"
#include "core/base/text.hpp"

namespace topolet::api {
namespace {

using nlohmann::json;

constexpr std::chrono::minutes kTokenLife{1};
/// A server that asks for more is asked again all the same.
constexpr std::chrono::seconds kLongestPause{120};
/// The same for a server that is away: when it is back, no request waits for long.
constexpr std::chrono::seconds kLongestOutage{5};
constexpr std::size_t kMaxTokenBytes = 1 << 20;
constexpr std::size_t kLongestMessage = 300;
constexpr std::size_t kLongestLine = 16 << 20;

/// Returns the message of a Status object, or of whatever else a proxy in between may have sent.
std::string message_in(const std::string& body) {
  const json status = json::parse(body, nullptr, false);
  if (const std::string message = text_field(status, "message"); !message.empty())
    return printable(message, kLongestMessage);
  return printable(trimmed(std::string_view(body).substr(0, body.find('\n'))), kLongestMessage);
}

std::string explained(const Grants& grants, int status, const std::string& message) {
  std::string advice;
  if (status == 401) {
    advice = "; the token or the client certificate is not known to the server";
    if (!grants.token.empty()) advice += fmt::format(" (where this is no pod, {} makes another one)", grants.token);
  }
  if (status == 403 && !grants.account.empty()) advice = advice_on_refusal(grants, message);
  return fmt::format("the API server answered {}: {}{}", status, message.empty() ? "without a message" : message,
                     advice);
}

/// Cuts what comes in pieces into lines.
class Lines {
 public:
  explicit Lines(ApiClient::OnLine on_line) : on_line_(std::move(on_line)) {}

  void take(std::string_view data) {
    while (!data.empty()) {
      const std::size_t end = data.find('\n');
      // A line that is too long is left out: its object cannot be one that the server stores.
      if (begun_.size() < kLongestLine) begun_ += data.substr(0, end);
      if (end == std::string_view::npos) return;
      data.remove_prefix(end + 1);
      const std::string line = std::exchange(begun_, {});
      if (!line.empty()) on_line_(line);
    }
  }

 private:
  ApiClient::OnLine on_line_;
  std::string begun_;
};

}  // namespace

void ApiClient::request(ApiRequest request, OnAnswer on_answer) {
  send(std::move(request), std::move(on_answer), false);
}

void ApiClient::send(ApiRequest request, OnAnswer on_answer, bool is_retry) {
  const auto now = this->now();
  if (paused_until_ > now && request.waits_when_asked_to) {
    loop_.after(std::chrono::ceil<std::chrono::milliseconds>(paused_until_ - now),
                [this, request = std::move(request), on_answer = std::move(on_answer), is_retry]() mutable {
                  send(std::move(request), std::move(on_answer), is_retry);
                });
    return;
  }
  if (request.is_still_wanted && !request.is_still_wanted()) {
    ApiAnswer answer;
    answer.error = "it was not sent, as it is too late for it";
    answer.was_sent = false;
    return on_answer(std::move(answer));
  }
  const HttpRequest http = http_request(request);
  loop_.send(
      server_, http,
      [this, request = std::move(request), on_answer = std::move(on_answer), is_retry](HttpAnswer answer) mutable {
        const bool is_unknown = answer.status == 401 && !server_.token_file.empty();
        ApiAnswer read = finish(request.verb, std::move(answer));
        if (!is_unknown || is_retry) return on_answer(std::move(read));
        token(true);
        send(std::move(request), std::move(on_answer), true);
      });
}

std::uint64_t ApiClient::watch(const std::string& path, std::chrono::seconds duration, OnLine on_line,
                               OnAnswer on_end) {
  ApiRequest request{.verb = "watch", .path = path};
  // The server ends it; if it does not, it is silent for another reason.
  request.timeout = duration + std::chrono::seconds(10);
  auto lines = std::make_shared<Lines>(std::move(on_line));
  return loop_.send(
      server_, http_request(request),
      [this, on_end = std::move(on_end)](HttpAnswer answer) {
        if (answer.status == 401) token(true);
        on_end(finish("watch", std::move(answer)));
      },
      [lines](std::string_view data) { lines->take(data); });
}

HttpRequest ApiClient::http_request(const ApiRequest& request) {
  HttpRequest http;
  http.method = request.method;
  http.path = request.path;
  http.timeout = request.timeout;
  http.headers = {"Accept: " + request.accept, "User-Agent: topolet"};
  if (!request.body.is_null()) {
    http.headers.push_back("Content-Type: " + request.content_type);
    http.body = request.body.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  if (const std::string& bearer = token(false); !bearer.empty())
    http.headers.push_back("Authorization: Bearer " + bearer);
  return http;
}

const std::string& ApiClient::token(bool read_again) {
  if (server_.token_file.empty()) return server_.token;
  const auto now = this->now();
  if (!read_again && !token_.empty() && now - token_read_ < kTokenLife) return token_;
  token_read_ = now;
  // The one that is known serves for as long as the file is being replaced.
  if (const Result<std::string> text = read_file(server_.token_file, kMaxTokenBytes)) token_ = trimmed(*text);
  return token_;
}

ApiAnswer ApiClient::finish(const std::string& verb, HttpAnswer answer) {
  {
    MutexLock lock(mutex_);
    ++counts_[{verb, answer.status}];
  }
  ApiAnswer read;
  read.status = answer.status;
  read.retry_after = answer.retry_after;
  read.was_sent = answer.was_sent;
  const bool is_gone = answer.status == 503;
  if ((answer.status == 429 || is_gone) && answer.retry_after)
    paused_until_ = now() + std::min(*answer.retry_after, is_gone ? kLongestOutage : kLongestPause);
  if (answer.status == 0) {
    read.error = fmt::format("no answer from {}: {}", server_.url, printable(answer.error, kLongestMessage));
  } else if (!read.ok()) {
    read.error = explained(grants_, answer.status, message_in(answer.body));
  } else if (!answer.body.empty()) {
    read.body = json::parse(answer.body, nullptr, false);
    if (read.body.is_discarded()) {
      read.status = 0;
      read.body = nullptr;
      read.error = fmt::format("the answer from {} is not JSON", server_.url);
    }
  }
  return read;
}

ApiClient::Counts ApiClient::counts() const {
  MutexLock lock(mutex_);
  return counts_;
}

std::string query_escaped(std::string_view text) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string escaped;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      escaped += c;
    } else {
      escaped += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return escaped;
}

}  // namespace topolet::api
