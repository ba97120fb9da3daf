// Extends the public header include/chorale/buffer.hpp by Memory, which lends a buffer its bytes.
#pragma once
#include <chorale/buffer.hpp>

#include "src/memory/memory.hpp"
