// A public header: include/chorale/schedule.hpp.
#pragma once
#include <chorale/schedule.hpp>
