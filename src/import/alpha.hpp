#pragma once

namespace lockstep::import {

/// What becomes of how opaque pixels are.
enum class Alpha {
    drop,  ///< nothing: colours are taken as they are stored
    blend, ///< pixels stand before black
    keep,  ///< one more channel; 255 where a file says nothing
};

} // namespace lockstep::import
