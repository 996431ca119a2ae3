#include "lockstep/base/error.hpp"
#include "lockstep/base/text.hpp"
#include "lockstep/data/import.hpp"

#include <algorithm>
#include <tuple>

#include "format.hpp"

namespace lockstep::data {

namespace {

constexpr std::uint64_t bytes_at_once = std::uint64_t{8} << 20;

/// The type in which inputs are kept: as they are, or float32 where we do not read them directly.
h5::Type kept_type(h5::Type type) {
    switch (type) {
    case h5::Type::f16:
    case h5::Type::i64:
    case h5::Type::u64:
        return h5::Type::f32;
    default:
        return type;
    }
}

/// The type that an import was asked for.
h5::Type wanted_type(std::string const& name) {
    auto const type = h5::type_named(name);
    if (!type || kept_type(*type) != *type) {
        throw Error(ExitCode::usage, {concat("--type ", name), "inputs are not kept in it",
                                      "Write u8, i16, i32, f32 or f64"});
    }
    return *type;
}

/// A file's samples, converted by HDF5; a block of neighbours is kept for the next one.
class Hdf5Source : public ImportSource {
  public:
    explicit Hdf5Source(Hdf5Import const& options)
        : options_(options), file_(h5::File::open(options.source)) {
        auto const info = readable_dataset(file_, options.inputs);
        targets_ = read_targets(file_, options.targets, info.shape.front());
        auto const theirs =
            file_.texts_attribute("/", "classes").value_or(std::vector<std::string>{});
        bool const named = !options.classes.empty();
        form_.class_names =
            complete_names(named ? options.classes : theirs, targets_, options.source,
                           named ? ExitCode::usage : ExitCode::data);
        h5::Shape const sample(info.shape.begin() + 1, info.shape.end());
        auto const type =
            options.type.empty() ? kept_type(*info.readable_as) : wanted_type(options.type);
        form_.fields = {{"inputs", type, sample}, {"targets", h5::Type::i64, {}}};
        std::tie(form_.mean, form_.std) = read_moments(file_, sample);
        rows_ = std::max<std::uint64_t>(
            bytes_at_once / std::max<std::uint64_t>(form_.fields.front().row_bytes(), 1), 1);
    }

    std::string identity() const override {
        return concat("hdf5 ", options_.inputs, " ", options_.targets, " ", options_.type, " ",
                      joined(form_.class_names, ","), "\n", stamp(options_.source));
    }
    ImportForm const& form() const override { return form_; }
    std::int64_t items() const override { return static_cast<std::int64_t>(targets_.size()); }
    std::string name(std::int64_t item) const override {
        return concat(options_.source.string(), " sample ", item);
    }
    std::int64_t label(std::int64_t item) const override {
        return targets_[static_cast<std::size_t>(item)];
    }
    std::int64_t items_at_once() const override { return static_cast<std::int64_t>(rows_); }

    void read(std::int64_t item, std::function<void(Sample&&)> const& sink) const override {
        auto const row = static_cast<std::uint64_t>(item);
        auto const& inputs = form_.fields.front();
        if (row < first_ || row >= first_ + count_) {
            first_ = row - row % rows_;
            count_ = std::min<std::uint64_t>(rows_, targets_.size() - first_);
            block_.resize(count_ * inputs.row_bytes());
            file_.read_rows(options_.inputs, inputs.type, {first_, count_}, block_.data());
        }
        auto const at =
            block_.begin() + static_cast<std::ptrdiff_t>((row - first_) * inputs.row_bytes());
        sink({{{at, at + static_cast<std::ptrdiff_t>(inputs.row_bytes())},
               bytes_of(std::vector{label(item)})},
              label(item)});
    }

  private:
    Hdf5Import options_;
    h5::File file_;
    std::vector<std::int64_t> targets_;
    ImportForm form_;
    std::uint64_t rows_ = 1; ///< of a block
    mutable std::uint64_t first_ = 0;
    mutable std::uint64_t count_ = 0;
    mutable std::vector<std::byte> block_;
};

} // namespace

std::unique_ptr<ImportSource> hdf5_source(Hdf5Import const& options) {
    return std::make_unique<Hdf5Source>(options);
}

} // namespace lockstep::data
