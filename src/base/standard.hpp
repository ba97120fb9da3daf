// The headers most sources begin with, read by the compiler once for a whole build (make PCH= reads them anew each time).
//
// They were a quarter of the time of compiling all (455 s, then 340). This is precompiled and put in front of every source by
// the Makefile; nobody includes it, and every source still includes what it uses.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
