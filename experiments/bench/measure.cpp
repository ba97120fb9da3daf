#include "experiments/bench/measure.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "experiments/bench/ceiling.hpp"
#include "experiments/common/statistics.hpp"
#include "src/memory/on_host.hpp"

namespace chorale::bench {
namespace {

// The interval at which ranks check for a signal. A launcher kills its ranks about one second after it has asked them to
// end.
constexpr double seconds_between_looks = 0.1;
constexpr std::int64_t fewest_repetitions = 20;
constexpr int barriers_timed = 10;

// Whether the backend can allocate memory where the buffers will be: on the device or on the host.
bool lends(const Communicator& group, const How& how) {
  return group.allocator().device() == (how.device ? how.device->device() : Device{});
}

}  // namespace

Bench::Bench(BenchTeam& team, Communicator& group, const How& how)
    : team_(team),
      group_(group),
      how_(how),
      ordinary_(how.device ? *how.device : heap_, ledger_),
      buffers_(how.heap || !lends(group, how) ? ordinary_ : group.allocator(), how.cold) {
  if (how.device) group.use_device(how.device);
}

std::int64_t Bench::repetitions_for(double seconds, std::int64_t bytes) const {
  if (how_.repetitions > 0) return how_.repetitions;
  const std::int64_t most = bytes < 64 << 10 ? 2000 : bytes < 8 << 20 ? 200 : 20;
  const double in_half_a_second = 0.5 / std::max(seconds, 1e-6);
  return std::clamp(static_cast<std::int64_t>(in_half_a_second), fewest_repetitions, most);
}

// Collective. Returns the time in seconds that rank 0 has spent in the series, or nullopt if any rank was told to stop.
std::optional<double> Bench::look(double spent) {
  stopped_ = how_.told_to_stop && team_.any(how_.told_to_stop());
  if (stopped_) return std::nullopt;
  return team_.broadcast(spent);
}

// Collective. Times a few barriers, and returns the time of the fastest in seconds.
double Bench::barrier_seconds() {
  const Clock& clock = group_.clock();
  double fastest = std::numeric_limits<double>::infinity();
  team_.barrier();
  for (int i = 0; i < barriers_timed; ++i) {
    const double started = clock.seconds();
    team_.barrier();
    fastest = std::min(fastest, clock.seconds() - started);
  }
  return fastest;
}

Communicator& Bench::communicator_for(const BenchCase& row) {
  if (row.algorithm == "native" && !apart_) {
    apart_ = group_.split(0, group_.rank());
    apart_.block_in_native(true);
  }
  Communicator& communicator = row.algorithm == "native" ? apart_ : group_;
  communicator.choose(row.what, row.algorithm, row.chunks);
  communicator.check_calls(how_.compare_calls);
  communicator.pretend_hosts(row.hosts);
  return communicator;
}

// This rank's arguments of the i-th call. In an in-place call, the rank's input and output blocks are parts of one vector,
// each at its own offset.
Call Bench::call_of(const BenchCase& row, const Problem& mine, std::int64_t i) const {
  if (row.what == Collective::barrier) return {row.what};
  const auto slice = [&](void* start, std::int64_t home, std::int64_t count) {
    return Slice{static_cast<std::byte*>(start) + (row.in_place ? home * size_of(row.dtype) : 0), count, row.dtype,
                 buffers_.memory().device(), &buffers_.memory()};
  };
  if (row.what == Collective::broadcast) {
    const Slice x = slice(buffers_.input(i), 0, row.count);
    return {row.what, x, x, row.op, row.root};
  }
  void* output = row.in_place ? buffers_.input(i) : buffers_.output(i);
  return {row.what, slice(buffers_.input(i), mine.input_home(), mine.input_count()),
          slice(output, mine.output_home(), mine.output_count()), row.op, row.root};
}

void Bench::prepare(const Values& values, const Call& call, const Problem& mine) const {
  on_host(call.output, Use::write,
          [](const Slice& output) { std::memset(output.data, 0xA5, static_cast<std::size_t>(output.bytes())); });
  if (mine.input_count() > 0)
    on_host(call.input, Use::write, [&](const Slice& input) { values.fill(mine.rank, input, mine.input_home()); });
}

// The inputs of the next call. They differ from those of all other calls, and from those of the other groups.
Values Bench::next_values(const BenchCase& row) {
  const std::uint32_t round = ++round_ * static_cast<std::uint32_t>(how_.groups.number) + group_number();
  return {row.what, row.op, row.ranks, row.root, row.count / row.ranks, round};
}

// Returns the number of calls until ranks check again for a signal, if a call takes `average` seconds.
std::int64_t Bench::calls_until_look(double average, std::int64_t done) {
  const double calls = seconds_between_looks / std::max(average, 1e-6);
  return std::clamp<std::int64_t>(std::llround(calls), 1, std::max(done, fewest_repetitions));
}

Series Bench::measure(const BenchCase& row) {
  const Problem mine = row.problem().at(group_.rank());
  Communicator& communicator = communicator_for(row);
  const Clock& clock = communicator.clock();
  buffers_.lend(row.bytes());
  const double barrier = barrier_seconds();

  double seconds = 0, spent = 0;
  const auto timed = [&](std::int64_t i) {
    const Call call = call_of(row, mine, i);
    const double arrived = clock.seconds();
    team_.barrier();
    const double started = clock.seconds();
    communicator.run(call);
    const double ended = clock.seconds();
    seconds = ended - started;
    spent += ended - arrived;
  };
  for (std::int64_t i = 0; i < how_.warm_up; ++i) timed(i);
  double average = team_.broadcast(seconds);
  std::int64_t repetitions = repetitions_for(average, row.bytes()), next_look = 0;
  spent = 0;
  const std::int64_t sent_before = communicator.traffic().bytes_sent;
  Tally tally{.seconds = {}, .wrong = how_.check && row.what != Collective::barrier ? 0.0 : -1.0};
  for (std::int64_t i = 0; i < repetitions; ++i) {
    if (i == next_look) {
      const std::optional<double> so_far = look(spent);
      if (!so_far) return {.row = row};
      if (i > 0) average = *so_far / static_cast<double>(i);
      repetitions = std::clamp(repetitions_for(average, row.bytes()), i + 1, repetitions);
      next_look += calls_until_look(average, i);
    }
    const bool checked =
        tally.wrong >= 0 && (i == 0 || i == std::min(repetitions, fewest_repetitions) / 2 || i == repetitions - 1);
    const Values values = next_values(row);
    if (checked) prepare(values, call_of(row, mine, how_.warm_up + i), mine);
    timed(how_.warm_up + i);
    tally.seconds.push_back(seconds);
    if (checked)
      on_host(call_of(row, mine, how_.warm_up + i).output, Use::read, [&](const Slice& output) {
        tally.wrong += static_cast<double>(values.wrong(mine.rank, output, mine.output_home()));
      });
  }
  const std::int64_t sent = communicator.traffic().bytes_sent;
  tally.bytes_sent = sent < 0 ? -1 : static_cast<double>(sent - sent_before) / static_cast<double>(repetitions);
  Series series = gather(row, tally);
  series.barrier = barrier;
  if (how_.ceiling) series.ceiling = ceiling_of(row, std::min<std::int64_t>(repetitions, 200));
  if (team_.rank() == 0) series.choice = communicator.choice(call_of(row, mine, 0));
  if (how_.beside_products) measure_beside(row, series);
  return stopped_ ? Series{.row = row} : series;
}

Series Bench::gather(const BenchCase& row, const Tally& tally) {
  const std::size_t repetitions = tally.seconds.size();
  std::vector<double> mine = tally.seconds;
  mine.push_back(tally.wrong);
  mine.push_back(tally.bytes_sent);
  const std::vector<double> all = team_.gather(mine);
  Series series{.row = row};
  if (team_.rank() != 0) return series;
  series.wrong = tally.wrong < 0 ? -1 : 0;
  series.bytes_sent = tally.bytes_sent < 0 ? -1 : 0;
  series.slowest.resize(repetitions);
  for (const double* at = all.data(); at != all.data() + all.size(); at += mine.size()) {
    series.times.emplace_back(at, at + repetitions);
    for (std::size_t i = 0; i < repetitions; ++i) series.slowest[i] = std::max(series.slowest[i], at[i]);
    if (tally.wrong >= 0) series.wrong += static_cast<std::int64_t>(at[repetitions]);
    if (tally.bytes_sent >= 0) series.bytes_sent += at[repetitions + 1];
  }
  return series;
}

double Bench::ceiling_of(const BenchCase& row, std::int64_t repetitions) {
  const Ceiling ceiling(group_, buffers_, how_.groups.among(team_.size(), {}).groups[group_number()]);
  if (how_.device || !ceiling.exists(row)) return -1;
  Tally tally;
  for (std::int64_t i = -how_.warm_up; i < repetitions; ++i) {
    team_.barrier();
    const double started = group_.clock().seconds();
    ceiling.run(row, i + how_.warm_up);
    if (i >= 0) tally.seconds.push_back(group_.clock().seconds() - started);
  }
  team_.barrier();  // other ranks can still write to this rank's memory
  const Series series = gather(row, tally);
  return team_.rank() == 0 ? summarize(series.slowest).median : -1;
}

}  // namespace chorale::bench
