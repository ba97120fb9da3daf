// A public header: include/chorale/clock.hpp.
#pragma once
#include <chorale/clock.hpp>
