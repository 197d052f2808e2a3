#include "core/plugin_checker/exported_symbols.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

namespace topolet::plugin_checker {
namespace {

using FileHeader = ElfW(Ehdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

/// The bytes of a file; nothing read from it is believed before it is known to lie inside.
class ElfBytes {
 public:
  explicit ElfBytes(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  template <class T>
  std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::string text(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
    return {begin, std::find(begin, bytes_.end(), '\0')};
  }

  std::optional<Section> section(const FileHeader& header, std::uint64_t number) const {
    return at<Section>(header.e_shoff + number * header.e_shentsize);
  }

 private:
  std::vector<char> bytes_;
};

bool is_exported(const Symbol& symbol) {
  const unsigned binding = symbol.st_info >> 4U;
  const unsigned visibility = symbol.st_other & 3U;
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK || binding == STB_GNU_UNIQUE) &&
         (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

void collect(const ElfBytes& elf, const Section& table, const Section& names, std::vector<std::string>& exported) {
  for (std::uint64_t i = 0; i < table.sh_size / sizeof(Symbol); ++i) {
    const auto symbol = elf.at<Symbol>(table.sh_offset + i * sizeof(Symbol));
    if (!symbol) return;
    if (is_exported(*symbol)) exported.push_back(elf.text(names.sh_offset + symbol->st_name));
  }
}

}  // namespace

Result<std::vector<std::string>> exported_symbols(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const ElfBytes elf(std::vector<char>(std::istreambuf_iterator<char>(stream), {}));
  const auto header = elf.at<FileHeader>(0);
  const unsigned char word_size = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != word_size) {
    return Error{Code::kInvalidArgument, fmt::format("{} is not an ELF file for this machine", file.native())};
  }
  std::vector<std::string> exported;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto table = elf.section(*header, i);
    if (!table || table->sh_type != SHT_DYNSYM) continue;
    if (const auto names = elf.section(*header, table->sh_link)) collect(elf, *table, *names, exported);
  }
  std::sort(exported.begin(), exported.end());
  return exported;
}

}  // namespace topolet::plugin_checker
