// A family of numbers that are looked at when somebody asks, for Prometheus.
#pragma once

#include <prometheus/metric_family.h>

#include <map>
#include <string>
#include <utility>

namespace topolet::metrics {

using Labels = std::map<std::string, std::string>;

/// A plain value.
class Table {
 public:
  Table(std::string name, std::string help, prometheus::MetricType type = prometheus::MetricType::Gauge)
      : family_{std::move(name), std::move(help), type, {}} {}

  Table& add(double value, const Labels& labels = {}) {
    prometheus::ClientMetric metric;
    for (const auto& [label, text] : labels) metric.label.push_back({label, text});
    const bool is_counter = family_.type == prometheus::MetricType::Counter;
    (is_counter ? metric.counter.value : metric.gauge.value) = value;
    family_.metric.push_back(std::move(metric));
    return *this;
  }
  const prometheus::MetricFamily& family() const { return family_; }

 private:
  prometheus::MetricFamily family_;
};

}  // namespace topolet::metrics
