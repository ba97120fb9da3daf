// Errors inside the library (chorale/error.hpp): checks of calls to its own functions, and the message printed when an error
// ends a rank.
#pragma once
#include <fmt/core.h>

#include <chorale/error.hpp>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace chorale {

// A format string that also records the source line of its call.
template <class... Args>
struct Sentence {
  template <class Text>
  consteval Sentence(const Text& t, std::source_location w = std::source_location::current()) : text(t), where(w) {}
  fmt::format_string<Args...> text;
  std::source_location where;
};

[[noreturn]] void misuse(std::string sentence, std::source_location where);

// Checks calls to the library's own functions, for example require(n > 0, "a ring needs a positive size, not {}", n).
template <class... Args>
void require(bool condition, Sentence<std::type_identity_t<Args>...> sentence, Args&&... args) {
  if (!condition) [[unlikely]]
    misuse(fmt::format(sentence.text, std::forward<Args>(args)...), sentence.where);
}

// Returns the text that main prints for an error that ended a rank: the error's lines and, unless it is a usage error, the
// source location. For a failed allocation (std::bad_alloc), the text includes the memory limits of this process.
std::string describe(const std::exception& error, int rank, int size);
int exit_code_of(const std::exception& error);

}  // namespace chorale
