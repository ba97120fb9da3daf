// The folder of one run, inside the folder of all runs. Existing folders are never overwritten, because every run gets a new
// name.
//
//   runs/2026-11-21T03-41-37-info-5fd2/   run.h5  metrics.jsonl  config.toml  log/
//   runs/latest → the newest run
#pragma once
#include <filesystem>
#include <string>

#include <chorale/clock.hpp>

namespace chorale {

// Returns the path itself, or the nearest folder above it that exists.
std::filesystem::path nearest_existing(const std::filesystem::path& path, std::error_code& error);

// Throws a usage error, before any rank starts work, if this folder cannot be created, or if no file can be created in it.
// Leaves no files or folders behind. `option` is the option that specified the folder.
void require_writable(const std::filesystem::path& folder, const std::string& option = "--run-dir");
// Does the same as require_writable for a file that the program will create. If `makes_folders` is true, the program also
// creates the parent folders of the file.
void require_writable_file(const std::filesystem::path& file, const std::string& option, bool makes_folders = true);

// Creates the folder, and `parent` if needed.
std::filesystem::path make_run_folder(const std::filesystem::path& parent, const std::string& command, const Clock& clock);

// Returns the command of a run, such as "info", from the name of its folder. Returns "" if the name is not a run's.
std::string command_of_run(const std::string& name);

// Creates a folder with a given name, for a run of a suite. If an unfinished run has left a folder with this name, that
// folder is renamed first.
std::filesystem::path make_run_folder_at(const std::filesystem::path& folder);

// Returns the record that a path refers to. The path can be the record file, a run folder that contains run.h5, or a folder
// of runs. In a folder of runs, the newest run is used. Throws a usage error if a folder has no record.
std::filesystem::path record_named(const std::filesystem::path& path);

void write_file(const std::filesystem::path& path, const std::string& text);  // throws unless all bytes were written

}  // namespace chorale
