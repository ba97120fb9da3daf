// Formats the first and the last lines of a report: how the run ended, the facts of the run, and the commands that show
// more.
//
//   runs/latest/run.h5                                             path, then why the run failed
//   failed: rank 1 on vm was killed by SIGKILL in step 113
//
//     command     build/chorale train --preset tiny                facts
//   …
//   all tables: chorale report runs/latest/run.h5 --all            footer
#pragma once
#include <string>

#include "experiments/report/record_set.hpp"
#include "src/record/reader.hpp"

namespace chorale::report {

// Returns the reason why the run failed. The reason comes from the run's record, or otherwise from the guards (processes
// that watch the ranks). Returns "" if the run did not fail. `file` is the record's path.
std::string trouble_of(const std::string& file, const Reader& record, std::size_t columns);

// Formats a fact: "  command     build/chorale train …", wrapped. Lines beyond `most` are left out.
std::string fact(const std::string& name, const std::string& text, std::size_t columns, std::size_t most = 3);

std::string facts_of(const Reader& record, std::size_t columns);            // command, start, machine
std::string disturbance_in(const RecordSet& records, std::size_t columns);  // warning of disturbed.hpp; "" without one
std::string footer_of(const std::string& file, std::size_t columns);        // the commands that show more

}  // namespace chorale::report
