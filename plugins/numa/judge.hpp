// Verdicts on the places of one request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plugins/numa/asked.hpp"
#include "plugins/numa/place.hpp"

namespace topolet::numa {

/// Compares the places of a request with each other. Borrows them, the request and the options.
class Judge {
 public:
  Judge(const topolet_topology& topology, const std::vector<Place>& places, const Asked& asked,
        const PolicyOptions& options);

  Verdict judge(const Place& place) const;

 private:
  /// Lowest and highest of one number over the places that compete with each other.
  struct Range {
    std::int64_t low = INT64_MAX;
    std::int64_t high = INT64_MIN;
    void include(std::int64_t value);
  };
  using Width = std::pair<std::size_t, std::size_t>;  ///< packages that count, nodes

  /// What is sought beyond what must be there.
  struct Wish {
    std::size_t cpus = 0;
    std::int64_t milli = 0;
    std::int64_t memory = 0;
    bool pages = false;
    bool cores = false;
  };

  void make_wish(const std::vector<Place>& places);
  bool has_cpus(const Place& place) const;    ///< if the machine were empty
  bool could_hold(const Place& place) const;  ///< if the machine were empty
  bool holds(const Place& place) const;       ///< what must be there
  bool is_aligned(const Place& place) const;
  /// Thousandths of what is asked for that a place where the container can run lacks; 0: it has all.
  std::int64_t lacking(const Place& place) const;
  /// What the strategy goes by.
  std::int64_t measure(const Place& place) const;
  /// Exclusive CPUs there would leave the shared containers fewer than they ask for.
  bool crowds_out(const Place& place) const;
  /// Of machines that do not tell: packages, which are farther apart than the nodes inside.
  std::uint32_t distance_of(const Place& place) const;
  Width width_of(const Place& place) const;

  bool is_named(const Place& place) const;
  std::string refusal(const Place& place) const;
  std::string cpu_shortage(const Place& place) const;
  std::string memory_shortage(const Place& place) const;
  std::string praise(const Place& place) const;
  std::string complaint(const Place& place) const;
  std::int32_t for_nodes(const Place& place) const;
  std::int32_t for_strategy(const Place& place) const;
  std::string whose_strategy(const Place& place) const;
  Verdict weigh(const Place& place) const;

  const Asked& asked_;
  const PolicyOptions& options_;
  bool by_socket_ = false;  ///< nodes of one package are as good as one node
  bool distances_known_ = false;
  bool some_lack_ = false;
  bool wide_for_memory_ = false;  ///< the narrowest is so wide for the memory's sake
  Wish wish_;
  std::size_t widest_ = 0;
  std::size_t narrowest_ = SIZE_MAX;        ///< nodes that could hold the demand on an empty machine
  std::size_t fewest_packages_ = SIZE_MAX;  ///< that many nodes have at least
  std::map<Width, Range> distances_;
  std::map<std::pair<Width, std::uint32_t>, Range> measures_;  ///< by width and distance
};

}  // namespace topolet::numa
