// One request over a socket of its own, as text in and text out.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "tests/http/silence.hpp"

namespace topolet::testing {

class HttpConnection {
 public:
  /// `address`: "127.0.0.1:1234"
  explicit HttpConnection(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    socket_.connect({boost::asio::ip::make_address(address.substr(0, colon)),
                     static_cast<unsigned short>(std::stoi(address.substr(colon + 1)))});
  }
  /// False if the other end has closed.
  bool send(const std::string& text) {
    boost::system::error_code error;
    boost::asio::write(socket_, boost::asio::buffer(text), error);
    return !error;
  }
  /// All until the other end closes.
  std::string read_all() {
    std::string text;
    boost::system::error_code error;
    boost::asio::read(socket_, boost::asio::dynamic_buffer(text), error);
    return received_ + text;
  }
  /// All up to and with `end`; less if the other end closes before.
  std::string read_until(const std::string& end) {
    boost::system::error_code error;
    const std::size_t size = boost::asio::read_until(socket_, boost::asio::dynamic_buffer(received_), end, error);
    std::string text = received_.substr(0, error ? received_.size() : size);
    received_.erase(0, text.size());
    return text;
  }
  /// Nothing has come that was not read, also no end.
  bool is_silent() { return received_.empty() && testing::is_silent(socket_.native_handle()); }
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_{context_};
  std::string received_;
};

/// The whole answer, head and body.
inline std::string http_get(const std::string& address, const std::string& path, const std::string& host = "localhost",
                            const std::string& method = "GET") {
  HttpConnection connection(address);
  connection.send(method + ' ' + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n");
  return connection.read_all();
}

}  // namespace topolet::testing
