// A public header: include/chorale/element.hpp.
#pragma once
#include <chorale/element.hpp>
