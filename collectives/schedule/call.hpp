// A Call, the arguments of one collective, is public: include/chorale/communicator.hpp. An algorithm sees only a Problem
// (chorale/problem.hpp), which has the call's numbers of elements but no buffers.
#pragma once
#include <chorale/communicator.hpp>
