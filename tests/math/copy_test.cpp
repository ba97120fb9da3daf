#include "src/math/copy.hpp"

#include <numeric>
#include <vector>

#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("streamed copies are complete at any alignment and touch nothing else") {
  std::vector<unsigned char> source(1000);
  std::iota(source.begin(), source.end(), static_cast<unsigned char>(1));
  for (const std::int64_t bytes : {0, 1, 31, 32, 63, 64, 65, 127, 128, 500})
    for (const int from : {0, 1, 17})
      for (const int to : {0, 3, 32, 63, 64}) {
        std::vector<unsigned char> target(1000, 0), wanted(1000, 0);
        std::copy_n(source.begin() + from, bytes, wanted.begin() + to);
        stream(target.data() + to, source.data() + from, bytes);
        INFO(bytes << " bytes from " << from << " to " << to);
        REQUIRE(target == wanted);
      }
}
