// A helper for tests that expect a usage error. A usage error has three lines, or more if it lists several mistakes.
#pragma once
#include <algorithm>
#include <string>

#include "src/base/error.hpp"
#include "tests/catch.hpp"

namespace chorale::test {

// Returns the text of the usage error that the call throws, or "accepted" if it throws none.
template <class Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.exit() == Exit::usage);
    const std::string text = error.what();
    CHECK(std::count(text.begin(), text.end(), '\n') >= 2);
    return text;
  }
  return "accepted";
}

}  // namespace chorale::test
