// Runs the tests on this rank. Rank 0 prints Catch2's usual output. The other ranks keep their output in memory. If a case
// fails, hangs or crashes on a rank, the rank's output is shown with the rank's number. The last line is "N passed, N
// failed". In this line, a case counts as failed if it failed on any rank. Cases that need a device are skipped if there is
// none, and their names are printed.
//
//   tests_run "[spmd]" --names        lists the cases that [spmd] selects, one per line
//   TEST_CASES=file                   runs the cases named in the file, one per line, instead of those in the arguments
//   TEST_JOURNAL=file                 rank 0 appends: begin NAME · alive · end passed (failed, skipped, left) 1.2 3.4 NAME.
//                                   The numbers are wall time and CPU time in seconds, including child processes
#define CATCH_CONFIG_RUNNER
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "src/base/text.hpp"
#include "tests/device.hpp"
#include "tests/progress.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {
namespace {

// We cannot pass arguments to Catch2's listener and to the watchdog's callbacks, so the harness keeps its state in a global
// object. The program `chorale` itself avoids global state.
struct State {
  std::unique_ptr<mpi::Runtime> runtime;
  int rank = 0;
  int kept_output = -1;   // the memory file that replaces stdout on ranks other than 0
  off_t shown_until = 0;  // output before this offset was already shown or belongs to earlier cases
  char prefix[32] = "";   // "[rank 2] "
  char case_name[256] = "";
  int journal = -1;
  std::chrono::steady_clock::time_point began;  // when this case began
  double computed = 0;                          // CPU time before this case, in seconds
  bool ended = false;                           // the function of this case has returned or thrown
  std::string skipped;                          // why this case is skipped
  bool left = false;                            // skipped, because only `make test-all` runs it
  bool agreed_already = false;                  // a REQUIRE_ALL has told this rank that another rank has left the case
  int passed = 0, failed = 0, skips = 0;
  char text[1 << 15], lines[1 << 16];  // buffers of show_kept_output
} state;

// The functions from here to give_up must not allocate memory. If a case hangs, one of its threads may hold the allocator's
// lock.
void say(const char* text, std::size_t length) {
  if (write(STDERR_FILENO, text, length) < 0) return;
}
void say(const char* text) { say(text, std::strlen(text)); }

// Shows the kept output of this rank. Many lines are written with one system call, so that the lines of different ranks are
// not interleaved.
void show_kept_output() {
  if (state.kept_output < 0) return;
  ssize_t got = 0;
  while ((got = pread(state.kept_output, state.text, sizeof state.text, state.shown_until)) > 0) {
    state.shown_until += got;
    std::size_t length = 0;
    const auto add = [&](const char* text) {
      while (*text && length < sizeof state.lines) state.lines[length++] = *text++;
    };
    add(state.prefix);
    for (ssize_t i = 0; i < got; ++i) {
      const char c[] = {state.text[i], '\0'};
      add(c);
      if (c[0] == '\n' && i + 1 < got) add(state.prefix);
    }
    if (state.text[got - 1] != '\n') add("\n");
    say(state.lines, length);
  }
}

void give_up(Doing what) {
  show_kept_output();
  say(state.prefix);
  say("no sign of life ");
  say(what == Doing::waiting ? "while waiting for other ranks in" : "in");
  say(" test case: ");
  say(state.case_name);
  say("\n");
  _exit(static_cast<int>(Exit::watchdog));
}

void note(const std::string& line) {
  if (state.journal < 0) return;
  if (write(state.journal, line.data(), line.size()) < 0) std::perror("TEST_JOURNAL");
}

double processor_seconds() {
  tms t{};
  times(&t);
  const clock_t ticks = t.tms_utime + t.tms_stime + t.tms_cutime + t.tms_cstime;
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

void still_moves() { note("alive\n"); }

struct Listener : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    std::snprintf(state.case_name, sizeof state.case_name, "%s", info.name.c_str());
    if (state.kept_output >= 0) state.shown_until = lseek(state.kept_output, 0, SEEK_CUR);
    state.ended = state.agreed_already = false;
    state.skipped.clear();
    state.left = false;
    state.began = std::chrono::steady_clock::now();
    state.computed = processor_seconds();
    note(fmt::format("begin {}\n", state.case_name));
    doing(Doing::its_case);
  }

  void assertionStarting(const Catch::AssertionInfo&) override { alive(); }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const bool failed_here = stats.totals.testCases.failed > 0;
    std::cout.flush();
    std::fflush(stdout);
    if (failed_here) show_kept_output();  // before ranks_that_failed(), which waits even for a rank that hangs
    state.ended = true;
    std::string failed_on = failed_here ? fmt::format("rank {}", state.rank) : "";
    if (state.runtime && !state.agreed_already) failed_on = ranks_that_failed(failed_here);
    doing(Doing::nothing);
    const bool skipped = failed_on.empty() && !state.skipped.empty();
    ++(!failed_on.empty() ? state.failed : skipped ? state.skips : state.passed);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - state.began;
    note(fmt::format("end {} {:.3f} {:.3f} {}\n",
                     !failed_on.empty()      ? "failed"
                     : skipped && state.left ? "left"
                     : skipped               ? "skipped"
                                             : "passed",
                     took.count(), processor_seconds() - state.computed, state.case_name));
    if (state.rank == 0 && skipped) std::cout << "skipped: " << state.case_name << ": " << state.skipped << std::endl;
    if (state.rank == 0 && !failed_here && !failed_on.empty())
      std::cout << "FAILED on " << failed_on << ": " << state.case_name << std::endl;
  }
};
CATCH_REGISTER_LISTENER(Listener)

void keep_output_aside() {
  state.kept_output = memfd_create("output", MFD_CLOEXEC);
  if (state.kept_output < 0 || dup2(state.kept_output, STDOUT_FILENO) < 0) std::perror("memfd_create");
}

// Returns a Catch2 test specification that selects the cases listed in the file, one name per line. Each name is quoted, and
// its commas, quotes and backslashes are escaped.
std::string spec_of(const std::string& file) {
  std::ifstream names(file);
  std::string spec;
  for (std::string name; std::getline(names, name);) {
    spec += spec.empty() ? "\"" : ",\"";
    for (const char c : name) spec += std::strchr(",\\\"", c) ? std::string{'\\', c} : std::string{c};
    spec += "\"";
  }
  return spec;
}

int run(int argc, char** argv) {
  const Launch launch = read_launch(process_environment());
  std::vector<const char*> words(argv, argv + argc);
  const bool listing = std::erase(words, std::string_view("--names")) > 0;
  const std::string cases = environment("TEST_CASES", ""), journal = environment("TEST_JOURNAL", "");
  // Programs that a case starts must not see these variables.
  for (const char* ours : {"TEST_CASES", "TEST_JOURNAL"}) unsetenv(ours);
  if (!listing && (launch.size > 1 || (argc > 1 && std::string_view(argv[1]).starts_with("[spmd]"))))
    state.runtime = std::make_unique<mpi::Runtime>(launch);
  if (state.runtime) state.rank = state.runtime->rank();
  std::snprintf(state.prefix, sizeof state.prefix, "[rank %d] ", state.rank);
  if (state.rank != 0) keep_output_aside();
  if (state.rank == 0 && !journal.empty())
    state.journal = open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

  if (listing) words.insert(words.end(), std::begin(list_names), std::end(list_names));
  const std::string spec = cases.empty() ? "" : spec_of(cases);
  if (!cases.empty()) words = {argv[0], spec.c_str()};
  words.insert(words.end(), std::begin(plain_output), std::end(plain_output));
  int result = 0;
  {
    const Watchdog dog(std::stod(environment("TEST_LIMIT", "60")), still_moves, give_up);
    result = Catch::Session().run(static_cast<int>(words.size()), words.data());
  }
  if (listing) return 0;
  if (state.failed > 0) result = 1;  // a case failed on any rank
  if (state.rank == 0) {
    std::printf("%d passed, %d failed", state.passed, state.failed);
    std::printf(state.skips ? ", %d skipped\n" : "\n", state.skips);
  }
  std::fflush(stdout);
  state.runtime.reset();
  return result == 0 ? 0 : 1;
}

}  // namespace

void skip_case(const std::string& why) { state.skipped = why; }

bool only_in_test_all(const std::string& why) {
  if (thorough()) return false;
  state.skipped = "only in `make test-all`: " + why;
  return state.left = true;
}

// Called in each REQUIRE_ALL and at the end of each case. If a rank has thrown an exception, its next call of this function
// is the call at the end of the case, whereas the other ranks make their call in a REQUIRE_ALL. So the other ranks learn
// that a rank has left the case. The other ranks then stop too, and skip the call at the end of the case.
std::string ranks_that_failed(bool this_one) {
  const Doing before = doing(Doing::waiting);
  const auto failed = mpi::ranks_where(world().world(), this_one);
  const auto ended = mpi::ranks_where(world().world(), state.ended);
  doing(before);
  std::vector<std::string> names;
  for (int rank = 0; rank < world().size(); ++rank) {
    const bool left = !state.ended && std::count(ended.begin(), ended.end(), rank);
    if (left || std::count(failed.begin(), failed.end(), rank)) names.push_back(fmt::format("{}", rank));
  }
  const bool mixed = !ended.empty() && ended.size() < static_cast<std::size_t>(world().size());
  state.agreed_already = state.agreed_already || (mixed && !state.ended);
  if (names.empty() && mixed) return "some ranks that are still in the case";
  return names.empty() ? "" : (names.size() == 1 ? "rank " : "ranks ") + join(names, ", ");
}

const mpi::Runtime& world() {
  require(bool(state.runtime), "this test needs ranks: run it as mpirun -np 4 build/tests_run \"[spmd]\"");
  return *state.runtime;
}

}  // namespace chorale::test

int main(int argc, char** argv) { return chorale::test::run(argc, argv); }
