// GCC 12.2 miscompiles constants such as the one in this test, unless the Makefile passes a compiler option that prevents
// this. The test checks that the Makefile passes the option.
#include <cstring>

#include "tests/catch.hpp"

namespace {

[[gnu::noinline]] void store_halves(long* to) {
  const long halves[4] = {5, 5, 0, 0};
  std::memcpy(to, halves, sizeof halves);
}

}  // namespace

TEST_CASE("a constant whose halves differ is stored as it is written") {
  long stored[4];
  store_halves(stored);
  CHECK(stored[0] == 5);
  CHECK(stored[1] == 5);
  CHECK(stored[2] == 0);
  CHECK(stored[3] == 0);
}
