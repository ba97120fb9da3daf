// The first and the last lines of a record's text: how its run ended, what it was, and how to see the rest.
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

// How the run ended, if it did not end well: the reason in its record, or else what the guards of its hosts saw. "" if all
// is well. `file` is the record's path.
std::string trouble_of(const std::string& file, const Reader& record, std::size_t columns);

// "  command     build/chorale train …", wrapped; lines beyond `most` are left out.
std::string fact(const std::string& name, const std::string& text, std::size_t columns, std::size_t most = 3);

std::string facts_of(const Reader& record, std::size_t columns);            // command, start, machine
std::string disturbance_in(const RecordSet& records, std::size_t columns);  // disturbed.hpp, as a fact; "" without any
std::string footer_of(const std::string& file, std::size_t columns);        // the commands that show the rest

}  // namespace chorale::report
