// Few and plain statistics for measurements on a machine that does other things too.
#pragma once

#include <cstdint>
#include <vector>

namespace topolet::bench {

/// `values` must not be empty; `fraction` is 0 to 1 (0.5: the median).
double quantile(std::vector<double> values, double fraction);
double median(std::vector<double> values);

struct Interval {
  double low = 0;
  double middle = 0;
  double high = 0;
};

/// The median of what each place's numerator is of its denominator, with its 95 % interval (percentile bootstrap, 2,000
/// draws). What was measured side by side has the same place in both: a busy second weighs on both and cancels out.
Interval median_ratio(const std::vector<double>& numerators, const std::vector<double>& denominators,
                      std::uint64_t seed);

/// The median of what each place's first value is above its second, with its 95 % interval, in the same way.
Interval median_difference(const std::vector<double>& values, const std::vector<double>& others, std::uint64_t seed);

}  // namespace topolet::bench
