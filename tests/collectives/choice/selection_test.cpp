#include "collectives/choice/selection.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <chorale/algorithm.hpp>
#include "collectives/backends/backends.hpp"
#include "collectives/choice/decision.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

namespace {

TuningTable table() {
  TuningTable t{machine_signature(), {}};
  const auto add = [&](std::int64_t bytes, bool in_place, const char* algorithm, int chunks) {
    t.choices.push_back({"shm", Collective::all_reduce, 4, in_place, bytes, algorithm, chunks, 1.5e-6, "ring", 1.25});
  };
  add(64, false, "one_shot", 1);
  add(4096, false, "circulant", 1);
  add(1 << 20, false, "direct", 8);
  add(64, true, "recursive_doubling", 1);
  return t;
}

Problem all_reduce(int size, bool in_place = false) {
  return Problem::even(Collective::all_reduce, 1000, size, 0, in_place);
}

std::string chosen(const Selector& selector, std::int64_t bytes, const Problem& problem = all_reduce(4)) {
  return selector.choose("shm", problem, bytes, true).algorithm;
}

}  // namespace

TEST_CASE("the tuned algorithm of the nearest size is chosen, and the choice says why") {
  const Selector selector(table());
  CHECK((chosen(selector, 0) == "one_shot" && chosen(selector, 64) == "one_shot" && chosen(selector, 500) == "one_shot"));
  CHECK((chosen(selector, 600) == "circulant" && chosen(selector, 60000) == "circulant"));
  CHECK((chosen(selector, 70000) == "direct" && chosen(selector, std::int64_t{1} << 40) == "direct"));
  CHECK(chosen(selector, 1 << 20, all_reduce(4, true)) == "recursive_doubling");  // in-place entries go before nearer ones
  const Choice choice = selector.choose("shm", all_reduce(4), 1 << 20, true);
  CHECK((choice.chunks == 8 && choice.why == "1.5 µs at 1048576 bytes, ring took 1.25 times as long in one launch"));
}

TEST_CASE("the reason for a choice gives the range of its lead and says when the lead may be noise") {
  Tuned choice = table().choices[0];
  choice.ratio_low = 1.1;
  choice.ratio_high = 1.4;
  CHECK(choice.why() == "1.5 µs at 64 bytes, ring took 1.25 times as long in one launch (1.10 to 1.40)");
  choice.ratio_low = 0.9;
  CHECK(choice.why() == "1.5 µs at 64 bytes, ring took 1.25 times as long in one launch (0.90 to 1.40), within the noise");
}

TEST_CASE(
    "the cost model decides what was not measured: other numbers of ranks, backends, machines; algorithms that do not fit") {
  const auto says_model = [](const Choice& choice) { return choice.why.find("by the cost model") != std::string::npos; };
  const Selector selector(table());
  CHECK(says_model(selector.choose("shm", all_reduce(5), 64, true)));
  CHECK(says_model(selector.choose("mpi", all_reduce(4), 64, true)));
  TuningTable elsewhere = table();
  elsewhere.machine = "another";
  CHECK(says_model(Selector(elsewhere).choose("shm", all_reduce(4), 64, true)));
  CHECK(!says_model(
      Selector(elsewhere, {}, elsewhere.machine).choose("shm", all_reduce(4), 64, true)));  // `here` is rank 0's machine
  TuningTable gather = table();
  gather.choices = {{"shm", Collective::all_gather, 3, false, 64, "recursive_doubling", 1, 1e-6, "", 1}};
  CHECK(says_model(Selector(gather).choose("shm", Problem::even(Collective::all_gather, 30, 3), 64, true)));
}

TEST_CASE("a line that was measured on one host does not decide for a group on several hosts, nor the reverse") {
  const Problem near = all_reduce(4), far = Problem::even(Collective::all_reduce, 1000, 4, 0, false, {0, 0, 1, 1});
  const auto decides = [](const TuningTable& t, const Problem& problem) {
    return Selector(t).choose("shm", problem, 64, true).why.find("by the cost model") == std::string::npos;
  };
  TuningTable t = table();
  CHECK((decides(t, near) && !decides(t, far)));
  for (Tuned& line : t.choices) line.hosts = 2;
  CHECK((!decides(t, near) && decides(t, far)));
  CHECK(decides(parse_tuning(text_of(t), "kept"), far));
  std::string old = text_of(t);  // tables of older versions do not state the number of hosts
  for (std::size_t at = old.find("\"hosts\":2,"); at != std::string::npos; at = old.find("\"hosts\":2,")) old.erase(at, 10);
  CHECK((decides(parse_tuning(old, "old"), near) && !decides(parse_tuning(old, "old"), far)));
}

TEST_CASE("native is chosen if it was fastest, but not if its results would differ") {
  TuningTable t = table();
  t.choices[1].algorithm = "native";
  const Selector selector(t);
  CHECK(selector.choose("shm", all_reduce(4), 4096, true).algorithm == "native");
  CHECK(selector.choose("shm", all_reduce(4), 4096, false).algorithm == "one_shot");  // the choice at the nearest other size
  using enum DType;
  using enum Redop;
  const auto agrees = [](Collective what, DType dtype, Redop op, std::int64_t count = 100) {
    return native_agrees(Problem::even(what, count, 4), dtype, op);
  };
  for (const auto what : {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce}) {
    CHECK((agrees(what, f32, sum) && agrees(what, bf16, prod) && agrees(what, i32, max) && agrees(what, u8, min)));
    for (const DType dtype : {f32, f64, f16, bf16}) CHECK((!agrees(what, dtype, min) && !agrees(what, dtype, max)));
    CHECK((!agrees(what, u8, sum) && !agrees(what, u8, avg) && agrees(what, u8, prod)));
  }
  CHECK((agrees(Collective::all_gather, u8, sum) && agrees(Collective::broadcast, f32, max)));
  CHECK((agrees(Collective::all_gather, u8, sum, 2147483647) && !agrees(Collective::all_gather, u8, sum, 2147483648)));
}

TEST_CASE("the cost model chooses the fastest algorithm that fits, and the choice depends on the size") {
  const Selector selector;
  for (const Backend& backend : all_backends())
    for (const int size : {1, 2, 3, 4, 7, 16, 100})
      for (const auto what : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                              Collective::broadcast, Collective::reduce, Collective::gather, Collective::scatter})
        for (const std::int64_t bytes : {0, 1, 1 << 20}) {
          const Problem problem = Problem::even(what, bytes, size);
          const Choice choice = selector.choose(backend.name, problem, bytes, true);
          INFO(backend.name << " " << name_of(what) << " on " << size << ": " << choice.algorithm);
          const Algorithm* known = find_algorithm(what, choice.algorithm);
          REQUIRE((known && fits(*known, problem)));
          const double seconds = selector.predict(backend.name, choice.algorithm, choice.chunks, problem, DType::u8);
          for (const Algorithm& other : all_algorithms())
            if (size < 16 && other.what == what && fits(other, problem))  // more ranks have the choice of fewer
              CHECK(seconds <= selector.predict(backend.name, other.name, 1, problem, DType::u8));
        }
  const auto on_mpi = [&](std::int64_t bytes) { return selector.choose("mpi", all_reduce(8), bytes, true).algorithm; };
  CHECK(on_mpi(8) != on_mpi(64 << 20));
  const Price price = backend_named("mpi").usual;
  CHECK(predict("mpi", "native", 1, all_reduce(8), 4, price) < 0);
  const double once = predict("mpi", "ring", 1, all_reduce(8), 4, price);
  CHECK((once > 14 * 1e-6 && once < predict("mpi", "ring", 1, all_reduce(16), 4, price)));
}

TEST_CASE("calibrated prices decide where nothing was tuned, and other prices are called not calibrated") {
  Machine machine{.signature = machine_signature(), .cores = 4};
  machine.levels.push_back({.backend = "ucx", .ranks = 4});
  auto& prices = machine.levels.back().prices;
  const auto price = [&](double latency, double rate) {
    prices["latency"] = prices["message"] = {latency};
    prices["cross"] = std::vector<double>(footprints.size(), rate);
    prices["copy"] = {rate};
    return Selector({}, machine);
  };
  const auto choice = [&](const Selector& selector, const char* backend) {
    return selector.choose(backend, all_reduce(4), 1 << 16, false);
  };
  const Selector slow_messages = price(1e-3, 1e12), slow_bytes = price(1e-9, 1e7);
  CHECK(choice(slow_messages, "ucx").why.ends_with("by the cost model"));
  CHECK(choice(slow_messages, "ucx").algorithm != choice(slow_bytes, "ucx").algorithm);
  CHECK(choice(slow_messages, "mpi").why.ends_with("by the cost model, not calibrated"));
  CHECK((slow_bytes.is_calibrated("ucx", all_reduce(8)) && !slow_bytes.is_calibrated("mpi", all_reduce(4))));
  CHECK(slow_bytes.predict("ucx", "ring", 1, all_reduce(4), DType::f32) > 1000 * 4 / 1e7);
  CHECK(slow_bytes.predict("ucx", "native", 1, all_reduce(4), DType::f32) < 0);
  machine.signature = "another machine";
  CHECK(!Selector({}, machine).is_calibrated("ucx", all_reduce(4)));
}

TEST_CASE("a tuning table of an older version, which also has prices, is still read") {
  const TuningTable old = parse_tuning(R"({"schema":"chorale tuning","version":1,"machine":"x",
      "prices":{"shm":{"alpha":1e-6,"beta":1e-9,"gamma":1e-9}},"choices":[]})",
                                       "old.json");
  CHECK((old.machine == "x" && old.choices.empty()));
}

TEST_CASE("a tuning table is written and read back, and damaged or missing tables are refused") {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "cache" / "tuning.json";
  write_tuning(file, table());
  const TuningTable back = read_tuning(file);
  CHECK((back.machine == machine_signature() && back.choices.size() == 4));
  CHECK((back.choices[2].chunks == 8 && back.choices[2].why() == table().choices[2].why()));
  CHECK(back.choices[3].in_place);
  const auto refused = [&](const char* text) {
    std::ofstream(file) << text;
    return read_tuning(file);
  };
  CHECK_THROWS_WITH(refused("{"), says("not a tuning table"));
  CHECK_THROWS_WITH(refused("{\"schema\":\"x\",\"version\":1}"), says("another schema"));
  CHECK_THROWS_WITH(read_tuning(folder.path() / "none.json"), says("No such file"));
  CHECK_THROWS_WITH(write_tuning("/proc/none/x.json", table()), says("cannot be written"));
}

TEST_CASE("an unknown algorithm is refused with the names that there are") {
  const std::string refusal = test::refused([] { requested_everywhere("rnig"); });
  CHECK_THAT(refusal, says("there are auto, native, ") && says("did you mean \"ring\"?"));
}

TEST_CASE("auto takes the preferred backend among those that work, and MPI if no other does") {
  const auto best = [](bool on_device, const std::vector<std::string>& working) {
    return best_backend(on_device, [&](const Backend& row) { return std::ranges::count(working, row.name) > 0; });
  };
  CHECK(best(false, {"mpi", "ucx", "shm", "nccl", "threads"}) == "shm");
  CHECK(best(true, {"mpi", "ucx", "shm", "nccl", "threads"}) == "nccl");
  CHECK(best(true, {"ucx", "shm"}) == "shm");
  CHECK(best(false, {"ucx", "nccl", "threads"}) == "ucx");
  CHECK(best(true, {"threads"}) == "mpi");
  CHECK(backend_of_every_machine() == "mpi");
}

TEST_CASE("names are listed from the tables: backends of processes, and algorithms of all collectives or of one") {
  CHECK(backend_names().size() == all_backends().size());
  CHECK(std::ranges::count(backend_names(), "threads") == 1);
  CHECK(std::ranges::count(backend_names(connects_processes), "threads") == 0);
  CHECK(backend_names(connects_processes).size() + 1 == backend_names().size());
  for (const Backend& row : all_backends())
    if (row.on_a_host) CHECK(backend_named(row.on_a_host).maps_memory);
  const std::vector<std::string> all = algorithm_names(), barriers = algorithm_names(std::array{Collective::barrier});
  CHECK((all[0] == "auto" && all[1] == "native" && std::ranges::count(all, "ring") == 1));
  CHECK((std::ranges::count(barriers, "ring") == 0 && barriers.size() < all.size()));
}
