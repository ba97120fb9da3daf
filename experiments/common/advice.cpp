#include "experiments/common/advice.hpp"

#include <fmt/format.h>

namespace chorale {

std::string program() { return program_invocation_name; }

std::string command_on(std::int64_t ranks, const std::string& words) {
  return (ranks > 1 ? fmt::format("mpirun -n {} ", ranks) : "") + program() + " " + words;
}

}  // namespace chorale
