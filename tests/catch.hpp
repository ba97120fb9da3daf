// Catch2, version 2 or 3. All differences between the two versions are handled here.
#pragma once
#include <string>
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using ListenerBase = Catch::EventListenerBase;
using Catch::Approx;
inline constexpr const char* plain_output[] = {"--colour-mode", "none"};
inline constexpr const char* list_names[] = {"--list-tests", "--verbosity", "quiet"};
inline auto says(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#else
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
using ListenerBase = Catch::TestEventListenerBase;
inline constexpr const char* plain_output[] = {"--use-colour", "no"};
inline constexpr const char* list_names[] = {"--list-test-names-only"};
inline auto says(const std::string& text) { return Catch::Matchers::Contains(text); }
#endif
