// A benchmark launched several times. Only launches are independent measurements, since the calls of one share its pages,
// its cores and whatever else the machine did meanwhile (experiments/statistics.hpp).
//
//   chorale bench all_reduce --ranks-per-launch 2 --launches 6 --out new.h5
//
//     launch 1    mpirun -n 2 chorale bench all_reduce --order=1791095845 …      the order of cases: shuffled by this seed
//     launch 2    mpirun -n 2 chorale bench all_reduce --order=4282876139 …
//
//   new.h5        /launches: a row for each    /runs/launch-1/…: its own record, whole    /runs/launch-2/…
//
// What the machine does changes over minutes, so launches made at different times differ by that, too. `--against OTHER`
// therefore has another program take turns: each launch gets a twin right before or after it, as a coin falls, in a record
// of its own (new.against.h5). Both records carry the same `session`, which tells reports that launches of one name are
// partners.
#pragma once
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/command.hpp"
#include "src/base/signals.hpp"

namespace chorale::bench {

using Rows = std::vector<nlohmann::ordered_json>;  // as describe() makes them

class Launches {
 public:
  void declare(Options& options);
  void check(const Launch& launch, const std::string& out);
  bool wanted() const { return launches_ > 0; }

  // Starts them all. The rows hold medians over the launches; the records of the launches go into one at `out`, unless that
  // is "".
  Rows run(Session& session, const std::string& out);
  std::string about() const;  // one line that says what the rows are

 private:
  struct Contestant;
  void take_turns(Session& session, std::vector<Contestant>& contestants);
  void launch_next(Session& session, Contestant& who, std::int64_t order, const std::function<bool(int)>& stopped);

  std::int64_t launches_ = 0, ranks_ = 2, seed_ = 1;
  std::string against_;
  std::optional<Signals> signals_;
  bool warned_ = false;
};

std::int64_t wrong_in(const Rows& rows);  // elements

// One list of rows from those of all launches: medians over the launches, and their intervals.
Rows merged(const std::vector<Rows>& launches);

}  // namespace chorale::bench
