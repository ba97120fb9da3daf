// Error handling inside Chorale: argument checks for Chorale's own functions, and the message that is printed when an error
// ends a rank. chorale/error.hpp has the public part.
#pragma once
#include <fmt/core.h>

#include <chorale/error.hpp>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace chorale {

// A format string that also records the source location of the call.
template <class... Args>
struct Sentence {
  template <class Text>
  consteval Sentence(const Text& t, std::source_location w = std::source_location::current()) : text(t), where(w) {}
  fmt::format_string<Args...> text;
  std::source_location where;
};

[[noreturn]] void misuse(std::string sentence, std::source_location where);

// Checks a precondition of one of Chorale's functions, for example require(n > 0, "a ring needs a positive size, not {}",
// n).
template <class... Args>
void require(bool condition, Sentence<std::type_identity_t<Args>...> sentence, Args&&... args) {
  if (!condition) [[unlikely]]
    misuse(fmt::format(sentence.text, std::forward<Args>(args)...), sentence.where);
}

// Returns the message that main() prints for an error that ended a rank. The message contains the lines of the error. Unless
// the error is a usage error, the message also contains the source location. For a failed allocation (std::bad_alloc), the
// message includes the memory limits of this process.
std::string describe(const std::exception& error, int rank, int size);
int exit_code_of(const std::exception& error);

}  // namespace chorale
