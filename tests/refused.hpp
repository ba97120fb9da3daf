// How a person is told that something cannot be: a usage error, of three lines whatever was wrong.
#pragma once
#include <algorithm>
#include <string>

#include "src/base/error.hpp"
#include "tests/catch.hpp"

namespace chorale::test {

// The text with which a call is refused; "accepted" when it is not.
template <class Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.exit() == Exit::usage);
    const std::string text = error.what();
    CHECK(std::count(text.begin(), text.end(), '\n') == 2);
    return text;
  }
  return "accepted";
}

}  // namespace chorale::test
