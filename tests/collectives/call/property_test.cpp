// Random programs of collectives neither deadlock nor give wrong results. SEQUENCES sets the number of programs (default 40,
// in `make test-all` 300), and BACKENDS selects the backends (default all). A failing program is shortened for as long as it
// still fails, and then printed.
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/transport.hpp"
#include "collectives/backends/threads.hpp"
#include "src/base/text.hpp"
#include "tests/collectives/sequence.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/tally.hpp"

using namespace chorale;
using namespace chorale::test;

namespace chorale::test {
void showValue(const Act& a, std::ostream& out) {
  out << fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}}}", a.what, a.group, a.algorithm, a.dtype, a.op, a.root, a.how,
                     a.count);
}
}  // namespace chorale::test

namespace rc {
template <>
struct Arbitrary<Act> {
  static Gen<Act> arbitrary() {
    const auto byte = [] { return gen::inRange<std::uint8_t>(0, 255); };
    return gen::build<Act>(gen::set(&Act::what, byte()), gen::set(&Act::group, byte()), gen::set(&Act::algorithm, byte()),
                           gen::set(&Act::dtype, byte()), gen::set(&Act::op, byte()), gen::set(&Act::root, byte()),
                           gen::set(&Act::how, byte()), gen::set(&Act::count, gen::inRange<std::uint16_t>(0, 20000)));
  }
};
}  // namespace rc

namespace {

// Checks a property of random programs. Prints each failure with the shortest failing program found.
template <class Property>
bool holds(Property&& property) {
  const std::string how =
      "max_size=40 max_success=" + environment("SEQUENCES", thorough() ? "300" : "40") + " seed=" + environment("SEED", "1");
  setenv("RC_PARAMS", how.c_str(), 0);
  return rc::check([&](const std::vector<Act>& acts) {
    const std::string trouble = property(acts);
    if (!trouble.empty()) RC_FAIL(trouble);
  });
}

}  // namespace

TEST_CASE("random programs of collectives on threads", "[threads]") {
  REQUIRE(holds([](const std::vector<Act>& acts) {
    const int size = 2 + static_cast<int>(acts.size()) % 4;
    ThreadWorld world(size);
    return on_threads(size, [&](ThreadRank& me) {
      SystemClock clock;
      Performance performance(open_world(world.transport(me.rank()), clock));
      const std::string wrong = performance.play(acts);
      me.check(wrong.empty(), "{}", wrong);
    });
  }));
}

TEST_CASE("random programs of collectives on every backend", "[spmd][hosts][many]") {
  SystemClock clock;
  const MPI_Comm comm = world().world();
  Tally tally(world().rank() == 0);
  for (const Backend& backend : all_backends()) {
    const std::vector<std::string> wanted = split(environment("BACKENDS", backend.name), ',');
    if (!joins_all(backend) || std::find(wanted.begin(), wanted.end(), backend.name) == wanted.end()) continue;
    INFO(backend.name);
    // Rank 0 generates the programs, and all ranks execute them. An empty program ends the test.
    const auto transport = std::shared_ptr<Transport>(backend.open(world()));
    if (auto* mapped = dynamic_cast<mapped::MappedTransport*>(transport.get())) mapped->reach().staged_up_to = 5000;
    const auto play = [&](const std::vector<Act>& acts) {
      alive();
      Performance performance(open_world(transport, clock));
      const std::string wrong = performance.play(acts);
      const auto failed = mpi::gather(comm, wrong);
      return join(failed, "\n").find_first_not_of('\n') == std::string::npos ? std::string() : join(failed, "\n");
    };
    bool all_right = true;
    if (world().rank() == 0) {
      all_right = holds([&](const std::vector<Act>& acts) {
        if (acts.empty()) return std::string();
        mpi::broadcast(comm, std::string(reinterpret_cast<const char*>(acts.data()), acts.size() * sizeof(Act)));
        const std::string wrong = play(acts);
        if (all_right) tally.add(wrong.empty());  // later programs are shortened forms of the failing program
        all_right = all_right && wrong.empty();
        return wrong;
      });
      mpi::broadcast(comm, "");
    } else {
      for (std::string bytes; !(bytes = mpi::broadcast(comm, "")).empty();) {
        std::vector<Act> acts(bytes.size() / sizeof(Act));
        std::memcpy(acts.data(), bytes.data(), bytes.size());
        play(acts);
      }
    }
    REQUIRE_ALL(all_right);
  }
}
