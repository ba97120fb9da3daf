// Checks the properties of an axis that parallel strategies rely on. With one rank, a collective copies its input. A call in
// flight keeps its tensors alive and makes progress while layers compute.
#include <fmt/format.h>

#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

Tensor ones(Allocator& memory, std::int64_t count) {
  const Tensor x(memory, {count}, DType::f32, Category::workspace);
  std::ranges::fill(x.values<float>(), 1.0F);
  return x;
}

TEST_CASE("with one rank, every collective of an axis copies its input") {
  HostMemory host;
  Ledger ledger;
  Allocator memory(host, ledger);
  const Mesh mesh;
  Axis& axis = mesh.data();
  const Tensor input = ones(memory, 5);
  const auto given = [&](auto call) {
    const Tensor output(memory, {5}, DType::f32, Category::workspace);
    std::ranges::fill(output.values<float>(), 0.0F);
    call(output);
    return std::ranges::equal(output.values<float>(), input.values<float>());
  };
  CHECK(given([&](const Tensor& output) { axis.all_gather(input, output); }));
  CHECK(given([&](const Tensor& output) { axis.reduce_scatter(input, output); }));
  CHECK(given([&](const Tensor& output) { axis.start_all_gather(input, output).wait(); }));
  CHECK(given([&](const Tensor& output) { axis.start_reduce_scatter(input, output).wait(); }));
  CHECK(axis.account().entries == Account{}.entries);
}

TEST_CASE("a call in flight keeps its tensors alive", "[threads]") {
  const Layout layout = parse_layout("dp2", 0);
  ThreadWorld world(2);
  CHECK(test::on_threads(2, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          const Mesh mesh(layout, worlds, {});
          Ledger ledger;
          Allocator memory(worlds.memory(), ledger);
          if (me.rank() == 1) me.barrier();
          Axis::Pending sum, other = mesh.data().start_all_reduce(ones(memory, 1000));
          const std::int64_t held = ledger.current(Category::workspace);
          if (me.rank() == 0) me.check(held == 4000, "{} bytes are held for a call that cannot have finished", held);
          sum = std::move(other);
          if (me.rank() == 0) me.barrier();
          sum.wait();
          me.check(ledger.current(Category::workspace) == 0, "a finished call still holds its tensors");
        }) == "");
}

// Rank 0 starts an all-reduce and trains. Rank 1 waits for the all-reduce before it trains. To complete the all-reduce, rank
// 0 must send two more messages while it computes.
TEST_CASE("a call in flight progresses while a rank computes its layers", "[threads]") {
  const Layout layout = parse_layout("dp2", 0);
  TrainingOptions options = test::options_for("fast", layout);
  options.batch.micro = 1;
  ThreadWorld world(2);
  std::atomic<int> begun = 0, over = 0;
  CHECK(test::on_threads(2, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          Mesh mesh(layout, worlds, {{"", "ring"}});
          test::Run run(options, Mesh(layout, worlds, {}), worlds.memory());
          Ledger ledger;
          Allocator memory(worlds.memory(), ledger);
          const auto comes = [&](const std::atomic<int>& ranks, int wanted) {
            for (const double start = clock.seconds(); ranks < wanted && clock.seconds() < start + 300;) clock.sleep(1e-3);
            return ranks == wanted;
          };
          if (me.rank() == 1) comes(begun, 1);
          Axis::Pending sum = mesh.data().start_all_reduce(ones(memory, 8));
          ++begun;
          bool went_on = false;
          if (me.rank() == 1) {
            sum.wait();
            ++over;
          }
          run.training.step([&, micro_batch = 0](std::int64_t first, std::int64_t samples, const SampleRows& rows) mutable {
            if (me.rank() == 0 && micro_batch == 0) comes(begun, 2);
            if (me.rank() == 0 && micro_batch == 1) went_on = comes(over, 1);
            ++micro_batch;
            run.read(first, samples, rows);
          });
          if (me.rank() == 0) me.check(went_on, "the sum made no progress while micro-batch 0 was computed");
          sum.wait();
        }) == "");
}

// The numbers of rows in an uneven all_to_all. Rank 1 sends and receives nothing. All other ranks send most rows to rank 0.
RowsBetween rows_of_turn(int size, std::int64_t turn) {
  RowsBetween rows;
  for (std::int64_t from = 0; from < size; ++from)
    for (std::int64_t to = 0; to < size; ++to)
      rows.push_back(from == 1 || to == 1 || turn == 0 ? 0 : to == 0 ? 9 + turn : (from + 2 * to + turn) % 4);
  return rows;
}

// Exchanges rows with an all_to_all. The values of a row encode its source, destination and number. Returns a description of
// the first wrong row, or "".
std::string wrong_rows(Axis& a, Allocator& memory, const RowsBetween& rows, bool started) {
  constexpr std::int64_t width = 3;
  const auto between = [&](std::int64_t from, std::int64_t to) {
    return rows.at(static_cast<std::size_t>(from * a.size() + to));
  };
  const auto value = [](std::int64_t from, std::int64_t to, std::int64_t number) {
    return static_cast<float>(10000 * from + 100 * to + number);
  };
  std::vector<float> given, wanted;
  for (std::int64_t other = 0; other < a.size(); ++other) {
    for (std::int64_t i = 0; i < width * between(a.rank(), other); ++i) given.push_back(value(a.rank(), other, i));
    for (std::int64_t i = 0; i < width * between(other, a.rank()); ++i) wanted.push_back(value(other, a.rank(), i));
  }
  const Tensor input(memory, {std::ssize(given) / width, width}, DType::f32, Category::workspace);
  const Tensor output(memory, {std::ssize(wanted) / width, width}, DType::f32, Category::workspace);
  std::ranges::copy(given, input.values<float>().begin());
  if (started)
    a.start_all_to_all(input, output, rows).wait();
  else
    a.all_to_all(input, output, rows);
  return std::ranges::equal(output.values<float>(), wanted) ? "" : "wrong rows arrived";
}

TEST_CASE("an all_to_all of uneven rows is the same call on all ranks, and sends only the rows that leave", "[threads]") {
  for (const int size : {1, 2, 3, 4, 8}) {
    INFO(size << " ranks");
    CHECK(test::on_thread_mesh(parse_layout(fmt::format("dp{}", size), 0), [&](Mesh mesh, Memory& shared) -> std::string {
            Axis& axis = mesh.data();
            Ledger ledger;
            Allocator memory(shared, ledger);
            std::int64_t leaving = 0, calls = 0;
            for (std::int64_t turn = 0; turn < 600; ++turn) {  // more distinct row counts than the number of routes that a
                                                               // group keeps
              const RowsBetween rows = rows_of_turn(size, turn);
              if (const std::string wrong = wrong_rows(axis, memory, rows, turn % 2 == 1); !wrong.empty())
                return fmt::format("turn {}: {}", turn, wrong);
              calls += size > 1;  // a call counts even if no rank has a row
              for (int to = 0; to < size; ++to)
                if (to != axis.rank()) leaving += 4 * 3 * rows[static_cast<std::size_t>(axis.rank() * size + to)];
              if (turn % 10 != 0) continue;
              const Tensor x = ones(memory, 5);
              axis.all_reduce(x);
              if (x.values<float>()[4] != static_cast<float>(size)) return "a sum between two exchanges is wrong";
            }
            const Account::Entry& sent = axis.account().entries[static_cast<std::size_t>(Collective::all_to_all)];
            if (sent.calls != calls || sent.bytes != leaving)
              return fmt::format("{} calls and {} bytes are counted, {} and {} were expected", sent.calls, sent.bytes, calls,
                                 leaving);
            return "";
          }) == "");
  }
}

// Makes calls of `count` elements per rank on axis `a`, in place and out of place. Returns the numbers of calls and sent
// bytes in the axis's account. All blocks have the same size, as in most calls of strategies. With `exchanges`, also calls
// all_to_all.
Account account_of(Axis& a, Allocator& memory, std::int64_t count, bool exchanges) {
  const auto vector = [&](std::int64_t n) { return Tensor(memory, {n}, DType::f32, Category::workspace); };
  const Tensor whole = vector(count * a.size()), block = vector(count);
  const Tensor own = whole.narrow(a.rank() * count, count);
  for (const Tensor& x : {whole, block}) clear(x);
  a.all_reduce(whole);
  a.all_reduce(whole, Redop::max);
  a.broadcast(whole, a.size() - 1);
  a.all_gather(block, whole);
  a.all_gather(own, whole);
  a.reduce_scatter(whole, block);
  a.start_reduce_scatter(whole, own).wait();
  if (!exchanges) return a.account();
  const RowsBetween rows(static_cast<std::size_t>(a.size() * a.size()), count);
  const Tensor other = vector(count * a.size());
  a.all_to_all(whole, other, rows);
  a.start_all_to_all(other, whole, rows).wait();
  return a.account();
}

TEST_CASE("a planned axis, which sends nothing, counts the bytes that a real axis sends", "[threads]") {
  std::vector<std::string> algorithms{"auto"};
  for (const Algorithm& row : all_algorithms())
    if (row.what == Collective::all_reduce) algorithms.emplace_back(row.name);
  const std::vector<std::vector<int>> places{{0, 0}, {0, 1}, {0, 0, 0}, {0, 1, 0}, {0, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 1, 2}};
  for (const std::vector<int>& hosts : places)
    for (const std::string& algorithm : algorithms)
      for (const std::int64_t count : {1, 7, 4096}) {
        const int size = static_cast<int>(hosts.size());
        const bool fits_all = std::ranges::all_of(all_algorithms(), [&](const Algorithm& row) {
          return row.name != algorithm || fits(row, Problem::even(row.what, count * size, size));
        });
        if (!fits_all) continue;
        const Algorithm* const of_exchange = find_algorithm(Collective::all_to_all, algorithm);
        const bool exchanges = !of_exchange || !of_exchange->fits;  // the all_to_all accepts blocks of any sizes
        INFO(algorithm << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")) << ", " << count << " elements each");
        const Layout layout = parse_layout(fmt::format("dp{}", size), 0);
        ThreadWorld world(size);
        CHECK(test::on_threads(size, [&](test::ThreadRank& me) {
                SystemClock clock;
                Communicator placed = open_world(world.transport(me.rank()), clock);
                placed.pretend_hosts(hosts);
                const Worlds worlds(std::move(placed));
                const Mesh real(layout, worlds, {{"", algorithm}});
                const Mesh pretended = Mesh::pretended(layout, me.rank(), {{"", "threads"}}, {{"", algorithm}},
                                                       std::make_shared<const Selector>(), hosts);
                PhantomMemory phantom;
                Ledger ledger;
                Allocator memory(worlds.memory(), ledger), nothing(phantom, ledger);
                const Account sent = account_of(real.data(), memory, count, exchanges);
                const Account foreseen = account_of(pretended.data(), nothing, count, exchanges);
                for (std::size_t i = 0; i < operations; ++i)
                  me.check(sent.entries[i] == foreseen.entries[i], "{}: {} bytes were sent, {} expected", operation_name(i),
                           sent.entries[i].bytes, foreseen.entries[i].bytes);
              }) == "");
      }
}

}  // namespace
}  // namespace chorale
