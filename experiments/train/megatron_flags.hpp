// The table of Megatron-LM's flags, one row per name. Chorale either has the same flag, translates it into one of its
// options, ignores it, or refuses it and says what to use instead. `chorale train` and `chorale plan` accept these flags
// wherever they accept chorale's flags.
#pragma once
#include <string>
#include <vector>

#include "src/base/flag_synonyms.hpp"

namespace chorale::train {

const std::vector<Word>& megatron_flags();
std::string megatron_table();  // in Markdown, one row per name

}  // namespace chorale::train
