// A collection of objects on the API server, followed: listed once, and then watched.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/api/api_client.hpp"
#include "cluster/api/trouble_log.hpp"
#include "core/base/log.hpp"

namespace topolet::api {

/// On the loop's thread. Lists again where the server does not know the version any more (410), and tries again after
/// each failure, each time after a longer pause.
class Reflector {
 public:
  struct Options {
    std::string name;            ///< for the log: "the pods of node n1"
    std::string path;            ///< "/api/v1/pods"
    std::string field_selector;  ///< "spec.nodeName=n1"; empty: all
    std::chrono::seconds watch_duration{300};
    std::chrono::milliseconds first_pause{200};
    /// Up to a fifth more at random: not above five seconds, after which the server may be back.
    std::chrono::milliseconds longest_pause{4000};
    int page_size = 500;  ///< objects in one answer to a list
  };
  struct Handlers {
    /// Called with all objects: known ones that are not among them are gone.
    std::function<void(const std::vector<nlohmann::json>& objects)> on_list;
    /// If set, on_list gets nothing, and this gets each object of a list as soon as it has come, so that they are not
    /// all in memory at once. A list that fails begins again, from its first object.
    std::function<void(const nlohmann::json& object)> on_listed = {};
    /// `type`: ADDED, MODIFIED or DELETED.
    std::function<void(std::string_view type, const nlohmann::json& object)> on_change;
  };
  /// `client` must outlive it.
  Reflector(ApiClient& client, Options options, Handlers handlers, Log& log);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  void start() { list({}); }
  /// Returns true once the objects were listed.
  bool has_synced() const { return has_synced_; }
  /// Why it could not be listed or followed; empty: it could. After a failure it may be over before that is known here.
  const std::string& trouble() const { return trouble_.now(); }
  /// Returns true while changes are received, as far as is known here.
  bool is_watching() const { return watch_number_ != 0; }

 private:
  void list(const std::string& continue_token);
  void take_page(ApiAnswer answer);
  void watch();
  void take_line(std::string_view line);
  void end_watch(const ApiAnswer& answer);
  void fail(const std::string& why);
  void list_again();

  ApiClient& client_;
  const Options options_;
  const Handlers handlers_;
  TroubleLog trouble_;
  std::minstd_rand random_{std::random_device{}()};
  std::vector<nlohmann::json> pages_;
  std::string version_;  ///< resourceVersion of the newest that was seen; empty: it has to be listed
  std::string watch_problem_;
  bool has_synced_ = false;
  bool got_something_ = false;  ///< on the watch that is open
  std::chrono::milliseconds pause_{0};
  std::uint64_t watch_number_ = 0;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace topolet::api
