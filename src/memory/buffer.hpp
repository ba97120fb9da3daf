// The public header include/chorale/buffer.hpp, with the Memory that lends the bytes.
#pragma once
#include <chorale/buffer.hpp>

#include "src/memory/memory.hpp"
