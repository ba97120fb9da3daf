// A public header: include/chorale/problem.hpp.
#pragma once
#include <chorale/problem.hpp>
