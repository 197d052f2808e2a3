// The minor version of the ABI in which each value that plugins are shown exists first, and what plugins of earlier
// minors are shown instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace topolet::plugin {

/// An enumeration, or a set of flags, whose values plugins are shown.
enum class AbiValues : std::uint8_t {
  kAsks,
  kCacheKind,
  kCertainty,
  kCpuSource,
  kDomainKind,
  kEntryFlags,
  kEventFlags,
  kEventKind,
  kMode,
  kOccasion,
  kOsDeviceKind,
  kPickStage,
  kPurpose,
  kQos,
  kRequestFlags,
  kWhyShared,
};

/// The first minor of every value. Adding a value that is out of range does not compile in a constant, and throws
/// std::out_of_range elsewhere.
class ValuesByMinor {
 public:
  /// `host_minor`: the newest minor, which no plugin is taken to be above.
  constexpr explicit ValuesByMinor(std::uint32_t host_minor) : host_minor_(host_minor) {
    for (Set& set : sets_) set.first_minor.fill(kInNoMinor);
  }

  /// Says that these values exist since `minor`; of a set of flags, each is one bit.
  template <class... Values>
  constexpr ValuesByMinor& add(AbiValues of, std::uint32_t minor, Values... values) {
    ((set(of).first_minor.at(place_of(of, static_cast<std::uint32_t>(values))) = minor), ...);
    return *this;
  }
  /// Says what is shown in the place of a value that a plugin does not know. Without, such a value is not shown at all.
  constexpr ValuesByMinor& show_instead(AbiValues of, std::int32_t value) {
    set(of).instead = value;
    return *this;
  }

  constexpr std::uint32_t host_minor() const { return host_minor_; }
  constexpr ValuesByMinor& set_host_minor(std::uint32_t minor) {
    host_minor_ = minor;
    return *this;
  }
  /// kInNoMinor for a value that was not added.
  constexpr std::uint32_t first_minor_of(AbiValues of, std::int32_t value) const {
    const Set& all = sets_[static_cast<std::size_t>(of)];
    const auto place = static_cast<std::uint32_t>(value);
    return place < all.first_minor.size() ? all.first_minor[place] : kInNoMinor;
  }
  constexpr std::optional<std::int32_t> shown_instead(AbiValues of) const {
    return sets_[static_cast<std::size_t>(of)].instead;
  }

  static constexpr std::uint32_t kInNoMinor = UINT32_MAX;

 private:
  static constexpr std::size_t kMostValues = 64;

  /// Enumerators by their value, flags by the number of their bit.
  struct Set {
    std::array<std::uint32_t, kMostValues> first_minor{};
    std::optional<std::int32_t> instead;
  };

  static constexpr std::size_t place_of(AbiValues of, std::uint32_t value) {
    const bool is_flag = of == AbiValues::kEntryFlags || of == AbiValues::kEventFlags || of == AbiValues::kRequestFlags;
    if (!is_flag) return value;
    std::size_t bit = 0;
    while (bit < kMostValues && (std::uint64_t{1} << bit) != value) ++bit;
    return bit;
  }

  constexpr Set& set(AbiValues of) { return sets_.at(static_cast<std::size_t>(of)); }

  std::uint32_t host_minor_;
  std::array<Set, static_cast<std::size_t>(AbiValues::kWhyShared) + 1> sets_{};
};

/// Those of this host.
extern const ValuesByMinor kValuesByMinor;

/// The values that a plugin of one minor version knows. A value type; the table must outlive it.
class KnownValues {
 public:
  /// All that this host knows.
  KnownValues() : KnownValues(kValuesByMinor, kValuesByMinor.host_minor()) {}
  KnownValues(const ValuesByMinor& table, std::uint32_t minor);

  std::uint32_t minor() const { return minor_; }
  /// Returns all that the host knows.
  KnownValues of_host() const { return {*table_, table_->host_minor()}; }

  bool has(AbiValues of, std::int32_t value) const { return table_->first_minor_of(of, value) <= minor_; }
  std::int32_t shown(AbiValues of, std::int32_t value) const;
  std::uint32_t shown_flags(AbiValues of, std::uint32_t flags) const;
  std::uint32_t first_minor_of(AbiValues of, std::int32_t value) const { return table_->first_minor_of(of, value); }

 private:
  const ValuesByMinor* table_;
  std::uint32_t minor_;
};

/// Translates the values of one view, and knows the plugins that can be shown it.
class ValueTranslator {
 public:
  explicit ValueTranslator(const KnownValues& known) : known_(known) {}

  template <class Value>
  std::int32_t shown(AbiValues of, Value value) {
    const std::int32_t shown = known_.shown(of, static_cast<std::int32_t>(value));
    count(known_.first_minor_of(of, shown));
    return shown;
  }
  std::uint32_t shown_flags(AbiValues of, std::uint32_t flags);

  /// Returns the minor from which on plugins know all values that were shown.
  std::uint32_t newest_minor() const { return newest_minor_; }
  /// Forgets what was shown so far.
  void clear() { newest_minor_ = 0; }

 private:
  void count(std::uint32_t minor) { newest_minor_ = minor > newest_minor_ ? minor : newest_minor_; }

  KnownValues known_;
  std::uint32_t newest_minor_ = 0;
};

}  // namespace topolet::plugin
