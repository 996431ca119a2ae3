#pragma once

#include <string>

namespace lockstep::program {

/// The last line of the user's Python in a stack that torch.export recorded, "model.py, line 8: x =
/// ...".
std::string origin_of(std::string const& stack);

/// The last path in "key,path,type;key,path,type", from the outermost module to the innermost.
std::string module_of(std::string const& stack);

} // namespace lockstep::program
