// Keeps other containers off the sibling threads of a container's cores: the ground work, without a policy yet.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>

namespace topolet::smt {

enum class Isolate : std::uint8_t { kOff, kAnnotated, kExclusive };
enum class Round : std::uint8_t { kDeny, kIdleSibling };

struct PolicyOptions {
  Isolate isolate = Isolate::kAnnotated;
  Round round = Round::kIdleSibling;
  bool pair = false;
};

PolicyOptions read_options(const sdk::Options& options);

/// The CPUs of the topology that share a core with one of `cpus`, without these.
sdk::Set siblings_of(const topolet_topology& topology, const sdk::Set& cpus);

/// It scores nothing and withholds nothing; it says how far its work would go.
class Policy {
 public:
  Policy(const sdk::Options& options, const sdk::Host& host);

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;
  void notify(const topolet_event& event) const;

 private:
  PolicyOptions options_;
  sdk::Host host_;
};

}  // namespace topolet::smt
