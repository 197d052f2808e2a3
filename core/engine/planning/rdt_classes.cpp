#include "core/engine/planning/rdt_classes.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace topolet::engine {
namespace {

/// containerd: "RDT support is not enabled", or "RDT class … does not exist"; CRI-O: "RDT class …".
bool is_about_rdt(std::string_view message) {
  constexpr std::string_view kWord = "RDT";
  const auto is_same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  return std::search(message.begin(), message.end(), kWord.begin(), kWord.end(), is_same) != message.end();
}

}  // namespace

std::vector<std::string> RdtClasses::usable() const {
  std::vector<std::string> names = on_machine_();
  std::erase_if(names, [this](const std::string& name) { return refused_.count(name) > 0; });
  return names;
}

bool RdtClasses::note_refusal(const std::string& name, const std::string& message) {
  return is_about_rdt(message) && refused_.insert(name).second;
}

}  // namespace topolet::engine
