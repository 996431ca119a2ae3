#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rule.hpp"

namespace lockstep::config {

/// A typed value from its text; what was expected is thrown as a plain text (std::string), for the
/// caller to say where it stood.
void assign(std::int64_t& into, std::string const& text, Rule const& rule);
void assign(double& into, std::string const& text, Rule const& rule);
void assign(bool& into, std::string const& text, Rule const& rule);
void assign(std::string& into, std::string const& text, Rule const& rule);
void assign(std::vector<double>& into, std::string const& text, Rule const& rule);

/// A value in a message: a long one by its beginning.
std::string shown(std::string const& value);

/// The text that gives this value again.
std::string printed(std::int64_t value);
std::string printed(double value);
std::string printed(bool value);
std::string printed(std::string const& value);
std::string printed(std::vector<double> const& value);

} // namespace lockstep::config
