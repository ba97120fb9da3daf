// TOML through toml++, in one file so that no library has to be carried along; and its values as the texts that options take.
#pragma once
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <string>

namespace chorale {

// As a user would have typed it; the parts of a list are joined by commas. A usage error names `origin` where it is none of these.
std::string setting_text(const toml::node& node, const std::string& key, const std::string& origin);

}  // namespace chorale
