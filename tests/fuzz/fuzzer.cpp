// The entry points for libFuzzer, which tests/fuzz/run.py starts. FUZZ_TARGET names the fuzz target, and FUZZ_ROOT is the
// root of the repository. First, the target's valid inputs are written to the folder FUZZ_INPUTS.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "src/base/error.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/target.hpp"

namespace chorale::test {
namespace {

std::string from_environment(const char* name) {
  const char* const text = std::getenv(name);
  require(text, "{} is not set: start this program by make fuzz", name);
  return text;
}

const Target& chosen_target() {
  static const Target& target = target_named(from_environment("FUZZ_TARGET"));
  return target;
}

}  // namespace
}  // namespace chorale::test

extern "C" int LLVMFuzzerInitialize(int*, char***) try {
  using namespace chorale::test;
  std::size_t number = 0;
  for (const std::string& input : good_inputs(chosen_target(), from_environment("FUZZ_ROOT")))
    put_bytes(std::filesystem::path(from_environment("FUZZ_INPUTS")) / fmt::format("good-{}", number++), input);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  std::exit(2);
}

// libhdf5 leaks a few bytes when it refuses a damaged file.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5\n"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    chorale::test::chosen_target().run({reinterpret_cast<const char*>(data), size});
  } catch (const chorale::Error&) {}
  return 0;
}
