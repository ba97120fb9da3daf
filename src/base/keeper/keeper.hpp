// The keeper of a host is a small process that holds the snapshots of ranks (kept.hpp) while the ranks are started again. It
// never reads the state itself. It is started by the supervisor of a launch, and ends with the supervisor, which frees the
// memory of all snapshots. Its socket has an abstract name that contains the launch and the user.
//
//   supervisor ── starts ─▶ keeper ◀── "keep START RANK SIZE" + 4 files ── each rank of a start
//        └── "list" ────────▶   │
//                               └──── "list", "give START RANK" + 4 files ──▶ the ranks of the next start
//
// On this host, the supervisor forks the keeper. On other hosts, a launcher starts it (`chorale keep`), and it sends its
// list to the supervisor over TCP, like a guard (guard_words.hpp).
//
// Snapshots of earlier starts are dropped as soon as a rank of a later start has kept two steps: by then, all ranks on all
// hosts have kept the first of them.
#pragma once
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/base/keeper/kept.hpp"
#include "src/base/passed_files.hpp"

namespace chorale {

// The environment variable with the name of a launch's keepers, which also contains the number of the start: "NAME START".
inline constexpr const char* keeper_variable = "CHORALE_KEEPER";

// The snapshots of one rank of one start, as the keeper lists them.
struct KeptRank {
  std::int64_t start = 0;
  int rank = 0, size = 1;
  std::array<std::int64_t, kept_generations> steps = {-1, -1};
};

// The newest step that all ranks of a start have kept, for each start that has such a step; the newest step comes first.
struct KeptStep {
  std::int64_t start = 0, step = 0;
  int size = 1;
};
std::vector<KeptStep> complete_steps(const std::vector<KeptRank>& ranks);  // keepers of several hosts can hold one rank
std::string to_text(const KeptRank& rank);                                 // one line
std::vector<KeptRank> kept_ranks_in(const std::string& lines);

class Keeper {
 public:
  // Starts the process. Returns its PID, or −1 if it cannot be started. It is killed when this process ends.
  static pid_t start(const std::string& name);
  // Keeps in this process, until the supervisor is gone. `host`: the supervisor's name for this host. `supervisor`: its
  // invitation (other_guards.hpp). Returns false at once if there is a keeper of this user already: the host has two names.
  // `chorale keep` then ends with the code `another_keeps`, which no launcher makes of its own accord.
  static constexpr int another_keeps = 17;
  static bool keep(const std::string& name, const std::string& host, const std::string& supervisor);
};

// A connection to the keeper of this host.
class KeeperLine {
 public:
  explicit KeeperLine(const std::string& name);  // connects, if a keeper of this user has this name
  bool is_open() const { return static_cast<bool>(line_); }
  bool is_alive() const;  // whether the keeper has not ended since

  bool keep(const KeptRank& rank, const std::array<KeptFiles, kept_generations>& files);
  std::vector<KeptRank> list();
  // Returns the files of a rank, or files without descriptors if the keeper does not have them.
  std::array<KeptFiles, kept_generations> take(std::int64_t start, int rank);

 private:
  PassedFiles ask(const std::string& request, const std::vector<int>& files = {});

  Descriptor line_;
};

}  // namespace chorale
