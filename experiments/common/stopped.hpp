// Prints to stderr that a signal ended a command before its work was done.
//
//   error: stopped
//     3 of 63 layouts were compared, 3 of them equal        completed work
//     start it again for all, or name some with --layouts   how to continue
//
// Unlike other errors, this one names no rank and no source line, because nothing went wrong in the program.
#pragma once
#include <string>

namespace chorale {

void say_stopped(const std::string& done, const std::string& how_to_continue);

}  // namespace chorale
