#pragma once

#include <string>

namespace lockstep::app {

// How the commands are used that live in the training library. Their help is told without it: to
// load LibTorch takes long.
namespace usage {
inline constexpr char const* train =
    "lockstep train DECK... [--section.key VALUE]... [--force] [--quiet | --verbose | --json]";
inline constexpr char const* plan =
    "lockstep plan DECK [--ranks N] [--ranks-per-host M] [--section.key VALUE]...";
inline constexpr char const* check = "lockstep check [DECK] [--json] [--section.key VALUE]...";
inline constexpr char const* estimate =
    "lockstep estimate DECK [--steps N] [--max-ranks N] [--ranks-per-host N]\n"
    "                  [--batches B,B,...] [--price-per-hour P] [--watts W]\n"
    "                  [--network-gbit G] [--latency-us L] [--json] [--section.key VALUE]...";
inline constexpr char const* evaluate =
    "lockstep evaluate DECK CHECKPOINT|RUN [--section.key VALUE]...";
inline constexpr char const* models = "lockstep models [NAME]";
inline constexpr char const* tasks = "lockstep tasks [NAME]";
} // namespace usage

/// What `lockstep COMMAND --help` says of one of these.
std::string train_side_help(std::string const& command);

} // namespace lockstep::app
