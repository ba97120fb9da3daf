// The folder of one run, below the folder that keeps them all. Nothing is ever overwritten: every run gets a new name.
//
//   runs/2026-11-21T03-41-37-info-5fd2/   run.h5  metrics.jsonl  config.toml  log/
//   runs/latest → the newest
#pragma once
#include <filesystem>
#include <string>

#include "src/base/clock.hpp"

namespace chorale {

// Throws a usage error, before any rank starts work, when no run could be kept below `parent`. Makes it if need be.
void require_writable(const std::filesystem::path& parent);

std::filesystem::path make_run_folder(const std::filesystem::path& parent, const std::string& command, const Clock& clock);

// One with a name of its own, such as a suite's runs have; one that was begun there and came to no end moves aside.
std::filesystem::path make_run_folder_at(const std::filesystem::path& folder);

void write_file(const std::filesystem::path& path, const std::string& text);  // throws unless the system took every byte

}  // namespace chorale
