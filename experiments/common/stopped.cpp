#include "experiments/common/stopped.hpp"

#include <cstdio>

#include "src/base/error.hpp"

namespace chorale {

void say_stopped(const std::string& done, const std::string& how_to_continue) {
  const Error stopped(Exit::runtime, "stopped", done, how_to_continue);
  std::fputs(("error: " + std::string(stopped.what()) + "\n").c_str(), stderr);
}

}  // namespace chorale
