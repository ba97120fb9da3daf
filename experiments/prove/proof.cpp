#include "experiments/prove/proof.hpp"

#include <fmt/format.h>

#include "experiments/common/each.hpp"

namespace chorale::prove {

Proof::Outcome Proof::outcome() const {
  if (difference) return Outcome::differs;
  return history.failure.empty() ? Outcome::equal : Outcome::failed;
}

std::string Proof::verdict() const {
  std::string words;
  if (difference) {
    const Difference& d = *difference;
    const std::string others = d.differing > 1 ? fmt::format(" and {} more tensors", d.differing - 1) : "";
    words = fmt::format("DIFFERS at step {}: {}{}; through {}", d.step, d.tensor, others,
                        collectives_behind(d.tensor, row.options.shape, row.layout));
  }
  if (!history.failure.empty())
    words += fmt::format("{}FAILED in step {} on rank {}: {}", words.empty() ? "" : "; ", history.steps.size() + 1,
                         failed_on, history.failure);
  return words.empty() ? "equal" : words;
}

TextTable table_of(const std::vector<Proof>& proofs) {
  TextTable table({"ranks", "layout", "micro-batch", "variation", "seconds", "loss", "verdict"});
  for (const Proof& p : proofs)
    table.add({std::to_string(p.row.layout.ranks()), to_string(p.row.layout), std::to_string(p.row.options.batch.micro),
               p.row.variation.empty() ? "-" : p.row.variation, fmt::format("{:.1f}", p.history.seconds),
               p.history.steps.empty() ? "-" : fmt::format("{:.17g}", p.history.steps.back().loss), p.verdict()});
  return table;
}

ProofRecords::ProofRecords(Recorder& recorder, const std::vector<Case>& cases)
    : recorder_(recorder),
      verdicts_(cases.size(), "not compared"),
      proofs_(recorder.table<ProofRow>({.group = "proofs", .rows = "row", .live = true})),
      steps_(recorder.table<StepRow>({.group = "prove", .rows = "row"})) {
  recorder.dimension({.name = "number", .size = std::ssize(cases)});
  recorder.rows("cases", std::ssize(cases));
  const auto texts = [&](const char* name, auto of) { recorder.texts("cases", name, "number", each(cases, of)); };
  texts("layout", [](const Case& c) { return to_string(c.layout); });
  texts("backend", [](const Case& c) { return to_string(c.backends); });
  texts("algorithm", [](const Case& c) { return to_string(c.algorithms); });
  texts("variation", [](const Case& c) { return c.variation; });
  recorder.numbers("cases", "ranks", {"number"}, each(cases, [](const Case& c) { return c.layout.ranks(); }), "1",
                   "number of ranks of the layout");
  recorder.numbers("cases", "micro_batch", {"number"}, each(cases, [](const Case& c) { return c.options.batch.micro; }), "1",
                   "sequences per micro-batch");
  flush();
}

void ProofRecords::add(const Proof& proof) {
  const History& history = proof.history;
  const Difference difference = proof.difference.value_or(Difference{});
  verdicts_[static_cast<std::size_t>(proof.number)] = proof.verdict();
  recorder_.append(proofs_, ProofRow{proof.number, static_cast<std::uint8_t>(proof.outcome()),
                                     static_cast<std::int64_t>(history.steps.size()), difference.step, difference.differing,
                                     history.seconds});
  for (std::size_t i = 0; i < history.steps.size(); ++i) {
    const StepState& seen = history.steps[i];
    const auto step = static_cast<std::int64_t>(i + 1);
    const bool equal = !proof.difference || step < difference.step;
    recorder_.append(steps_, StepRow{proof.number, step, equal, seen.loss, seen.gradient_norm});
  }
}

void ProofRecords::write_verdicts() { recorder_.texts("cases", "verdict", "number", verdicts_); }

void ProofRecords::flush() {
  write_verdicts();
  recorder_.flush();
}

void ProofRecords::finish(const std::string& status) {
  write_verdicts();
  recorder_.finish(status);
}

}  // namespace chorale::prove
