#pragma once

#include <string>

namespace lockstep {

/// An environment variable that is set while this object exists, unless the user has set it: what a
/// library reads when it starts. Only while the process has no threads of its own.
class BriefVariable {
  public:
    BriefVariable(char const* name, std::string const& value);
    BriefVariable(BriefVariable const&) = delete;
    BriefVariable& operator=(BriefVariable const&) = delete;
    ~BriefVariable();

  private:
    char const* name_; ///< null: it was set before
};

} // namespace lockstep
