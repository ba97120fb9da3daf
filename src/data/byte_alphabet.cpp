#include "src/data/byte_alphabet.hpp"

#include <array>
#include <map>

namespace chorale {
namespace {

std::string utf8(int code) {  // for codes below 2048
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

const std::array<std::string, 256>& alphabet() {
  static const auto table = [] {
    std::array<std::string, 256> letters;
    int next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
      letters[static_cast<std::size_t>(byte)] = utf8(prints ? byte : next++);
    }
    return letters;
  }();
  return table;
}

}  // namespace

std::string readable(const std::string& bytes) {
  std::string word;
  for (const char c : bytes) word += alphabet()[static_cast<unsigned char>(c)];
  return word;
}

std::optional<std::string> bytes_of_word(const std::string& word) {
  static const auto byte_of = [] {
    std::map<std::string, char> table;
    for (int byte = 0; byte < 256; ++byte) table[alphabet()[static_cast<std::size_t>(byte)]] = static_cast<char>(byte);
    return table;
  }();
  std::string bytes;
  for (std::size_t i = 0; i < word.size();) {
    const std::size_t length = static_cast<unsigned char>(word[i]) < 128 ? 1 : 2;
    const auto found = byte_of.find(word.substr(i, length));
    if (found == byte_of.end()) return {};
    bytes += found->second;
    i += length;
  }
  return bytes;
}

}  // namespace chorale
