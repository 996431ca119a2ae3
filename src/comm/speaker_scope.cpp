#include "comm/speaker_scope.hpp"

#include "comm/heartbeats.hpp"

namespace lockstep::comm {

SpeakerScope::SpeakerScope(Communicator const& comm)
    : speakers_(comm.heartbeats() != nullptr ? comm.heartbeats()->others_ : nullptr) {
    if (speakers_) {
        speakers_->fetch_add(1);
    }
}

SpeakerScope::~SpeakerScope() {
    if (speakers_) {
        speakers_->fetch_sub(1);
    }
}

} // namespace lockstep::comm
