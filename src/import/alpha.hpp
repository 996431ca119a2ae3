#pragma once

namespace lockstep::import {

/// What to do with the alpha channel.
enum class Alpha {
    drop,  ///< it is left out: colours are taken as they are stored
    blend, ///< pixels are blended with black
    keep,  ///< one more channel; 255 where a file says nothing
};

} // namespace lockstep::import
