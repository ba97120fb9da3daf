// The end of a run that could not go on, in a form for programs. The guard (guard.hpp) puts its verdict beside its text for
// people into the dump of the run, and sends it to the supervisor of `chorale launch`. Only the verdict tells why a run
// ended: a launcher's exit code can be that of any rank, and can even be 0.
//
//   died            a signal killed a rank, or a rank exited without a message    rank, host
//   hung            no rank makes progress                                        the first late rank, its host
//   host_gone       a host is silent                                              host
//   failed          a rank reported an error and exited with its code             rank, host, exit code
//   asked_to_end    a signal or the launch asked ranks to end, and they were      rank (if it was one), host
//                   killed
//   launcher_gone   the launcher, or the supervisor, is dead                      host
#pragma once
#include <cstdint>
#include <string>

#include <chorale/named.hpp>

namespace chorale {

enum class VerdictKind : std::uint8_t { died, hung, host_gone, failed, asked_to_end, launcher_gone };
constexpr auto names_of(VerdictKind) {
  return chorale::Names{"kind of verdict", "died", "hung", "host_gone", "failed", "asked_to_end", "launcher_gone"};
}

struct Verdict {
  VerdictKind kind = VerdictKind::died;
  int rank = -1;              // −1: unknown, or no single rank
  std::string host = "";      // "": unknown
  std::string end = "";       // "was killed by SIGKILL"
  std::string doing = "";     // what the rank was doing: "step 12"
  int exit_code = 0;          // of a rank that failed
  double silent_seconds = 0;  // time without any progress before the verdict

  bool operator==(const Verdict&) const = default;
};

}  // namespace chorale
