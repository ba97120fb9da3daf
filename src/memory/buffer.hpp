// Extends the public header include/chorale/buffer.hpp by the class Memory, which allocates the memory of a Buffer.
#pragma once
#include <chorale/buffer.hpp>

#include "src/memory/memory.hpp"
