// Which whole cores an isolated container gets, so that what stays idle beside it leaves the others what they need.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "plugins/smt/cores.hpp"
#include "plugins/smt/wish.hpp"

namespace topolet::smt {

/// One request for CPUs of its own that are to be isolated. Borrows the cores and the request.
class Isolation {
 public:
  Isolation(const Cores& cores, const topolet_request& request, const Wish& wish, const PolicyOptions& options)
      : cores_(cores), request_(request), wish_(wish), options_(options) {}

  /// 100 for a place where the container can be isolated, 50 if the others of its pod, which are placed together with
  /// it, could not be too; else 0. With a reason.
  sdk::Verdict judge(const topolet_candidate& candidate, const sdk::Set& whole) const;

  /// The part of `usable` to take CPUs from: whole cores, as many as leave the choice to others wherever that cannot
  /// make too many idle. Empty if isolation does not fit.
  sdk::Set narrowed(topolet_set usable) const;

  /// Why `siblings` beside `chosen` cannot be withheld from the `usable`: the pod's other containers need them. Else
  /// empty.
  std::string too_few_for_pod(topolet_set usable, const sdk::Set& chosen, const sdk::Set& siblings) const;

 private:
  std::size_t may_be_idle(topolet_set usable) const;
  std::size_t at_worst_idle(const sdk::Set& whole, bool apart) const;
  std::vector<sdk::Set> alike(const sdk::Set& whole) const;
  sdk::Set tight(const sdk::Set& whole) const;
  sdk::Set narrowed_to(const sdk::Set& whole, std::size_t idle) const;

  const Cores& cores_;
  const topolet_request& request_;
  const Wish& wish_;
  const PolicyOptions& options_;
};

}  // namespace topolet::smt
