// Megatron-LM's flags, one row a name: those that are ours too, those that set an option of ours, and those that are
// refused with what to use instead. `chorale train` and `plan` take them wherever they take their own.
#pragma once
#include <string>
#include <vector>

#include "src/base/flag_synonyms.hpp"

namespace chorale::train {

const std::vector<Word>& megatron_flags();
std::string megatron_table();  // in Markdown, a row a name

}  // namespace chorale::train
