// Files that MPI leaves behind if a run is killed: shared memory that its ranks map, and the launcher's folder. While a rank
// lives, the kernel lists the files that it maps, so no names have to be known.
#pragma once
#include <filesystem>
#include <set>
#include <string>

namespace chorale {

std::set<std::filesystem::path> shared_files_of(int pid);  // files in /dev/shm that the process maps
// The folder that Open MPI's launcher makes for one job, from the environment of its ranks; "" with another launcher.
std::filesystem::path session_folder();

}  // namespace chorale
