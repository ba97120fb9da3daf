// Machine files that come with the program: `--machine selene` names experiments/machines/selene.toml.
#pragma once
#include <string>

#include "src/base/machine_file.hpp"

namespace chorale {

// The file of this path, or the machine of this name. A usage error names all machines if there is none.
Machine machine_named(const std::string& name);
// The same; a usage error if the file describes no accelerators.
System system_named(const std::string& name);

}  // namespace chorale
