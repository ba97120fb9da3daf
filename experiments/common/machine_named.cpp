#include "experiments/common/machine_named.hpp"

#include "experiments/common/shared_files.hpp"
#include "src/base/error.hpp"

namespace chorale {

Machine machine_named(const std::string& name) { return machine_for(shared_or_own(name, "machines", "machine").string()); }

System system_named(const std::string& name) {
  const Machine machine = machine_named(name);
  if (!machine.system)
    usage_error("the machine file describes no accelerators", name + " has no [accelerator]",
                "name a machine of docs/machine_file.md, or add the tables that this page describes");
  return *machine.system;
}

}  // namespace chorale
