// What a caller asks of a collective, a Call, is public: include/chorale/communicator.hpp. A Problem (chorale/problem.hpp)
// is what remains of it for an algorithm: numbers of elements, without buffers.
#pragma once
#include <chorale/communicator.hpp>
