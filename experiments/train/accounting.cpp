#include "experiments/train/accounting.hpp"

#include <fmt/format.h>

#include <cstring>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/tier/file_tier.hpp"

namespace chorale::train {
namespace {

// Integers and a string that were gathered from every rank, in rank order.
struct Gathered {
  std::vector<std::vector<std::int64_t>> numbers;
  std::vector<std::string> texts;

  Gathered(const std::vector<std::int64_t>& mine, const std::string& text, const Mesh& mesh) {
    const std::size_t bytes = mine.size() * sizeof(std::int64_t);
    const std::string packed(reinterpret_cast<const char*>(mine.data()), bytes);
    for (const std::string& rank : mesh.world().exchange(packed + text)) {
      std::memcpy(numbers.emplace_back(mine.size()).data(), rank.data(), bytes);
      texts.push_back(rank.substr(bytes));
    }
  }

  // The values [first, first + count) of each rank, one rank after the other.
  std::vector<std::int64_t> column(std::size_t first, std::size_t count = 1) const {
    std::vector<std::int64_t> all;
    for (const auto& rank : numbers) {
      const auto begin = rank.begin() + static_cast<std::ptrdiff_t>(first);
      all.insert(all.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    return all;
  }
};

std::size_t cells_of(const Mesh& mesh) { return mesh.axes().size() * operations; }

// Gathers four values from every rank, for each axis and operation: planned bytes, sent bytes, number of calls, and planned
// bytes of the evaluations alone. The string describes the rank's first difference from the plan, or is "".
Gathered traffic_of(const Training& training, const Accounts& planned, const Accounts& evaluations) {
  const Mesh& mesh = training.mesh();
  const std::size_t cells = cells_of(mesh);
  std::vector<std::int64_t> mine(4 * cells);
  const Accounts made = accounts_of(mesh);
  const auto bytes_in = [](const Accounts& accounts, const std::string& axis, std::size_t operation) {
    const auto found = accounts.find(axis);
    return found == accounts.end() ? 0 : found->second.entries[operation].bytes;
  };
  std::size_t cell = 0;
  for (const auto& axis : mesh.axes())
    for (std::size_t i = 0; i < operations; ++i, ++cell) {
      const Account::Entry& entry = made.at(axis->name()).entries[i];
      mine[cell] = bytes_in(planned, axis->name(), i);
      mine[cells + cell] = entry.bytes;
      mine[2 * cells + cell] = entry.calls;
      mine[3 * cells + cell] = bytes_in(evaluations, axis->name(), i);
    }
  return {mine, difference(planned, made, knows_routing(training.options(), training.mesh().layout())), mesh};
}

void record(Recorder& recorder, const Mesh& mesh, const Gathered& traffic) {
  std::vector<std::string> axes, names;
  for (const auto& axis : mesh.axes()) axes.push_back(axis->name());
  for (std::size_t i = 0; i < operations; ++i) names.emplace_back(operation_name(i));
  recorder.dimension({.name = "axis", .labels = axes}, "traffic");
  recorder.dimension({.name = "op", .labels = names}, "traffic");
  const std::size_t cells = cells_of(mesh);
  const auto keep = [&](const char* name, std::size_t which, const char* units, const char* about) {
    recorder.numbers("traffic", name, {"rank", "axis", "op"}, traffic.column(which * cells, cells), units, about);
  };
  keep("bytes_measured", 1, "byte", "bytes sent from the first step on; -1: a library sent them and did not count them");
  keep("bytes_predicted", 0, "byte", "bytes planned for the same numbers of steps and evaluations");
  keep("bytes_evaluations", 3, "byte", "the part of bytes_predicted that evaluations send");
  keep("calls", 2, "1", "calls made");
}

// Returns a string such as "2, optimizer read: planned 96 bytes, made 95" for each rank that differs from its plan.
std::vector<std::string> troubles_in(const Gathered& ranks) {
  std::vector<std::string> troubles;
  for (std::size_t rank = 0; rank < ranks.texts.size(); ++rank)
    if (!ranks.texts[rank].empty()) troubles.push_back(fmt::format("{}, {}", rank, ranks.texts[rank]));
  return troubles;
}

void report_troubles(RunRecord& run, const char* what, const std::vector<std::string>& troubles, const Mesh& mesh) {
  const int ranks = mesh.world().size();
  const Error error(
      Exit::check, what, fmt::format("rank {}; {} of {} ranks differ", troubles[0], troubles.size(), ranks),
      "report this bug: the plan runs the same code on phantom tensors (parallel/plan/plan.hpp), so both must agree");
  fmt::print(stderr, "{}", describe(error, 0, ranks));
  keep_reason(run, error);
}

// Compares the planned bytes between the slow tier and memory with the counted bytes, on all ranks. Returns whether the
// planned and the counted bytes are equal; if `left_out` is set, the bytes are not compared. Rank 0 records and reports both
// counts. Rank 0 also reports the bytes that it read from and wrote to its file. These file bytes are counted in complete
// blocks. The file bytes include initial values and checkpoints, but not zeros that were never written.
bool settle_tier(RunRecord& run, const Training& training, const TierTraffic& planned, bool left_out) {
  if (!training.memory().tier_memory()) return true;
  const std::string tier = about(training.options().offload, *training.memory().tier_memory());
  TierTraffic made = training.tier_passes();
  made.add(training.tier_updates(), 1);
  std::vector<std::int64_t> mine;
  for (const TierTraffic* t : {&planned, &std::as_const(made)})
    for (const auto* bytes : {&t->read, &t->written}) mine.insert(mine.end(), bytes->begin(), bytes->end());
  const Gathered ranks(mine, left_out ? "" : difference(planned, made), training.mesh());
  const std::vector<std::string> troubles = troubles_in(ranks);
  if (!run.recorder) return troubles.empty();
  const char* const names[] = {"tier_read_predicted", "tier_written_predicted", "tier_read", "tier_written"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    run.recorder->numbers("memory", names[i], {"rank", "category"}, ranks.column(i * categories, categories), "byte",
                          "bytes of tensors between memory and the slow tier, from the first step on");
  run.recorder->text("memory", "tier", tier);
  run.log.result("offload to {}: read {}, wrote {} on rank 0{}", tier, human_bytes(made.all_read()),
                 human_bytes(made.all_written()),
                 left_out           ? ""
                 : troubles.empty() ? ", as planned"
                                    : ", NOT as planned");
  if (const auto* const file = dynamic_cast<const FileTier*>(training.memory().tier_memory()))
    run.log.result("with initial values and checkpoints, the file read {} and wrote {}", human_bytes(file->read_bytes()),
                   human_bytes(file->written_bytes()));
  if (!troubles.empty())
    report_troubles(run, "the bytes between memory and the slow tier differ from the plan", troubles, training.mesh());
  return troubles.empty();
}

// Records the contiguous arena of each rank, the requests that it served, and the requests that other memory served.
void record_contiguous(RunRecord& run, const Training& training) {
  if (!training.memory().arena()) return;
  const PlannedArena::Report mine = training.memory().arena()->report();
  const Gathered ranks({mine.bytes, mine.least, mine.served, mine.unplanned}, "", training.mesh());
  if (!run.recorder) return;
  const auto keep = [&](const char* name, std::size_t which, const char* units, const char* about) {
    run.recorder->numbers("memory", name, {"rank"}, ranks.column(which), units, about);
  };
  keep("contiguous", 0, "byte", "the piece of memory for the activations and gradients that a step makes");
  keep("contiguous_live", 1, "byte", "the most bytes of it that were used at once in the first step");
  keep("contiguous_served", 2, "1", "requests of later steps that got the place planned for them");
  keep("contiguous_unplanned", 3, "1", "requests of later steps that were served elsewhere, because they differed");
  run.log.result("contiguous memory on rank 0: {}, of which {} are used at once; {} requests as planned, {} not",
                 human_bytes(mine.bytes), human_bytes(mine.least), mine.served, mine.unplanned);
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

Accounting::Accounting(RunRecord& run, Training& training, const PlanRequest& request, std::int64_t evaluation_samples,
                       std::int64_t resident_before)
    : plan_(plan_run(request, training.mesh().world().rank(), evaluation_samples)), resident_before_(resident_before) {
  const Mesh& mesh = training.mesh();
  clear_accounts(mesh);
  training.clear_tier_traffic();
  const AxisTable& axes = *mesh.layout().axes;
  std::vector<std::int64_t> mine(mesh.place().begin(), mesh.place().begin() + static_cast<std::ptrdiff_t>(axes.size()));
  mine.insert(mine.end(), plan_.step.peak.begin(), plan_.step.peak.end());
  mine.insert(mine.end(), plan_.step.offloaded.begin(), plan_.step.offloaded.end());
  mine.insert(mine.end(), plan_.step.at_peak.begin(), plan_.step.at_peak.end());
  mine.push_back(plan_.step.peak_bytes);
  const Gathered ranks(mine, "", mesh);
  if (!run.recorder) return;
  Recorder& recorder = *run.recorder;
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (!axes[row].follows())
      recorder.numbers("ranks", axes[row].name, {"rank"}, ranks.column(row), "1", axes[row].coordinate);
  recorder.numbers("memory", "planned", {"rank", "category"}, ranks.column(axes.size(), categories), "byte",
                   "planned peak of a step and of an evaluation");
  if (training.memory().tier_memory())
    recorder.numbers("memory", "tier_held", {"rank", "category"}, ranks.column(axes.size() + categories, categories), "byte",
                     "planned bytes in the slow tier");
  recorder.numbers("memory", "planned_at_peak", {"rank", "category"}, ranks.column(axes.size() + 2 * categories, categories),
                   "byte", "planned bytes when the rank holds the most, all categories together");
  recorder.numbers("memory", "planned_total", {"rank"}, ranks.column(axes.size() + 3 * categories), "byte",
                   "planned peak of a step and of an evaluation, all categories together");
}

// Records the resident memory of each rank, as counted by the kernel. With a slow tier, rank 0 also logs its own resident
// memory.
void Accounting::settle_memory(RunRecord& run, const Training& training) const {
  const std::int64_t peak = resident_memory().peak_bytes;
  const Gathered ranks({resident_before_, peak}, "", training.mesh());
  if (!run.recorder) return;
  run.recorder->numbers("memory", "resident_before", {"rank"}, ranks.column(0), "byte",
                        "resident memory of the process before the model existed");
  run.recorder->numbers("memory", "resident_peak", {"rank"}, ranks.column(1), "byte",
                        "peak resident memory of the process at the end of the run");
  if (training.memory().tier_memory())
    run.log.result("resident memory of rank 0: {} before the model, peak {}; the plan's peak is {}",
                   human_bytes(resident_before_), human_bytes(peak), human_bytes(plan_.step.peak_bytes));
}

bool Accounting::settle(RunRecord& run, Training& training) const {
  training.settle_update();  // the pending update also transfers bytes
  const Mesh& mesh = training.mesh();
  const Gathered ranks = traffic_of(training, plan_.after(counts_), plan_.after({.evaluations = counts_.evaluations}));
  const std::vector<std::string> troubles = !left_out_.empty() ? std::vector<std::string>() : troubles_in(ranks);
  settle_memory(run, training);
  record_contiguous(run, training);
  const bool tier_as_planned = settle_tier(run, training, plan_.tier_after(counts_), !left_out_.empty());
  if (!run.recorder) return troubles.empty() && tier_as_planned;
  record(*run.recorder, mesh, ranks);
  if (!troubles.empty())
    report_troubles(run, "the bytes or calls of this run differ from the plan", troubles, mesh);
  else if (!left_out_.empty())
    run.log.result("bytes sent: not compared with the plan, because {}", left_out_);
  else if (ranks.texts.size() > 1)
    run.log.result("bytes sent: as planned, {}", in_words(mesh));
  return troubles.empty() && tier_as_planned;
}

}  // namespace chorale::train
