#pragma once

namespace lockstep::app {

/// "commit 0123456789ab", or why that is not known: a source that each build writes.
char const* commit_text();

} // namespace lockstep::app
