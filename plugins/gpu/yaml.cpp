#include "plugins/gpu/yaml.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "plugins/gpu/text.hpp"

namespace topolet::gpu {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;
constexpr std::string_view kMore = "|>&*!@`%";  // what begins with one of these is more YAML than is read here

struct Line {
  std::size_t number = 0;
  std::size_t indent = 0;
  std::string_view text;
};

[[noreturn]] void refuse(const Line& line, const std::string& why) {
  throw std::invalid_argument("line " + std::to_string(line.number) + ": " + why);
}

/// Up to the comment, which begins with a '#' after a space and outside quotes.
std::string_view without_comment(std::string_view text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (quote == '"' && letter == '\\') {
      ++i;
    } else if (quote != 0) {
      if (letter == quote) quote = 0;
    } else if ((letter == '"' || letter == '\'') && (i == 0 || std::string_view(" [{,:").find(text[i - 1]) < 5)) {
      quote = letter;
    } else if (letter == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return text.substr(0, i);
    }
  }
  return text;
}

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view raw = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), raw.size() + 1));
    const std::string_view content = trimmed(without_comment(raw));
    const Line line{number, raw.find_first_not_of(' '), content};
    if (content.empty()) continue;
    // Runtimes read the first document.
    const bool is_marker = line.indent == 0 && (content == "---" || content == "...");
    if (is_marker && !lines.empty()) break;
    if (is_marker || (line.indent == 0 && content.front() == '%' && lines.empty())) continue;
    if (raw[line.indent] == '\t') refuse(line, "indented with a tab");
    lines.push_back(line);
  }
  return lines;
}

/// Values within one line.
class Inline {
 public:
  explicit Inline(const Line& line) : line_(line), rest_(line.text) {}

  json whole() {
    json value = next("", 0);
    if (!rest_.empty()) refuse(line_, "'" + shown(rest_) + "' was not expected");
    return value;
  }

  /// The key at the front, quoted or not, if a ':' follows it; then rest() is what is behind that.
  bool take_key(std::string& key) {
    const std::string_view before = rest_;
    if (rest_.front() == '"' || rest_.front() == '\'') {
      key = quoted();
    } else {
      std::size_t colon = std::min(rest_.find(": "), rest_.find(":\t"));
      if (colon == std::string_view::npos && rest_.back() == ':') colon = rest_.size() - 1;
      const char first = rest_.front();
      const bool is_other = first == '[' || first == '{' || kMore.find(first) != std::string_view::npos;
      if (colon == std::string_view::npos || is_other) return false;
      key = trimmed(rest_.substr(0, colon));
      rest_.remove_prefix(colon);
    }
    rest_ = trimmed(rest_);
    const bool is_key =
        !rest_.empty() && rest_.front() == ':' && (rest_.size() == 1 || rest_[1] == ' ' || rest_[1] == '\t');
    if (is_key) rest_ = trimmed(rest_.substr(1));
    if (!is_key) rest_ = before;
    return is_key;
  }

  std::string_view rest() const { return rest_; }

 private:
  json next(std::string_view ends, int depth) {
    rest_ = trimmed(rest_);
    if (depth > kDeepest) refuse(line_, "nested too deeply");
    if (rest_.empty()) return nullptr;
    if (rest_.front() == '[') return sequence(depth);
    if (rest_.front() == '{') return mapping(depth);
    if (rest_.front() == '"' || rest_.front() == '\'') return quoted();
    if (kMore.find(rest_.front()) != std::string_view::npos) {
      refuse(line_, "'" + shown(rest_) + "' is more YAML than is read here");
    }
    const std::string_view plain = trimmed(rest_.substr(0, rest_.find_first_of(ends)));
    rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_of(ends)));
    if (plain.empty() || plain == "~" || plain == "null") return nullptr;
    return std::string(plain);
  }

  bool take(char letter) {
    rest_ = trimmed(rest_);
    if (rest_.empty() || rest_.front() != letter) return false;
    rest_ = trimmed(rest_.substr(1));
    return true;
  }

  json sequence(int depth) {
    json items = json::array();
    take('[');
    while (!take(']')) {
      items.push_back(next(",]", depth + 1));
      if (!take(',') && (rest_.empty() || rest_.front() != ']')) refuse(line_, "a list goes on beyond the line");
    }
    return items;
  }

  json mapping(int depth) {
    json pairs = json::object();
    take('{');
    while (!take('}')) {
      json key = next(":,}", depth + 1);
      if (!key.is_string() || !take(':')) refuse(line_, "a mapping goes on beyond the line, or a key has no ':'");
      pairs[key.get<std::string>()] = next(",}", depth + 1);
      if (!take(',') && (rest_.empty() || rest_.front() != '}')) refuse(line_, "a mapping goes on beyond the line");
    }
    return pairs;
  }

  std::string quoted() {
    const char quote = rest_.front();
    std::size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote) end += quote == '"' && rest_[end] == '\\' ? 2 : 1;
    // In single quotes two of them stand for one.
    while (quote == '\'' && end + 1 < rest_.size() && rest_[end + 1] == quote) {
      end += 2;
      while (end < rest_.size() && rest_[end] != quote) ++end;
    }
    if (end >= rest_.size()) refuse(line_, "a quote is not closed");
    const std::string_view inside = rest_.substr(0, end + 1);
    rest_ = trimmed(rest_.substr(end + 1));
    if (quote == '"') {
      const json read = json::parse(inside, nullptr, false);
      if (!read.is_string()) refuse(line_, "'" + shown(inside) + "' has an escape that is not read here");
      return read.get<std::string>();
    }
    std::string text;
    for (std::size_t i = 1; i < end; ++i) {
      text += inside[i];
      if (inside[i] == '\'') ++i;
    }
    return text;
  }

  const Line& line_;
  std::string_view rest_;
};

class Blocks {
 public:
  explicit Blocks(std::vector<Line> lines) : lines_(std::move(lines)) {}

  json whole() {
    if (lines_.empty()) return nullptr;
    json value = block(0);
    if (at_ < lines_.size())
      refuse(lines_[at_], "'" + shown(lines_[at_].text) + "' does not belong to what is above it");
    return value;
  }

 private:
  static bool is_item(const Line& line) { return line.text == "-" || line.text.starts_with("- "); }

  json block(int depth) {
    const Line& line = lines_[at_];
    if (depth > kDeepest) refuse(line, "nested too deeply");
    if (is_item(line)) return sequence(line.indent, depth);
    std::string key;
    if (Inline(line).take_key(key)) return mapping(line.indent, depth);
    ++at_;
    return Inline(line).whole();
  }

  json sequence(std::size_t indent, int depth) {
    json items = json::array();
    while (at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_])) {
      Line& line = lines_[at_];
      const std::string_view rest = trimmed(line.text.substr(1));
      if (rest.empty()) {
        ++at_;
        items.push_back(nested(indent, depth));
        continue;
      }
      // What follows the dash is a block of its own, as deep as it stands.
      line.indent += line.text.size() - rest.size();
      line.text = rest;
      items.push_back(block(depth + 1));
    }
    return items;
  }

  json mapping(std::size_t indent, int depth) {
    json pairs = json::object();
    while (at_ < lines_.size() && lines_[at_].indent == indent && !is_item(lines_[at_])) {
      Line line = lines_[at_];
      Inline content(line);
      std::string key;
      if (!content.take_key(key)) refuse(line, "'" + shown(line.text) + "' is no 'key: value'");
      ++at_;
      if (content.rest().empty()) {
        const bool is_list_below = at_ < lines_.size() && lines_[at_].indent == indent && is_item(lines_[at_]);
        pairs[key] = is_list_below ? sequence(indent, depth + 1) : nested(indent, depth);
      } else {
        line.text = content.rest();
        pairs[key] = Inline(line).whole();
      }
    }
    return pairs;
  }

  /// The block below that stands deeper, or null.
  json nested(std::size_t indent, int depth) {
    return at_ < lines_.size() && lines_[at_].indent > indent ? block(depth + 1) : json(nullptr);
  }

  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

}  // namespace

json read_yaml(std::string_view text) { return Blocks(lines_of(text)).whole(); }

}  // namespace topolet::gpu
