#include "import/import.hpp"

#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "base/hash.hpp"
#include "base/lock_holder.hpp"
#include "base/own_file.hpp"
#include "base/text.hpp"
#include "comm/agree.hpp"
#include "comm/collectives.hpp"
#include "data/class_names.hpp"
#include "data/verify.hpp"
#include "lockstep/base/error.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "join.hpp"
#include "outputs.hpp"
#include "part.hpp"
#include "part_sums.hpp"
#include "split.hpp"

namespace lockstep::import {

namespace {

/// The version of what `write_part` writes: parts of another version are made again.
constexpr int part_version = 4;

/// The directory of the parts is removed in the end: it must not hold anything of the user's.
void require_own(std::filesystem::path const& spool) {
    namespace fs = std::filesystem;
    std::error_code none; // then it is made, or making it says why not
    auto const note = spool / "identity";
    bool const known = fs::is_regular_file(note, none) && read_text(note).size() == hex(0).size();
    auto const is_own = [&](std::string const& name) {
        return name == "lock" || name.starts_with("identity.partial-") ||
               name.starts_with(".nfs") || // what is open on NFS, and was removed
               (known && (name == "identity" || name.starts_with("part-") ||
                          name.find(".done") != name.npos));
    };
    for (fs::directory_iterator at(spool, none); !none && at != fs::end(at); at.increment(none)) {
        auto const name = at->path().filename().string();
        if (!is_own(name)) {
            throw Error(ExitCode::cannot_create,
                        {spool.string(),
                         concat("an import keeps its parts in this directory and then removes it, "
                                "but it holds ",
                                name, ", which is not of an import"),
                         "Move or rename this directory, or name another OUT"});
        }
    }
}

std::string part_name(std::size_t number) {
    return concat("part-", zero_padded(static_cast<std::int64_t>(number), 6));
}

/// One import, from its plan to its files. What is said of it is the same on every rank.
class Import {
  public:
    Import(comm::Communicator const& comm, ImportSource const& source, ImportOptions const& options,
           ImportProgress const& progress)
        : comm_(comm), source_(source), options_(options), progress_(progress),
          spool_(options.out.string() + ".importing") {
        comm::agree(comm_, "planning the import", [&] { plan(); });
        agree_on_identity();
    }

    ImportReport run() {
        verify_source();
        make_parts();
        sum_up();
        require_same_source();
        make_files();
        comm::agree(comm_, "removing the parts", [&] {
            if (comm_.is_root()) {
                std::error_code ignored; // the files are there: what is left does no harm
                std::filesystem::remove_all(spool_, ignored);
            }
        });
        return std::move(report_);
    }

    /// After a failure that all ranks agreed on: nobody would look for the parts of an import whose
    /// source or command was wrong. Others can continue: whether this one can.
    bool keeps_parts(ExitCode code) const {
        std::error_code ignored; // the failure that brought us here is the one to tell
        bool const keeps = (code == ExitCode::interrupted || code == ExitCode::io ||
                            code == ExitCode::memory || code == ExitCode::cannot_create) &&
                           std::filesystem::exists(plan_.parts.front().path, ignored);
        if (comm_.is_root() && !keeps) {
            std::filesystem::remove_all(spool_, ignored);
        }
        return keeps;
    }
    std::filesystem::path const& parts() const { return spool_; }

  private:
    void before_part() const {
        if (options_.before_part) {
            options_.before_part();
        }
    }
    void plan();
    void agree_on_identity();
    void prepare();
    void verify_source();
    void require_same_source() const;
    void make_parts();
    void note_all(std::string const& told);
    void sum_up();
    void require_samples() const;
    void make_files();
    std::uint64_t make_file(ShardPlan const& shard) const;
    void remove_others() const;

    comm::Communicator const& comm_;
    ImportSource const& source_;
    ImportOptions const& options_;
    ImportProgress const& progress_;
    std::filesystem::path spool_;
    std::optional<FileLock> lock_;      ///< of the spool, on rank 0
    std::uint64_t source_identity_ = 0; ///< a hash of it
    std::vector<ItemSet> sets_;
    std::vector<std::vector<std::int64_t>> items_; ///< of each part
    JoinPlan plan_;
    PartSums sums_;
    std::vector<std::string> refused_; ///< parts of this rank that others have made
    ImportReport report_;
};

void Import::plan() {
    plan_.form = form_with_sources(source_, !options_.without_sources);
    plan_.deflate = options_.deflate;
    sets_ = split_items(source_, options_.split);
    data::require_names(plan_.form.class_names);
    for (std::size_t i = 0; i < plan_.form.fields.size(); ++i) {
        require_stored(plan_.form.fields[i].name, concat("the name of dataset ", i + 1));
    }
    for (auto const& [attribute, texts] : plan_.form.texts) {
        for (std::size_t i = 0; i < texts.size(); ++i) {
            require_stored(texts[i], concat("attribute ", attribute, ", name ", i + 1));
        }
    }
    auto identity = source_.identity();
    source_identity_ = hash64(identity);
    identity = concat(part_version, " ", identity, options_.skip_bad ? " skip-bad" : "",
                      options_.without_sources ? " no-sources" : "");
    auto const max = static_cast<std::size_t>(std::max<std::int64_t>(source_.items_at_once(), 1));
    for (std::size_t s = 0; s < sets_.size(); ++s) {
        auto const& items = sets_[s].items;
        for (std::size_t first = 0; first < items.size(); first += max) {
            auto const at = items.begin() + static_cast<std::ptrdiff_t>(first);
            auto const count = std::min(max, items.size() - first);
            items_.push_back({at, at + static_cast<std::ptrdiff_t>(count)});
            plan_.parts.push_back({s, 0, 0, spool_ / part_name(items_.size() - 1)});
        }
        identity += concat(" ", sets_[s].name, " ",
                           hex(hash64(std::as_bytes(std::span<std::int64_t const>(items)))));
    }
    plan_.identity = hash64(identity);
    if (items_.empty()) {
        throw Error(ExitCode::no_input,
                    {concat("cannot create ", options_.out.string()), "the source holds no samples",
                     "Check the path of the source and its contents, or name another source"});
    }
    sums_ = PartSums(plan_, sets_.size());
}

void Import::agree_on_identity() {
    auto of_root = plan_.identity;
    comm::broadcast(comm_, std::span(&of_root, 1));
    comm::agree(comm_, "looking at the source", [&] {
        if (of_root != plan_.identity) {
            throw Error(ExitCode::no_input,
                        {"this rank sees a different source than rank 0",
                         "the two ranks see different lists of files, or a file with different "
                         "sizes or modification times",
                         "Put the source on a file system that all hosts share"});
        }
    });
    comm::agree(comm_, "preparing the import", [&] {
        if (comm_.is_root()) {
            prepare();
        }
    });
}

/// Files that this very import has made before it was interrupted may be there.
void Import::prepare() {
    auto const note = spool_ / "identity";
    require_own(spool_);
    auto const identity = hex(plan_.identity);
    bool const continues =
        std::filesystem::exists(note) && distrust(note).empty() && read_text(note) == identity;
    bool const several = std::any_of(sets_.begin(), sets_.end(),
                                     [](ItemSet const& set) { return !set.name.empty(); });
    require_place(options_.out, several, options_.overwrite || continues);
    make_private_directory(spool_);
    lock_.emplace(spool_ / "lock");
    if (lock_->is_held_elsewhere()) {
        throw Error(ExitCode::cannot_create, {concat("cannot create ", options_.out.string()),
                                              concat("another import is writing it (",
                                                     lock_holder(spool_ / "lock").text, ")"),
                                              "Wait until that import ends, or name another OUT"});
    }
    write_text_durably(note, identity);
}

void Import::require_same_source() const {
    comm::agree(comm_, "looking at the source again", [&] {
        if (comm_.is_root() && hash64(source_.identity()) != source_identity_) {
            throw Error(
                ExitCode::data,
                {"the source was changed while it was imported",
                 "the data set would mix samples from before and after the change",
                 "Wait until no program writes to the source, then start the import again"});
        }
    });
}

/// Each rank compares blocks of its own with the source's checksums; a status reduction after each
/// round ends all at the first damage.
void Import::verify_source() {
    constexpr std::uint64_t at_once = std::uint64_t{256} << 20;
    std::uint64_t bytes = 0;
    comm::agree(comm_, "looking for checksums", [&] { bytes = source_.bytes_to_verify(); });
    comm::broadcast(comm_, std::span(&bytes, 1));
    auto const ranks = static_cast<std::uint64_t>(comm_.size());
    auto const rounds = (bytes + at_once * ranks - 1) / (at_once * ranks);
    std::string told;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        comm::agree(comm_, "verifying the source", [&] {
            before_part();
            auto const which = round * ranks + static_cast<std::uint64_t>(comm_.rank());
            told += source_.verify(which, rounds * ranks);
        });
        progress_("verifying the source", static_cast<std::int64_t>(round + 1),
                  static_cast<std::int64_t>(rounds));
    }
    note_all(told);
}

/// Notes lines of all ranks.
void Import::note_all(std::string const& told) {
    for (auto const& lines : comm::all_gather_text(comm_, told)) {
        for (auto& line : split(lines, '\n')) {
            if (!line.empty()) {
                report_.notes.push_back(std::move(line));
            }
        }
    }
}

/// Rank r makes parts r, r + ranks, …; a status reduction after each round ends all at the first
/// failure.
void Import::make_parts() {
    auto const ranks = static_cast<std::size_t>(comm_.size());
    std::int64_t kept = 0;
    std::int64_t done = 0;
    for (std::size_t first = 0; first < items_.size(); first += ranks) {
        comm::agree(comm_, options_.doing, [&] {
            before_part();
            auto const mine = first + static_cast<std::size_t>(comm_.rank());
            if (mine >= items_.size()) {
                return;
            }
            auto const& path = plan_.parts[mine].path;
            auto const foreign = distrust(path);
            auto part =
                foreign.empty() ? read_part(path, plan_.identity, plan_.form) : std::nullopt;
            if (!foreign.empty()) {
                refused_.push_back(concat(path.string(), " was made again: ", foreign));
            }
            if (part) {
                ++kept;
            } else {
                part = read_items(source_, plan_.form, items_[mine], options_.skip_bad);
                write_part(path, plan_.identity, *part);
            }
            sums_.count(mine, plan_.parts[mine], *part);
        });
        for (auto i = first; i < std::min(first + ranks, items_.size()); ++i) {
            done += static_cast<std::int64_t>(items_[i].size());
        }
        progress_("importing", done, source_.items());
    }
    report_.parts_kept = comm::all_reduce(comm_, kept, comm::Reduce::sum);
    note_all(joined(refused_, "\n"));
}

void Import::sum_up() {
    sums_.sum_over_ranks(comm_);
    for (std::size_t s = 0; s < sets_.size(); ++s) {
        report_.sets.push_back({sets_[s].name, static_cast<std::int64_t>(sets_[s].items.size()), 0,
                                sets_[s].groups, sums_.class_counts(s)});
    }
    for (std::size_t i = 0; i < plan_.parts.size(); ++i) {
        auto& set = report_.sets[plan_.parts[i].set];
        plan_.parts[i].first = static_cast<std::uint64_t>(set.samples);
        plan_.parts[i].samples = static_cast<std::uint64_t>(sums_.samples(i));
        set.samples += sums_.samples(i);
    }
    report_.skipped = sums_.skipped();
    comm::agree(comm_, "counting the samples", [&] { require_samples(); });
    for (auto const& [text, note] : sums_.notes()) {
        report_.notes.push_back(concat(amount_of(static_cast<std::uint64_t>(note.items), "item"),
                                       ", such as ", note.example, ": ", text));
    }
    sums_.give_moments(plan_);
}

/// Throws  Error 65 for a set without a sample, which nothing could be done with
void Import::require_samples() const {
    auto const empty = std::ranges::find(report_.sets, 0, &ImportedSet::samples);
    if (empty != report_.sets.end()) {
        throw Error(ExitCode::data,
                    {concat(empty->name.empty() ? std::string("the data set")
                                                : concat("the set ", empty->name),
                            " would have no sample"),
                     concat("none of ", count_text(empty->items, "item"), " can be read",
                            report_.skipped.empty() ? std::string()
                                                    : concat("; ", report_.skipped.front())),
                     "Replace the files, or name others"});
    }
}

/// A file that was finished before the import was interrupted is kept, if its checksums, which
/// compressed ones do not have, say that it is still whole.
std::uint64_t Import::make_file(ShardPlan const& shard) const {
    auto const note = spool_ / (shard.path.filename().string() + ".done");
    auto const size_now = [&] { return std::filesystem::file_size(shard.path); };
    if (plan_.deflate == 0 && std::filesystem::exists(note) &&
        std::filesystem::exists(shard.path) && distrust(note).empty() &&
        distrust(shard.path).empty() &&
        read_text(note) == concat(hex(plan_.identity), " ", size_now()) &&
        data::verify(shard.path).empty()) {
        return size_now();
    }
    auto const bytes = write_shard(plan_, shard);
    write_text_durably(note, concat(hex(plan_.identity), " ", bytes));
    return bytes;
}

void Import::make_files() {
    std::vector<ShardPlan> shards;
    for (std::size_t s = 0; s < sets_.size(); ++s) {
        auto const& name = sets_[s].name;
        auto const whole = name.empty() ? options_.out : options_.out / (name + ".h5");
        auto const more = plan_shards(whole, s, static_cast<std::uint64_t>(report_.sets[s].samples),
                                      options_.shard_samples);
        shards.insert(shards.end(), more.begin(), more.end());
    }
    auto const ranks = static_cast<std::size_t>(comm_.size());
    std::vector<std::int64_t> bytes(shards.size());
    for (std::size_t first = 0; first < shards.size(); first += ranks) {
        comm::agree(comm_, "writing data set files", [&] {
            before_part();
            auto const mine = first + static_cast<std::size_t>(comm_.rank());
            if (mine < shards.size()) {
                bytes[mine] = static_cast<std::int64_t>(make_file(shards[mine]));
            }
        });
        progress_("writing files",
                  static_cast<std::int64_t>(std::min(first + ranks, shards.size())),
                  static_cast<std::int64_t>(shards.size()));
    }
    comm::all_reduce(comm_, std::span(bytes), comm::Reduce::sum);
    for (std::size_t i = 0; i < shards.size(); ++i) {
        report_.files.push_back({shards[i].path, static_cast<std::int64_t>(shards[i].count),
                                 static_cast<std::uint64_t>(bytes[i])});
    }
    comm::agree(comm_, "removing what was replaced", [&] {
        if (comm_.is_root()) {
            remove_others();
        }
    });
}

/// Sets and shards of an older import, which a pattern would take for some of the new one.
void Import::remove_others() const {
    std::set<std::filesystem::path> made;
    for (auto const& file : report_.files) {
        made.insert(file.path);
    }
    for (auto const& path : outputs_at(options_.out)) {
        if (!made.contains(path)) {
            std::filesystem::remove(path);
        }
    }
}

} // namespace

ImportReport import_set(comm::Communicator const& comm, ImportSource const& source,
                        ImportOptions const& options, ImportProgress const& progress) {
    Import import(comm, source, options, progress);
    try {
        return import.run();
    } catch (AgreedError const& failure) {
        if (!import.keeps_parts(failure.code())) {
            throw;
        }
        auto text = failure.text();
        text.next += concat("; the parts that are done are kept in ", import.parts().string(),
                            ", and the same command resumes the import");
        throw AgreedError(failure.code(), text, failure.rank(), failure.cause());
    }
}

} // namespace lockstep::import
