// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/root.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr int kMaxLinks = 40;
constexpr size_t kMaxUnread = 50;

struct Fd {
  int fd;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

FileType type_of(mode_t mode) {
  if (S_ISREG(mode)) return FileType::kRegular;
  if (S_ISDIR(mode)) return FileType::kFolder;
  if (S_ISLNK(mode)) return FileType::kLink;
  if (S_ISCHR(mode) || S_ISBLK(mode)) return FileType::kDevice;
  return FileType::kOther;
}

}  // namespace

Root::Root(std::string dir) : dir_(std::move(dir)) {
  live_ = dir_.empty() || dir_ == "/";
  fd_ = ::open(live_ ? "/" : dir_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

Root::~Root() {
  if (fd_ >= 0) ::close(fd_);
}

int Root::open(const std::string& path, int flags) const {
  if (fd_ < 0 || path.find('\0') != path.npos) {
    errno = EINVAL;
    return -1;
  }
  if (has_openat2_) {
    open_how how{};
    how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
    how.resolve = live_ ? 0 : RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    int fd = static_cast<int>(::syscall(SYS_openat2, fd_, path.c_str(), &how, sizeof how));
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return fd;
    if (errno == ENOSYS) has_openat2_ = false;
  }
  if (live_) return ::openat(fd_, path.c_str(), flags | O_CLOEXEC);
  return walk(path, flags);
}

/// For kernels without openat2: one component at a time, links put in the place of their names.
int Root::walk(const std::string& path, int flags) const {
  std::string rest = normal_path(path);
  std::string done = "/";
  for (int links = 0; links < kMaxLinks; ++links) {
    int current = ::dup(fd_);
    bool again = false;
    std::vector<std::string_view> parts = split(std::string_view(rest).substr(1), '/');
    if (rest == "/") parts.clear();
    done.clear();
    for (size_t i = 0; i < parts.size() && !again; ++i) {
      Fd holder{current};
      std::string part(parts[i]);
      current = ::openat(holder.fd, part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
      struct stat st {};
      if (current < 0 || ::fstat(current, &st) != 0) return current;
      bool last = i + 1 == parts.size();
      if (S_ISLNK(st.st_mode) && !(last && (flags & O_NOFOLLOW))) {
        char target[4096];
        ssize_t length = ::readlinkat(current, "", target, sizeof target);
        ::close(current);
        if (length <= 0) return -1;
        std::string next(target, static_cast<size_t>(length));
        if (next[0] != '/') next = done + "/" + next;
        for (size_t k = i + 1; k < parts.size(); ++k) next += "/" + std::string(parts[k]);
        rest = normal_path(next);
        again = true;
      } else if (last && !(flags & O_PATH)) {
        Fd found{current};
        return ::openat(holder.fd, part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
      } else {
        done += "/" + part;
      }
    }
    if (again) continue;
    if (!parts.empty() || (flags & O_PATH)) return current;
    ::close(current);
    return ::openat(fd_, ".", flags | O_CLOEXEC);
  }
  errno = ELOOP;
  return -1;
}

void Root::note_unread(const std::string& path, std::string_view why) const {
  std::string line = path + " could not be read: " + std::string(why) + ".";
  if (unread_.size() < kMaxUnread &&
      std::find(unread_.begin(), unread_.end(), line) == unread_.end())
    unread_.push_back(line);
}

FileFacts Root::facts(const std::string& path) const {
  FileFacts out;
  Fd file{open(path, O_PATH)};
  struct stat st {};
  if (file.fd < 0 || ::fstat(file.fd, &st) != 0) {
    if (file.fd < 0 && (errno == EACCES || errno == ELOOP || errno == EIO))
      note_unread(path, std::strerror(errno));
    return out;
  }
  out.type = type_of(st.st_mode);
  out.mode = st.st_mode;
  out.uid = st.st_uid;
  out.gid = st.st_gid;
  out.size = st.st_size;
  return out;
}

std::optional<std::string> Root::read(const std::string& path, size_t limit) const {
  // A device or a pipe is never opened: only looking at it is free of effects.
  if (facts(path).type != FileType::kRegular) return std::nullopt;
  Fd file{open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)};
  struct stat st {};
  if (file.fd < 0 || ::fstat(file.fd, &st) != 0) {
    note_unread(path, std::strerror(errno));
    return std::nullopt;
  }
  if (!S_ISREG(st.st_mode)) return std::nullopt;
  std::string text;
  char buffer[65536];
  while (text.size() < limit) {
    ssize_t got = ::read(file.fd, buffer, std::min(sizeof buffer, limit - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) note_unread(path, std::strerror(errno));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  if (text.size() == limit && st.st_size > static_cast<off_t>(limit))
    note_unread(path, "it has " + std::to_string(st.st_size) + " bytes, only the first " +
                          std::to_string(limit) + " were read");
  return text;
}

std::optional<std::string> Root::read_ends(const std::string& path, size_t half) const {
  FileFacts file = facts(path);
  if (file.type != FileType::kRegular) return std::nullopt;
  if (file.size <= static_cast<off_t>(2 * half)) return read(path, 2 * half);
  std::string text = read_at(path, 0, half);
  text += "\n";
  text += read_at(path, file.size - static_cast<off_t>(half), half);
  note_unread(path, "it has " + std::to_string(file.size) + " bytes, its middle was left out");
  return text;
}

std::string Root::read_at(const std::string& path, off_t offset, size_t size) const {
  if (offset < 0 || facts(path).type != FileType::kRegular) return "";
  Fd file{open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY)};
  if (file.fd < 0) {
    note_unread(path, std::strerror(errno));
    return "";
  }
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    ssize_t got =
        ::pread(file.fd, text.data() + done, size - done, offset + static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

std::vector<std::string> Root::list(const std::string& path, size_t limit) const {
  return entries(path, limit, false);
}

std::vector<std::string> Root::list_folders(const std::string& path, size_t limit) const {
  return entries(path, limit, true);
}

std::vector<std::string> Root::entries(const std::string& path, size_t limit,
                                       bool folders_only) const {
  std::vector<std::string> names;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
  if (fd < 0) {
    if (errno == EACCES || errno == ELOOP || errno == EIO) note_unread(path, std::strerror(errno));
    return names;
  }
  DIR* dir = ::fdopendir(fd);
  if (dir == nullptr) {
    ::close(fd);
    return names;
  }
  while (dirent* entry = ::readdir(dir)) {
    std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() >= limit) {
      note_unread(path,
                  "it holds more than " + std::to_string(limit) + " names, the rest was left out");
      break;
    }
    if (folders_only && entry->d_type != DT_DIR) {
      std::string child = path + "/" + std::string(name);
      bool folder = entry->d_type == DT_UNKNOWN && link(child).empty() &&
                    facts(child).type == FileType::kFolder;
      if (!folder) continue;
    }
    names.emplace_back(name);
  }
  ::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

std::string Root::link(const std::string& path) const {
  Fd file{open(path, O_PATH | O_NOFOLLOW)};
  struct stat st {};
  if (file.fd < 0 || ::fstat(file.fd, &st) != 0 || !S_ISLNK(st.st_mode)) return "";
  char target[4096];
  ssize_t length = ::readlinkat(file.fd, "", target, sizeof target);
  return length > 0 ? std::string(target, static_cast<size_t>(length)) : "";
}

std::string Root::follow(std::string path) const {
  for (int i = 0; i < 16; ++i) {
    std::string target = link(path);
    if (target.empty()) break;
    path = target[0] == '/' ? normal_path(target) : normal_path(parent_of(path) + "/" + target);
  }
  return path;
}

}  // namespace tracefire::doctor
