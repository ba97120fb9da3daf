// Includes toml++ (header-only, so that no library must be shipped), and converts TOML values to the text that options take.
#pragma once
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0

namespace chorale {
[[noreturn]] void refuse_toml();  // throws toml::parse_error
}

// The parser asserts where some invalid files lead it, such as a line with nothing but "[". A file must not end the program,
// so these assertions throw, whether or not NDEBUG is defined.
#define TOML_ASSERT(condition) (static_cast<bool>(condition) ? void() : ::chorale::refuse_toml())
#pragma push_macro("NDEBUG")
#undef NDEBUG
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <string>

namespace chorale {

// The value as a user would type it; list elements are joined by commas. Any other type is a usage error that names
// `origin`.
std::string setting_text(const toml::node& node, const std::string& key, const std::string& origin);

}  // namespace chorale
