#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rule.hpp"

namespace lockstep::config {

/// Parses a typed value; on failure, throws what was expected as a plain text (std::string), to
/// which the caller adds where the value stood.
void assign(std::int64_t& into, std::string const& text, Rule const& rule);
void assign(double& into, std::string const& text, Rule const& rule);
void assign(bool& into, std::string const& text, Rule const& rule);
void assign(std::string& into, std::string const& text, Rule const& rule);
void assign(std::vector<double>& into, std::string const& text, Rule const& rule);

/// A value as messages show it: of a long one, the beginning.
std::string shown(std::string const& value);

/// The text from which this value is parsed again.
std::string printed(std::int64_t value);
std::string printed(double value);
std::string printed(bool value);
std::string printed(std::string const& value);
std::string printed(std::vector<double> const& value);

} // namespace lockstep::config
