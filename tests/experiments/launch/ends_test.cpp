// Checks how a launch tells the end of a run from the verdict, the launcher's exit code and the run's last status.
#include "experiments/launch/ends.hpp"

#include "tests/catch.hpp"

namespace chorale::launch {
namespace {

TEST_CASE("the verdict decides how a run ended, not the exit code of the launcher") {
  struct {
    std::optional<Verdict> verdict;
    int code;
    const char* status;
    bool was_asked;
    Ended how;
    EventKind kind;
  } const rows[] = {
      {{}, 0, "ok", false, Ended::complete, EventKind::failed},
      {{}, 0, "stopped", false, Ended::stopped, EventKind::stopped},
      {{}, 0, "running", false, Ended::unknown, EventKind::failed},  // a launcher that lies, without a guard
      {{}, 137, "running", false, Ended::died, EventKind::died},
      {{}, 4, "running", false, Ended::died, EventKind::died},
      {{}, 1, "failed", false, Ended::failed, EventKind::failed},
      {{}, 2, "", false, Ended::failed, EventKind::failed},
      {{}, 137, "running", true, Ended::stopped, EventKind::stopped},
      {Verdict{VerdictKind::died, 2}, 0, "running", false, Ended::died, EventKind::died},  // --enable-recovery
      {Verdict{VerdictKind::died, 2}, 0, "ok", true, Ended::died, EventKind::died},
      {Verdict{VerdictKind::hung, 2}, 4, "running", false, Ended::died, EventKind::hung},
      {Verdict{VerdictKind::host_gone}, 1, "failed", false, Ended::died, EventKind::host_gone},
      {Verdict{VerdictKind::launcher_gone}, 137, "running", false, Ended::died, EventKind::died},
      {Verdict{.kind = VerdictKind::failed, .rank = 1, .exit_code = 1}, 137, "failed", false, Ended::failed,
       EventKind::failed},
      {Verdict{.kind = VerdictKind::failed, .rank = 1, .exit_code = 2}, 0, "", false, Ended::failed, EventKind::failed},
      {Verdict{.kind = VerdictKind::failed, .rank = 1, .exit_code = 4}, 4, "", false, Ended::died, EventKind::died},
      {Verdict{VerdictKind::asked_to_end, 1}, 137, "running", false, Ended::stopped, EventKind::stopped},
  };
  for (const auto& row : rows) {
    INFO(row.code << " " << row.status << " " << (row.verdict ? name_of(row.verdict->kind) : "no verdict"));
    const EndOfRun end = end_of_run(row.verdict, row.code, row.status, row.was_asked);
    CHECK(end.how == row.how);
    const bool has_failed = row.verdict && row.verdict->kind == VerdictKind::failed;
    CHECK(end.exit_code == (has_failed ? row.verdict->exit_code : row.code));
    if (row.how != Ended::complete) CHECK(kind_of(row.verdict, end) == row.kind);
    if (row.verdict && row.how != Ended::stopped) CHECK(end.rank == row.verdict->rank);
  }
}

TEST_CASE("a launcher that failed before any rank was heard has started none") {
  const auto how = [](int code, bool was_started) { return end_of_run({}, code, "", false, was_started).how; };
  CHECK((how(1, false) == Ended::not_started && how(127, false) == Ended::not_started));
  CHECK((how(1, true) == Ended::failed && how(127, true) == Ended::failed));
  CHECK((how(2, false) == Ended::failed && how(3, false) == Ended::failed));  // codes of ours: another start cannot help
  CHECK((how(0, false) == Ended::unknown && how(137, false) == Ended::died));
}

TEST_CASE("the end of a run in words names rank, host, signal and step") {
  const auto words = [](const Verdict& verdict) { return in_words(verdict, end_of_run(verdict, 137, "running", false)); };
  CHECK(words({VerdictKind::died, 2, "n1", "was killed by SIGKILL", "step 12"}) ==
        "rank 2 on n1 was killed by SIGKILL in step 12");
  CHECK(words({VerdictKind::hung, 2, "n1", "", "step 12", 0, 20}) == "rank 2 on n1 hung in step 12 for 20.0 s");
  CHECK(words({.kind = VerdictKind::host_gone, .host = "n1"}) == "the host n1 is gone");
  CHECK(in_words({}, end_of_run({}, 137, "", false)) == "the launcher ended with code 137, without a verdict");
}

}  // namespace
}  // namespace chorale::launch
