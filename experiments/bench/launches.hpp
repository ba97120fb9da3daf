// Launches a benchmark several times. Only launches are independent measurements, because the calls of one launch share
// memory pages, cores and the load of other programs (experiments/common/statistics.hpp).
//
//   chorale bench all_reduce --ranks-per-launch 2 --launches 6 --out new.h5
//
//     launch 1    mpirun -n 2 chorale bench all_reduce --order=1791095845 …      the seed that orders its cases
//     launch 2    mpirun -n 2 chorale bench all_reduce --order=4282876139 …
//
//   new.h5        /launches: a row for each    /runs/launch-1/…: its complete record    /runs/launch-2/…
//
// After a signal, the complete launches are kept.
//
// The load of other programs changes within minutes, which would distort a comparison of two programs. `--against OTHER`
// therefore alternates the launches of this program and of OTHER. Each launch forms a pair with a launch of OTHER directly
// before or after it. The order within a pair is random. The launches of OTHER are recorded in a second file
// (new.against.h5). Both records have the same `session` attribute, so reports pair the launches that have equal names.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/bench/series_row.hpp"
#include "experiments/common/command.hpp"
#include "src/base/signals.hpp"

namespace chorale::bench {

class Launches {
 public:
  void declare(Options& options);
  void check(const Launch& launch, const std::string& out);
  bool wanted() const { return launches_ > 0; }

  struct Results {
    Rows rows;            // medians over the launches
    std::string verdict;  // which series is fastest, or with --against how the programs differ; "" if nothing is compared
    std::string disturbance = {};         // describes the load of other programs during the launches (report/disturbed.hpp)
    std::int64_t done = 0, all = 0;       // completed and requested launches; if done < all, a signal stopped the rest
    std::vector<std::string> files = {};  // paths of the records
  };
  // Runs all launches. After a signal, keeps only the complete launches. Merges the launches' records into one record at
  // `out`, unless `out` is "".
  Results run(Session& session, const std::string& out);
  std::string about(const Results& results) const;  // the notes above the table: launches, ranks, meaning of ±

 private:
  struct Contestant;
  void take_turns(Session& session, std::vector<Contestant>& contestants);
  bool launch_next(Session& session, Contestant& who, std::int64_t order, const std::function<void()>& meanwhile);

  std::int64_t launches_ = 0, ranks_ = 2, seed_ = 1;
  std::string against_;
  std::optional<Signals> signals_;
  bool warned_ = false;
};

// Merges the rows of all launches into medians over the launches, with intervals.
Rows merged(const std::vector<Rows>& launches);

}  // namespace chorale::bench
