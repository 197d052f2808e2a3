#include "plugins/gpu/text.hpp"

#include <algorithm>
#include <charconv>

namespace topolet::gpu {
namespace {

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; });
  return lowered;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    if (const std::string_view content = trimmed(part); !content.empty()) parts.emplace_back(content);
  }
  return parts;
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value > 65535) return std::nullopt;
  return value;
}

sdk::Set parse_cpu_list(std::string_view text) {
  sdk::Set cpus;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto first = parse_number(std::string_view(part).substr(0, dash));
    const auto last = dash == part.size() ? first : parse_number(std::string_view(part).substr(dash + 1));
    if (!first || !last) continue;
    for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.insert(cpu);
  }
  return cpus;
}

std::optional<std::string> parse_pci_address(std::string_view text) {
  const std::string lowered = to_lower(text);
  std::string_view rest = lowered;
  std::string_view domain = "0000";
  if (std::count(lowered.begin(), lowered.end(), ':') == 2) {
    domain = rest.substr(0, rest.find(':'));
    rest.remove_prefix(domain.size() + 1);
    while (domain.size() > 4 && domain.front() == '0') domain.remove_prefix(1);
  }
  // Bus, device and function. Hyper-V and Intel VMD use domains of more than four digits.
  const bool is_well_formed = domain.size() >= 4 && domain.size() <= 8 && is_hex(domain) && rest.size() == 7 &&
                              rest[2] == ':' && rest[5] == '.' && is_hex(rest.substr(0, 2)) &&
                              is_hex(rest.substr(3, 2)) && rest[6] >= '0' && rest[6] <= '7';
  if (!is_well_formed) return std::nullopt;
  return std::string(domain) + ':' + std::string(rest);
}

std::optional<std::string> find_pci_address(std::string_view path) {
  constexpr std::string_view kAddressCharacters = "0123456789abcdefABCDEF:.";
  std::optional<std::string> last;
  std::size_t begin = 0;
  while ((begin = path.find_first_of(kAddressCharacters, begin)) != std::string_view::npos) {
    const std::size_t end = std::min(path.find_first_not_of(kAddressCharacters, begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    // Without a domain it could be anything, such as the time of day.
    if (part.size() >= 12) {
      if (auto address = parse_pci_address(part)) last = std::move(address);
    }
    begin = end;
  }
  return last;
}

std::optional<std::string_view> match_pattern(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == text ? std::optional<std::string_view>(std::string_view()) : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (text.size() <= before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view middle = text.substr(before.size(), text.size() - before.size() - after.size());
  return middle.find('/') == std::string_view::npos ? std::optional(middle) : std::nullopt;
}

std::string fill_pattern(std::string_view pattern, std::string_view star) {
  const std::size_t at = pattern.find('*');
  if (at == std::string_view::npos) return std::string(pattern);
  return std::string(pattern.substr(0, at)) + std::string(star) + std::string(pattern.substr(at + 1));
}

std::string printable(std::string_view text, std::size_t longest) {
  std::string clean(text.substr(0, longest));
  std::replace_if(
      clean.begin(), clean.end(), [](char letter) { return letter < ' ' || letter > '~'; }, '?');
  return text.size() > longest ? clean + "..." : clean;
}

}  // namespace topolet::gpu
