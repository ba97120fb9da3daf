// Builds the commands that messages recommend. Users can paste the recommended commands into the shell that started this
// program.
#pragma once
#include <cstdint>
#include <string>

namespace chorale {

// The name of this program as the user typed it: "build/chorale", or "chorale" if the shell found it on PATH.
std::string program();

// "mpirun -n 4 build/chorale compare --resume runs/x"; for one rank the command has no mpirun.
std::string command_on(std::int64_t ranks, const std::string& words);

}  // namespace chorale
