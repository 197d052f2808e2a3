// Device nodes: where the hardware behind a path such as /dev/nvidia0 is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/gpu/kinds.hpp"
#include "plugins/gpu/nvidia.hpp"
#include "plugins/gpu/topology_names.hpp"

namespace topolet::gpu {

/// Borrows its arguments for its life.
class Paths {
 public:
  Paths(const TopologyNames& names, const std::vector<Kind>& kinds) : names_(names), kinds_(kinds), nvidia_(names) {}

  struct Found {
    std::vector<Spot> spots;  ///< several of a directory such as /dev/dri
    std::string missing;      ///< why there are none, of a path that should be hardware
  };
  Found find(std::string_view path) const;

  /// One device of a kind; `star` is what the '*' of its path stands for.
  std::optional<Spot> of_kind(const Kind& kind, std::string_view star) const;

  /// In words, of one that is not found.
  static std::string why_unknown(const Kind& kind);

  /// All that are known.
  std::vector<Spot> all(const Kind& kind) const;

 private:
  Found known(std::string_view path) const;
  std::optional<Spot> one(std::string_view path) const;
  std::optional<Spot> in_files(std::string_view path) const;
  std::optional<Spot> by_name(std::string_view path) const;
  std::optional<Spot> block(std::string_view name) const;
  std::optional<Spot> display(std::uint32_t card) const;
  std::vector<Spot> display_functions() const;
  std::vector<Spot> gpus_among(std::vector<Spot> displays) const;
  std::vector<Spot> below(std::string_view directory, std::string_view beginning) const;
  std::vector<Spot> directory(std::string_view path) const;
  std::string nowhere(std::string_view path) const;
  bool serves_kfd() const;
  std::string missing(std::string_view path) const;

  const TopologyNames& names_;
  const std::vector<Kind>& kinds_;
  const NvidiaGpus nvidia_;
};

}  // namespace topolet::gpu
