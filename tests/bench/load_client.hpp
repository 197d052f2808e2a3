// The client whose calls are measured.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace topolet::bench {

struct Load {
  std::string path;  ///< "/service/method"
  std::size_t message_bytes = 0;
  std::size_t calls = 0;
  std::size_t concurrency = 1;
};

/// One connection, one thread (the caller's), any number of calls under way at a time.
class LoadClient {
 public:
  /// Connects to the socket. Throws if that fails.
  explicit LoadClient(const std::string& socket);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  /// Starts a new call whenever one has ended. The microseconds that each took, in the order in which they ended.
  /// Throws if one fails or is answered with anything but as many bytes as it sent.
  std::vector<double> run(const Load& load);

  /// Opens streams and reads nothing of them, as long as the client lives.
  void open_unread_streams(const std::string& path, std::size_t count);

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace topolet::bench
