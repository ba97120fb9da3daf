#include "tests/fuzz/mutation.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>

namespace chorale::test {
namespace {

constexpr std::size_t most_bytes = 1 << 16;  // limits the size of inputs, which grow when parts are repeated

class Mutator {
 public:
  Mutator(std::span<const std::string> inputs, std::mt19937_64& chance) : inputs_(inputs), chance_(chance) {
    text_ = inputs_[below(inputs_.size())];
  }

  std::string changed() {
    for (std::size_t changes = 1 + below(1 + below(5)); changes > 0; --changes) change();
    if (text_.size() > most_bytes) text_.resize(most_bytes);
    return std::move(text_);
  }

 private:
  std::size_t below(std::size_t bound) { return bound < 2 ? 0 : static_cast<std::size_t>(chance_() % bound); }
  std::size_t place() { return below(text_.size()); }
  std::size_t short_length() { return 1 + below(std::size_t{1} << below(8)); }
  std::string piece_of(const std::string& text) {
    const std::size_t from = below(text.size());
    return text.substr(from, short_length());
  }

  void change() {
    if (text_.empty()) text_ = "0";
    switch (below(10)) {
      case 0: text_[place()] ^= static_cast<char>(1 << below(8)); break;
      case 1: text_[place()] = static_cast<char>(below(256)); break;
      case 2: text_.erase(place(), short_length()); break;
      case 3: text_.insert(place(), piece_of(text_)); break;
      case 4: text_.resize(place()); break;
      case 5: text_.insert(place(), piece_of(inputs_[below(inputs_.size())])); break;
      case 6: splice(); break;
      case 7: replace_number(); break;
      case 8: replace_integer(); break;
      case 9: repeat(); break;
    }
  }

  // Joins the beginning of this input and the end of another input.
  void splice() {
    const std::string& other = inputs_[below(inputs_.size())];
    text_.resize(place());
    text_ += other.substr(below(other.size()));
  }

  // Replaces a decimal number by a number from a list of special values.
  void replace_number() {
    constexpr std::array numbers{"0",
                                 "-1",
                                 "1",
                                 "2",
                                 "255",
                                 "65536",
                                 "2147483647",
                                 "4294967296",
                                 "1e9",
                                 "1e308",
                                 "nan",
                                 "1e400",
                                 "-2147483649",
                                 "9223372036854775807",
                                 "inf",
                                 "0.5",
                                 "-0.0",
                                 "1e-400",
                                 "1000000000000",
                                 "-9223372036854775808",
                                 "99999999",
                                 "64",
                                 "1024",
                                 "18446744073709551615"};
    const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    const auto first = std::find_if(text_.begin() + static_cast<std::ptrdiff_t>(place()), text_.end(), digit);
    const auto last = std::find_if_not(first, text_.end(), digit);
    text_.replace(first, last, numbers[below(numbers.size())]);
  }

  // Replaces a binary integer by an integer from a list of special values.
  void replace_integer() {
    constexpr std::array<std::uint64_t, 10> integers{
        0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff, 0x7fffffffffffffff, 0xffffffffffffffff};
    const std::uint64_t integer = integers[below(integers.size())] - below(2);
    const std::size_t at = place(), width = std::min(std::size_t{1} << below(4), text_.size() - at);
    std::memcpy(text_.data() + at, &integer, width);
  }

  void repeat() {
    const std::string piece = piece_of(text_);
    std::string many;
    for (std::size_t times = 1 + below(300); times > 0 && many.size() < most_bytes; --times) many += piece;
    text_.insert(place(), many);
  }

  std::span<const std::string> inputs_;
  std::mt19937_64& chance_;
  std::string text_;
};

}  // namespace

std::string mutated(std::span<const std::string> inputs, std::mt19937_64& chance) {
  return Mutator(inputs, chance).changed();
}

}  // namespace chorale::test
