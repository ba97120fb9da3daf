// Machine files that come with the program. For example, `--machine selene` names experiments/machines/selene.toml.
#pragma once
#include <string>

#include "src/base/machine_file.hpp"

namespace chorale {

// Reads a machine file. `name` is its path, or the name of a machine file that comes with the program. If there is no such
// file, throws a usage error that lists all names.
Machine machine_named(const std::string& name);
// Returns the accelerators that the machine file describes. Throws a usage error if it describes none.
System system_named(const std::string& name);

}  // namespace chorale
