// The table of Megatron-LM's flags, one row per name. A flag is the same here, sets one of our options, has no effect, or is
// refused with a hint what to use instead. `chorale train` and `plan` accept these flags wherever they accept their own.
#pragma once
#include <string>
#include <vector>

#include "src/base/flag_synonyms.hpp"

namespace chorale::train {

const std::vector<Word>& megatron_flags();
std::string megatron_table();  // in Markdown, one row per name

}  // namespace chorale::train
