// `chorale plan --table FILE.csv`: predicts every row of a published table, and compares it with what was measured.
#pragma once
#include <string>

#include "experiments/common/command.hpp"

namespace chorale::plan {

struct TableRequest {
  std::string table, machine, assumptions;  // files; empty: as the series says; those beside the program
  std::string format = "text";
};
void print_published(const TableRequest& request, const Session& session);

}  // namespace chorale::plan
