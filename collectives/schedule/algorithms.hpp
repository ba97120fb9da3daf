// The table of algorithms is public: include/chorale/algorithm.hpp. Tests, `verify` and `show` cover all rows. A new
// algorithm needs its own file, and a declaration and a row in algorithms.cpp.
#pragma once
#include <chorale/algorithm.hpp>
