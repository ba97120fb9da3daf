// The keepers of a launch (src/base/keeper/): one on each host, which holds the snapshots of the ranks there.
//
//   --ranks      one keeper on this host, forked from the supervisor
//   --hosts      n0 ◀── mpirun --host n0 chorale keep … ── supervisor ── mpirun --host n1 chorale keep … ──▶ n1
//                 └────────── the list of its snapshots, twice a second (other_guards.hpp) ──▶ supervisor
//
// A keeper on another host has a launcher of its own, so it outlives the ranks and the loss of other hosts. A host on which
// no keeper answers is not used: a start there would fail, too.
#pragma once
#include <filesystem>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "src/base/child_program.hpp"
#include "src/base/guard/other_guards.hpp"
#include "src/base/keeper/keeper.hpp"
#include "src/base/log.hpp"

namespace chorale::launch {

class Keepers {
 public:
  // `folder`: for the messages of launchers. If `on_this_host`, there is one keeper, and hosts have no meaning.
  Keepers(std::string name, std::filesystem::path folder, bool on_this_host, Clock& clock, Log& log);
  ~Keepers();
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;

  const std::string& name() const { return name_; }
  bool is_usable() const { return is_usable_; }  // false once no keeper can be started at all

  // Starts the missing keepers of these hosts. To be called again and again; hears keepers, and tells them that the
  // supervisor lives. Returns the hosts whose keepers have failed since the last call.
  std::vector<std::string> tend(const std::vector<std::string>& hosts);
  bool are_ready(const std::vector<std::string>& hosts) const;
  void refresh();  // asks all keepers for their lists, and waits for these
  std::vector<KeptRank> list(const std::vector<std::string>& hosts);  // the snapshots in the keepers of these hosts

 private:
  struct HostKeeper {
    std::string host;
    int launcher = -1;  // its process
    double began = 0;
    std::string trouble = "";  // why its launcher cannot be started
    bool answers = false;      // has sent its list
    double listed = 0;         // when it sent the newest
    bool shares = false;       // the host has another name, under which it has a keeper
  };
  void tend_this_host();
  void start(const std::string& host);
  void hear();
  std::string why_failed(HostKeeper& keeper);  // "" if it has not
  std::filesystem::path log_of(const std::string& host) const { return folder_ / ("keeper-" + host + ".log"); }
  void end(HostKeeper& keeper);  // does not wait
  void reap();

  const std::string name_;
  const std::filesystem::path folder_;
  const bool on_this_host_;
  const std::string executable_ = own_executable();
  Clock& clock_;
  Log& log_;
  pid_t forked_ = -1;
  bool is_usable_ = true;
  OtherGuards lines_;
  std::string invitation_;
  std::list<HostKeeper> keepers_;
  std::vector<std::pair<int, double>> ending_;                       // launchers that were asked to end, and when
  std::vector<std::pair<std::string, std::vector<KeptRank>>> kept_;  // by host
};

}  // namespace chorale::launch
