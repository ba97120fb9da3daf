// Includes the public header chorale/communicator.hpp and the definitions of the types that the public header only declares.
#pragma once
#include <chorale/communicator.hpp>

#include "collectives/choice/selection.hpp"
#include "src/base/mpi.hpp"
#include "src/math/reduction.hpp"
#include "src/memory/buffer.hpp"
