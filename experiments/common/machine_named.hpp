// Machine files that come with the program: `--machine selene` names experiments/machines/selene.toml.
#pragma once
#include <string>

#include "src/base/machine_file.hpp"

namespace chorale {

// Reads the machine file of this path, or the one of this name. If there is neither, a usage error lists all names.
Machine machine_named(const std::string& name);
// The same for a machine of accelerators. Throws a usage error if the file describes none.
System system_named(const std::string& name);

}  // namespace chorale
