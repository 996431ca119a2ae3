#include "disk.hpp"

#include "lockstep/base/error.hpp"

#include <hdf5.h>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h> // 1.13 and later
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::h5 {

namespace {

/// What an access list carries.
using Info = std::shared_ptr<Disk>;

struct OpenFile : H5FD_t {
    OpenFile() : H5FD_t{} {}
    Info disk;
    int descriptor = -1;
    dev_t device = 0;
    ino_t inode = 0;
    haddr_t allocated = 0;
    haddr_t length = 0;
};

OpenFile& ours(H5FD_t* file) {
    return *static_cast<OpenFile*>(file);
}
OpenFile const& ours(H5FD_t const* file) {
    return *static_cast<OpenFile const*>(file);
}

/// In the words in which HDF5's own driver tells it.
herr_t fail(char const* what, int error_number) {
    H5Epush2(H5E_DEFAULT, __FILE__, "disk", __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR,
             "%s, errno = %d, error message = '%s'", what, error_number,
             system_text(error_number).c_str());
    return -1;
}

void* copy_info(void const* info) {
    return new Info(*static_cast<Info const*>(info));
}

herr_t free_info(void* info) {
    delete static_cast<Info*>(info);
    return 0;
}

void* info_of(H5FD_t* file) {
    return new Info(ours(file).disk);
}

/// Whether a writer's mark is in the superblock: HDF5 itself looks for it only in files that it
/// locks. Places and bytes: HDF5 File Format Specification 3.0, II.A.
bool is_marked_as_written(int descriptor, haddr_t length) {
    constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    for (haddr_t at = 0; at + 12 <= length; at = at == 0 ? 512 : 2 * at) {
        std::array<unsigned char, 12> head{};
        if (::pread(descriptor, head.data(), head.size(), static_cast<off_t>(at)) !=
            static_cast<ssize_t>(head.size())) {
            return false; // HDF5 meets that error itself
        }
        if (std::equal(signature.begin(), signature.end(), head.begin())) {
            auto const version = head[8];
            auto const flags = head[11];
            return version >= 3 && (flags & 5U) != 0; // written, written by SWMR
        }
    }
    return false;
}

H5FD_t* open_file(char const* name, unsigned flags, hid_t access, haddr_t) {
    int const how = ((flags & H5F_ACC_RDWR) != 0 ? O_RDWR : O_RDONLY) |
                    ((flags & H5F_ACC_TRUNC) != 0 ? O_TRUNC | O_NOFOLLOW : 0) |
                    ((flags & H5F_ACC_CREAT) != 0 ? O_CREAT : 0) |
                    ((flags & H5F_ACC_EXCL) != 0 ? O_EXCL : 0);
    struct stat info {};
    // A link of an HDF5 file may lead anywhere: a pipe's other end may never come.
    if (::stat(name, &info) == 0 && !S_ISREG(info.st_mode)) {
        H5Epush2(H5E_DEFAULT, __FILE__, "disk", __LINE__, H5E_ERR_CLS, H5E_FILE, H5E_CANTOPENFILE,
                 "it is not a regular file");
        return nullptr;
    }
    int const descriptor = ::open(name, how | O_CLOEXEC, 0644);
    if (descriptor < 0 || ::fstat(descriptor, &info) != 0) {
        fail("unable to open file", errno);
        if (descriptor >= 0) {
            ::close(descriptor);
        }
        return nullptr;
    }
    if ((flags & H5F_ACC_RDWR) == 0 &&
        is_marked_as_written(descriptor, static_cast<haddr_t>(info.st_size))) {
        ::close(descriptor);
        H5Epush2(H5E_DEFAULT, __FILE__, "disk", __LINE__, H5E_ERR_CLS, H5E_FILE, H5E_CANTOPENFILE,
                 "file is already open for write");
        return nullptr;
    }
    auto* const file = new OpenFile;
    auto const* const disk = static_cast<Info const*>(H5Pget_driver_info(access));
    file->disk = disk != nullptr ? *disk : std::make_shared<Disk>();
    file->descriptor = descriptor;
    file->device = info.st_dev;
    file->inode = info.st_ino;
    file->length = static_cast<haddr_t>(info.st_size);
    return file;
}

herr_t close_file(H5FD_t* file) {
    // It is closed in any case; a signal that came between says nothing of the bytes.
    if (::close(ours(file).descriptor) != 0 && errno != EINTR) {
        ours(file).disk->note(errno);
    }
    delete &ours(file);
    return 0;
}

int compare(H5FD_t const* a, H5FD_t const* b) {
    auto const place = [](H5FD_t const* file) {
        return std::pair(ours(file).device, ours(file).inode);
    };
    return place(a) < place(b) ? -1 : place(b) < place(a) ? 1 : 0;
}

/// The features of HDF5's own driver, which decide how a file is laid out.
herr_t features(H5FD_t const*, unsigned long* flags) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE |
             H5FD_FEAT_POSIX_COMPAT_HANDLE; // links lead on from where a symbolic link leads
    return 0;
}

herr_t handle_of(H5FD_t* file, hid_t, void** handle) {
    *handle = &ours(file).descriptor;
    return 0;
}

haddr_t allocated(H5FD_t const* file, H5FD_mem_t) {
    return ours(file).allocated;
}

herr_t allocate(H5FD_t* file, H5FD_mem_t, haddr_t end) {
    ours(file).allocated = end;
    return 0;
}

haddr_t length(H5FD_t const* file, H5FD_mem_t) {
    return ours(file).length;
}

/// What lies behind the end of the file is zero.
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, void* into) {
    if (int const refused = ours(file).disk->error_number(); refused != 0) {
        return fail("file was not written", refused); // so it cannot be read
    }
    auto* to = static_cast<char*>(into);
    while (size > 0) {
        auto const got = ::pread(ours(file).descriptor, to, size, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail("file read failed", errno);
        }
        if (got == 0) {
            std::memset(to, 0, size);
            return 0;
        }
        to += got;
        at += static_cast<haddr_t>(got);
        size -= static_cast<size_t>(got);
    }
    return 0;
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, void const* from) {
    auto& open = ours(file);
    auto const* bytes = static_cast<char const*>(from);
    open.length = std::max(open.length, at + size);
    while (size > 0 && open.disk->error_number() == 0) {
        auto const put = ::pwrite(open.descriptor, bytes, size, static_cast<off_t>(at));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            open.disk->note(put < 0 ? errno : ENOSPC);
            break;
        }
        bytes += put;
        at += static_cast<haddr_t>(put);
        size -= static_cast<size_t>(put);
    }
    return 0;
}

herr_t cut_or_extend(H5FD_t* file, hid_t, hbool_t) {
    auto& open = ours(file);
    if (open.length != open.allocated) {
        if (open.disk->error_number() == 0 &&
            ::ftruncate(open.descriptor, static_cast<off_t>(open.allocated)) != 0) {
            open.disk->note(errno);
        }
        open.length = open.allocated;
    }
    return 0;
}

H5FD_class_t driver_class() {
    H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
    driver.version = H5FD_CLASS_VERSION;
    driver.value = static_cast<H5FD_class_value_t>(600); // of those for drivers in no registry
#endif
    driver.name = "lockstep";
    driver.maxaddr = static_cast<haddr_t>(1) << 62;
    driver.fc_degree = H5F_CLOSE_WEAK;
    driver.fapl_size = sizeof(Info);
    driver.fapl_get = info_of;
    driver.fapl_copy = copy_info;
    driver.fapl_free = free_info;
    driver.open = open_file;
    driver.close = close_file;
    driver.cmp = compare;
    driver.query = features;
    driver.get_eoa = allocated;
    driver.set_eoa = allocate;
    driver.get_eof = length;
    driver.get_handle = handle_of;
    driver.read = read_bytes;
    driver.write = write_bytes;
    driver.truncate = cut_or_extend;
    H5FD_mem_t const map[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(map), std::end(map), std::begin(driver.fl_map));
    return driver;
}

} // namespace

void use_disk(Handle const& access, std::shared_ptr<Disk> const& disk) {
    // As long as the library is loaded: HDF5 keeps a pointer to the class.
    static H5FD_class_t const driver = driver_class();
    static Id const registered = check(H5FDregister(&driver), Doing::planning, "H5FDregister");
    check(H5Pset_driver(access.id(), registered, &disk), Doing::planning, "H5Pset_driver");
}

} // namespace lockstep::h5
