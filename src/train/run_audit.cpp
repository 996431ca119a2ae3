#include "run_audit.hpp"

#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"

namespace lockstep::train {

RunAudit::RunAudit(comm::Communicator const& world, comm::Topology const& topology,
                   config::Deck const& deck, Workload const& work)
    : world_(world), work_(work) {
    if (topology.local_rank != 0) {
        return;
    }
    if (work.environment && !trimmed(deck.data.train).empty()) {
        of_environment_ =
            std::make_unique<data::Dataset>(data::DatasetOptions{.files = deck.data.train});
    }
    audit_ = make();
}

std::unique_ptr<data::Audit> RunAudit::make() const {
    return std::make_unique<data::Audit>(
        std::vector<data::Dataset const*>{of_environment_.get(), work_.train.get(),
                                          work_.validation.get(), work_.test.get()},
        work_.train ? work_.train->viewers() : data::Viewers{});
}

std::vector<std::string> RunAudit::remarks() const {
    return audit_ ? audit_->remarks() : std::vector<std::string>{};
}

std::optional<std::string> RunAudit::record() const {
    return audit_ ? std::optional(audit_->record()) : std::nullopt;
}

void RunAudit::start() {
    if (audit_) {
        audit_->start();
    }
}

void RunAudit::require_good() const {
    if (audit_) {
        audit_->require_good();
    }
}

void RunAudit::share() {
    auto known = audit_ ? audit_->known() : std::vector<std::uint64_t>{};
    known.resize(
        comm::all_reduce(world_, static_cast<std::uint64_t>(known.size()), comm::Reduce::maximum));
    comm::all_reduce(world_, std::span(known), comm::Reduce::maximum);
    if (audit_) {
        audit_->learn(known);
    }
}

void RunAudit::settle(bool whole_epoch) {
    constexpr std::uint64_t little = std::uint64_t{1} << 30;
    comm::agree(world_, "checking the data", [&] {
        if (audit_ && (whole_epoch || audit_->bytes() <= little)) {
            audit_->finish();
        }
    });
    share();
    comm::agree(world_, "checking the data", [&] { require_good(); });
}

std::optional<std::string> RunAudit::known_of(checkpoint::Record const& record) const {
    auto const known = record.notes.find("data");
    bool const comparable = audit_ && world_.is_root() && known != record.notes.end();
    return comparable ? std::optional(known->second) : std::nullopt;
}

void RunAudit::compare(checkpoint::Record const& record) {
    if (auto const known = known_of(record)) {
        audit_->compare(*known);
    }
}

bool RunAudit::differs_from(checkpoint::Record const& record) const {
    auto const known = known_of(record);
    return known && comm::failure_of([&] { make()->compare(*known); });
}

} // namespace lockstep::train
