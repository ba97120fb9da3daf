// Includes toml++ (header-only, so that no library must be shipped), and converts TOML values to the text that options take.
#pragma once
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <string>

namespace chorale {

// The value as a user would type it; list elements are joined by commas. Any other type is a usage error that names
// `origin`.
std::string setting_text(const toml::node& node, const std::string& key, const std::string& origin);

}  // namespace chorale
