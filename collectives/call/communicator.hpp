// The public header include/chorale/communicator.hpp, with the types that it only names.
#pragma once
#include <chorale/communicator.hpp>

#include "collectives/choice/selection.hpp"
#include "src/base/mpi.hpp"
#include "src/math/reduction.hpp"
#include "src/memory/buffer.hpp"
