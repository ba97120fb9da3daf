// A public header: include/chorale/named.hpp.
#pragma once
#include <chorale/named.hpp>
