// Shows the figures of several churns as one line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/bench/quality_sections.hpp"

namespace topolet::bench {

struct MeanAndSpread {
  double mean = 0;
  double spread = 0;  ///< standard deviation of the churns (n - 1); 0 of one churn
};

/// Computes them from the values that are a number; NaN if none is.
MeanAndSpread mean_and_spread(const std::vector<double>& values);

/// Prints a line as soon as it is known.
class TablePrinter {
 public:
  explicit TablePrinter(const std::string& title);
  ~TablePrinter();
  TablePrinter(const TablePrinter&) = delete;
  TablePrinter& operator=(const TablePrinter&) = delete;

  /// `by_seed`: at least one, all with the same figures as those of the lines before.
  void print(const Scene& scene, const std::vector<Figures>& by_seed);
  /// Says why a scene is not measured.
  void print_left_out(const Scene& scene, const std::string& why);

 private:
  static void print_name(const Scene& scene);

  bool has_head_ = false;
};

nlohmann::ordered_json to_json(const Scene& scene, const std::vector<Figures>& by_seed);

}  // namespace topolet::bench
