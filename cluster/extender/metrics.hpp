// Prometheus metrics of the extender.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "cluster/api/api_client.hpp"

namespace topolet::extender {

/// The values that are read when metrics are scraped.
struct Numbers {
  bool leads = false;
  std::size_t nodes = 0;
  std::size_t stale_nodes = 0;
  std::size_t promises = 0;
  std::size_t kept = 0;
  std::size_t waiting = 0;
  std::uint64_t wake_ups = 0;
  /// Empty until the API server has answered.
  std::optional<std::size_t> missing_needed_rights;
  std::optional<std::size_t> missing_useful_rights;
  api::ApiClient::Counts requests;
};

/// Any thread.
class Metrics {
 public:
  Metrics();

  /// `call`: filter, prioritize, bind, preempt, other. `outcome`: one of a few words that this program chooses.
  void add_call(const std::string& call, const std::string& outcome, std::chrono::nanoseconds duration);
  void add_refused_client() { refused_clients_.Increment(); }
  /// In the text format.
  std::string text(const Numbers& now) const;

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Counter& refused_clients_;
};

}  // namespace topolet::extender
