// The looks of a page: a series has the same color, dashes and mark in all figures of the page. The first
// `series_looks` series (canvas.hpp) have different looks. Looks are given in the order in which the series are first drawn.
#pragma once
#include <cstddef>
#include <map>
#include <string>

namespace chorale::report {

class Looks {
 public:
  std::size_t of(const std::string& series) { return numbers_.emplace(series, numbers_.size()).first->second; }

 private:
  std::map<std::string, std::size_t> numbers_;  // numbers of the looks (canvas.hpp), by series
};

}  // namespace chorale::report
