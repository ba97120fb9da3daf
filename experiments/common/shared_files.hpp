// Files that come with the program: machines/, suites/ and published/. The source tree has them in experiments/, and an
// installation has them in share/chorale. Thus `--machine selene` and `compare small` work from any folder.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

// Returns the path of a file or folder in experiments/ or share/chorale. Both folders are searched relative to the program's
// folder.
std::filesystem::path shared_file(const std::filesystem::path& name);
std::vector<std::string> shared_names(const std::string& folder);  // the sorted names of the TOML files in this folder
// Returns `word` if it is the path of a file; otherwise the file of this name in machines/ or suites/. If there is no such
// file, throws a usage error that lists all names. `kind`: the name for such a file in the error, for example "machine".
std::filesystem::path shared_or_own(const std::string& word, const std::string& folder, const std::string& kind);

}  // namespace chorale
