// Files that come with the program: machines/, suites/ and published/. In the source tree they are in experiments/, after an
// installation in share/chorale. So `--machine selene` and `compare small` work from any folder.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

// A file or folder of experiments/ or share/chorale. Both are looked for beside the folder of the program.
std::filesystem::path shared_file(const std::filesystem::path& name);
std::vector<std::string> shared_names(const std::string& folder);  // the sorted names of the TOML files in this folder
// Returns `word` if it is the path of a file; otherwise the file of this name in machines/ or suites/. If there is none, a
// usage error lists all names. `kind` tells the error what was looked for: "machine".
std::filesystem::path shared_or_own(const std::string& word, const std::string& folder, const std::string& kind);

}  // namespace chorale
