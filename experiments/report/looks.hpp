// Assigns looks, so that a series has the same color, dashes and mark in all figures of a page. The first `series_looks`
// series (canvas.hpp) have different looks. Series get their looks in the order in which they are first drawn.
#pragma once
#include <cstddef>
#include <map>
#include <string>

namespace chorale::report {

class Looks {
 public:
  std::size_t of(const std::string& series) { return numbers_.emplace(series, numbers_.size()).first->second; }

 private:
  std::map<std::string, std::size_t> numbers_;  // indices of the looks (canvas.hpp), by series
};

}  // namespace chorale::report
