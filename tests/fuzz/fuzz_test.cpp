// Mutated configurations (R13 of docs/reliability.md) and other mutated files (R14) must never crash the program. MUTATIONS
// is the total number of mutations over all fuzz targets. SEED selects the mutations. TARGET=record tries only the target
// `record`. Each failing input is written to a file in build/fuzz/crashes, and the file's name is printed. Once the defect
// is fixed, copy this file to the target's corpus.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "tests/files.hpp"
#include "tests/fuzz/trials.hpp"
#include "tests/sanitized.hpp"
#include "tests/spmd.hpp"
#include "tests/tally.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

std::string kept(const Target& target, const Finding& finding) {
  const auto folder = std::filesystem::path(environment("TEST_BUILD", "build")) / "fuzz/crashes";
  std::filesystem::create_directories(folder);
  const auto file = folder / fmt::format("{}-{:016x}", target.name, std::hash<std::string>{}(finding.input));
  put_bytes(file, finding.input);
  return file.string();
}

std::vector<std::string> samples_in_a_folder(const Target& target) {
  const TemporaryFolder folder;
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const auto inputs = good_inputs(target, here);
  std::filesystem::current_path(here);
  return inputs;
}

void try_targets(const std::string& promise) {
  std::vector<const Target*> chosen;
  const std::string only = environment("TARGET", "");
  for (const Target& target : targets())
    if (promise == target.promise && (only.empty() || only == target.name)) chosen.push_back(&target);
  const std::int64_t all = std::stoll(environment("MUTATIONS", "600")),
                     share = all / std::max<std::ptrdiff_t>(1, std::ssize(chosen)) + 1;
  Tally tally;
  for (const Target* target : chosen) {
    const Trials trials = try_mutations(*target, samples_in_a_folder(*target), share, std::stoull(environment("SEED", "1")));
    for (const Finding& finding : trials.findings)
      FAIL_CHECK(fmt::format("{} {}: {}\n{} bytes: {}\nkept in {}", target->name, finding.trial, finding.how,
                             finding.input.size(), escape_control(finding.input.substr(0, 2000)), kept(*target, finding)));
    INFO(target->name);
    CHECK(trials.good_accepted > 0);  // a target that refuses all inputs tests nothing
    tally.tried += trials.tried;
    tally.failed += std::ssize(trials.findings);
    if (all > 10'000 || !trials.findings.empty())
      fmt::print("{:<24} {:>7} tried, {:>6} accepted, {} findings\n", target->name, trials.tried, trials.accepted,
                 trials.findings.size());
  }
  CHECK(tally.tried >= all);
  CHECK(tally.failed == 0);
}

}  // namespace

TEST_CASE("mutated configurations and command lines never crash the program") { try_targets("R13"); }

TEST_CASE("mutated files never crash the program") { try_targets("R14"); }

// Tests try_mutations(). Each kind of failure must be reported as one finding, and later trials must still run.
TEST_CASE("a crash, an endless loop, memory without bound and a foreign exception are findings") {
  const auto run = [](std::string_view input) {
    if (input == "crash") std::raise(SIGSEGV);
    for (volatile bool endless = input == "loop"; endless;) {}
    if (input == "memory")
      for (std::vector<std::string> all;;) all.emplace_back(1 << 24, 'x');
    if (input == "exception") throw std::logic_error("not ours");
    if (input == "refused") usage_error("refused", "", "");
  };
  const TrialLimits limits{.seconds = 1, .bytes = 1 << 28};
  const auto how = [&](const std::vector<std::string>& inputs) {
    std::string text;
    const Trials trials = try_mutations({"trial", "", run}, inputs, 0, 1, limits);
    CHECK(trials.tried == std::ssize(inputs));
    for (const Finding& finding : trials.findings) text += finding.input + ": " + finding.how + "; ";
    return fmt::format("{}{} of {} accepted", text, trials.good_accepted, trials.good);
  };
  CHECK(how({"good", "refused", "good"}) == "2 of 3 accepted");
  CHECK_THAT(how({"crash", "good"}), says("crash: signal 11") && says("1 of 2 accepted"));
  CHECK_THAT(how({"good", "loop", "good"}), says("loop: no end after 1 s of computing") && says("2 of 3 accepted"));
  CHECK_THAT(how({"exception", "good"}), says("no Error: not ours") && says("1 of 2 accepted"));
  if (!sanitized) CHECK_THAT(how({"memory", "good"}), says("no Error: std::bad_alloc") && says("1 of 2 accepted"));
}

}  // namespace chorale::test
