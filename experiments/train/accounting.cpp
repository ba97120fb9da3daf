#include "experiments/train/accounting.hpp"

#include <fmt/format.h>

#include <cstring>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

// Of every rank, as bytes that an exchange carries.
template <class Row>
std::vector<Row> gathered(const Row& mine, const Mesh& mesh) {
  std::vector<Row> all;
  for (const std::string& text : mesh.world().exchange({reinterpret_cast<const char*>(&mine), sizeof mine}))
    std::memcpy(&all.emplace_back(), text.data(), sizeof mine);
  return all;
}

template <class Row, class Values>
std::vector<std::int64_t> column_of(const std::vector<Row>& rows, Values values) {
  std::vector<std::int64_t> column;
  for (const Row& row : rows) column.insert(column.end(), std::begin(row.*values), std::end(row.*values));
  return column;
}

struct Place {
  std::int64_t data[1], tensor[1], pipeline[1], peak[categories];
};

constexpr std::size_t most_axes = 5, cells = most_axes * operations;
struct Sent {
  std::int64_t planned[cells], made[cells], calls[cells];
  char trouble[160];  // what differs first
};

Sent sent_by(const Mesh& mesh, const Accounts& planned) {
  Sent sent{};
  const Accounts made = accounts_of(mesh);
  std::size_t cell = 0;
  for (const auto& axis : mesh.axes())
    for (std::size_t i = 0; i < operations; ++i, ++cell) {
      const Account::Entry& entry = made.at(axis->name()).entries[i];
      const auto foreseen = planned.find(axis->name());
      sent.planned[cell] = foreseen == planned.end() ? 0 : foreseen->second.entries[i].bytes;
      sent.made[cell] = entry.bytes;
      sent.calls[cell] = entry.calls;
    }
  difference(planned, made).copy(sent.trouble, sizeof sent.trouble - 1);
  return sent;
}

void record(Recorder& recorder, const Mesh& mesh, const std::vector<Sent>& ranks) {
  std::vector<std::string> axes, names;
  for (const auto& axis : mesh.axes()) axes.push_back(axis->name());
  for (std::size_t i = 0; i < operations; ++i) names.emplace_back(operation_name(i));
  recorder.dimension({.name = "axis", .labels = axes}, "traffic");
  recorder.dimension({.name = "op", .labels = names}, "traffic");
  const auto keep = [&](const char* name, auto values, const char* units, const char* about) {
    recorder.numbers("traffic", name, {"rank", "axis", "op"}, column_of(ranks, values), units, about);
  };
  keep("bytes_measured", &Sent::made, "byte",
       "sent from the first step on; -1: by calls of a library, which nobody can count");
  keep("bytes_predicted", &Sent::planned, "byte", "planned for as many steps and evaluations");
  keep("calls", &Sent::calls, "1", "calls made");
}

// "3.1 MiB on rank 0: dp 2.0 MiB, tp 1.1 MiB, world 240 B"
std::string in_words(const Mesh& mesh) {
  std::vector<std::string> parts;
  std::int64_t all = 0, calls = 0;
  for (const auto& [axis, account] : accounts_of(mesh)) {
    std::int64_t bytes = 0;
    for (const Account::Entry& entry : account.entries) {
      calls += entry.calls;
      bytes = bytes < 0 || entry.bytes < 0 ? -1 : bytes + entry.bytes;
    }
    if (bytes != 0) parts.push_back(axis + " " + (bytes < 0 ? "uncounted" : human_bytes(bytes)));
    if (bytes > 0) all += bytes;
  }
  return fmt::format("{} on rank 0 in {} calls{}", human_bytes(all), calls, parts.empty() ? "" : ": " + join(parts, ", "));
}

}  // namespace

Accounting::Accounting(RunRecord& run, const Training& training, const PlanRequest& request, std::int64_t evaluation_samples)
    : plan_(plan_run(request, training.mesh().world().rank(), evaluation_samples)) {
  const Mesh& mesh = training.mesh();
  clear_accounts(mesh);
  Place mine{{mesh.data().rank()}, {mesh.tensor().rank()}, {mesh.pipeline().rank()}, {}};
  std::copy(plan_.step.peak.begin(), plan_.step.peak.end(), mine.peak);
  const std::vector<Place> places = gathered(mine, mesh);
  if (!run.recorder) return;
  Recorder& recorder = *run.recorder;
  recorder.numbers("ranks", "dp", {"rank"}, column_of(places, &Place::data), "1", "place among the replicas");
  recorder.numbers("ranks", "tp", {"rank"}, column_of(places, &Place::tensor), "1", "place among the tensor ranks");
  recorder.numbers("ranks", "pp", {"rank"}, column_of(places, &Place::pipeline), "1", "stage of the pipeline");
  recorder.numbers("memory", "planned", {"rank", "category"}, column_of(places, &Place::peak), "byte",
                   "most that a step should hold at once");
}

bool Accounting::settle(RunRecord& run, const Training& training) const {
  const Mesh& mesh = training.mesh();
  require(mesh.axes().size() == most_axes, "a mesh has {} axes, not {}", most_axes, mesh.axes().size());
  const std::vector<Sent> ranks = gathered(sent_by(mesh, plan_.after(counts_)), mesh);
  std::vector<std::string> troubles;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    if (ranks[rank].trouble[0]) troubles.push_back(fmt::format("{}, {}", rank, ranks[rank].trouble));
  if (!run.recorder) return troubles.empty();
  record(*run.recorder, mesh, ranks);
  if (!troubles.empty())
    fmt::print(
        stderr, "{}",
        describe(Error(Exit::check, "what was sent is not what was planned",
                       fmt::format("rank {}; {} of {} ranks differ", troubles[0], troubles.size(), ranks.size()),
                       "the plan runs the same code on phantom tensors (parallel/plan.hpp): one of the two does more"),
                 0, static_cast<int>(ranks.size())));
  else if (ranks.size() > 1)
    run.log.info("bytes sent: as planned, {}", in_words(mesh));
  return troubles.empty();
}

}  // namespace chorale::train
