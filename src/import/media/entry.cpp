#include "lockstep/build_id_value.hpp"

#include "decoders.hpp"

extern "C" lockstep::import::media::Decoders const lockstep_media_decoders;
lockstep::import::media::Decoders const lockstep_media_decoders = {
    LOCKSTEP_BUILD_ID, lockstep::import::media::decode_video,
    lockstep::import::media::decode_sound};
