// The folder of one run, below the folder of all runs. Nothing is overwritten: every run gets a new name.
//
//   runs/2026-11-21T03-41-37-info-5fd2/   run.h5  metrics.jsonl  config.toml  log/
//   runs/latest → the newest run
#pragma once
#include <filesystem>
#include <string>

#include "src/base/clock.hpp"

namespace chorale {

// The path itself, or the nearest folder above it that exists.
std::filesystem::path nearest_existing(const std::filesystem::path& path, std::error_code& error);

// Throws a usage error, before any rank starts work, if no file can be made in this folder, or if it does not exist and
// cannot be made. Leaves nothing behind. `option` names the folder.
void require_writable(const std::filesystem::path& folder, const std::string& option = "--run-dir");
// The same for a file that the program will make. `makes_folders`: the program also makes the folders above it.
void require_writable_file(const std::filesystem::path& file, const std::string& option, bool makes_folders = true);

// Creates the folder, and `parent` if needed.
std::filesystem::path make_run_folder(const std::filesystem::path& parent, const std::string& command, const Clock& clock);

// The command of a run, from the name of its folder: "info". "" for other names.
std::string command_of_run(const std::string& name);

// Creates a folder with a given name, for a run of a suite. An existing folder, from an unfinished run, is moved aside.
std::filesystem::path make_run_folder_at(const std::filesystem::path& folder);

// The record that a path names: the file itself, the run.h5 in the folder of a run, or that of the newest run in a folder of
// runs. Throws a usage error if a folder has none.
std::filesystem::path record_named(const std::filesystem::path& path);

void write_file(const std::filesystem::path& path, const std::string& text);  // throws unless every byte was written

}  // namespace chorale
