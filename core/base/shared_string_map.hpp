// A map that its copies share.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace topolet {

/// std::map<std::string, std::string> for values that are copied often and hardly ever changed: a copy shares the
/// entries, and a change makes entries of its own.
class SharedStringMap {
 public:
  using Map = std::map<std::string, std::string>;
  using value_type = Map::value_type;
  using const_iterator = Map::const_iterator;

  SharedStringMap() = default;
  SharedStringMap(Map map)  // NOLINT(google-explicit-constructor): it is such a map
      : map_(map.empty() ? nullptr : std::make_shared<const Map>(std::move(map))) {}
  SharedStringMap(std::initializer_list<value_type> entries) : SharedStringMap(Map(entries)) {}

  operator const Map&() const { return map(); }  // NOLINT(google-explicit-constructor): it is such a map
  const_iterator begin() const { return map().begin(); }
  const_iterator end() const { return map().end(); }
  const_iterator find(const std::string& key) const { return map().find(key); }
  const std::string& at(const std::string& key) const { return map().at(key); }
  std::size_t count(const std::string& key) const { return map().count(key); }
  std::size_t size() const { return map().size(); }
  bool empty() const { return map_ == nullptr; }

  void erase(const std::string& key) {
    if (count(key) == 0) return;
    Map changed = map();
    changed.erase(key);
    *this = std::move(changed);
  }

  friend bool operator==(const SharedStringMap& a, const SharedStringMap& b) {
    return a.map_ == b.map_ || a.map() == b.map();
  }

 private:
  const Map& map() const {
    static const Map kEmpty;
    return map_ != nullptr ? *map_ : kEmpty;
  }

  std::shared_ptr<const Map> map_;  ///< null if empty
};

}  // namespace topolet
