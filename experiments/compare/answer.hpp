// Ends a comparison: prints the table of its runs, the command that resumes it, and the paths of its record and page.
#pragma once
#include <string>

#include "experiments/common/run_record.hpp"
#include "experiments/compare/summary.hpp"

namespace chorale::compare {

struct End {
  int ranks = 1;                              // number of ranks that were started
  bool stopped = false;                       // a signal stopped the comparison
  std::int64_t rounds = 0, no_time_from = 0;  // no_time_from: the first round that the budget excludes; 0 if all rounds fit
  double budget = 0;                          // seconds
};

// "mpirun -n 4 chorale compare --resume runs/…"
std::string resume_command(std::int64_t ranks, const RunRecord& record);

// Ends the record, prints the results, and writes the HTML page beside the record.
void finish(RunRecord& record, const Suite& suite, const SuiteSummary& summary, const End& end);

}  // namespace chorale::compare
