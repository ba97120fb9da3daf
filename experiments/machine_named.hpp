// Machine files that come with the program: `--machine selene` names experiments/machines/selene.toml.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/machine_file.hpp"

namespace chorale {

// A file of the folder experiments/, beside the program as in the source tree, or below share/chorale, as it is installed.
std::filesystem::path shared_file(const std::filesystem::path& name);
std::vector<std::string> known_machines();  // that come with the program, by name
// The file of this path, or the machine of this name. A usage error names all machines if there is none.
Machine machine_named(const std::string& name);
// The same; a usage error if the file describes no accelerators.
System system_named(const std::string& name);

}  // namespace chorale
