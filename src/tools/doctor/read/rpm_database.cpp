// SPDX-License-Identifier: Apache-2.0
//
// rpm keeps one header for each package: an index of tags and their data, as in the header of a
// package file. RHEL 9, Fedora and openSUSE Tumbleweed keep them in SQLite's table Packages, SUSE
// in a format of its own (ndb).
//   SQLite's format: https://www.sqlite.org/fileformat2.html
#include <cstdint>
#include <set>

#include "tools/doctor/read/system_packages.h"
#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kMaxPackages = 20000;
constexpr size_t kMaxPages = 60000;
constexpr size_t kHeaderBytes = 96 << 10;  ///< of one package's header, from its beginning
constexpr uint64_t kMaxBytes = 100ull << 20;

uint64_t big(std::string_view bytes, size_t at, size_t size) {
  if (at + size > bytes.size()) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

uint64_t little(std::string_view bytes, size_t at, size_t size) {
  if (at + size > bytes.size()) return 0;
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// Name, version and release of a header: counts, then (tag, type, offset, count) each, then data.
void add_header(std::string_view blob, std::map<std::string, SystemPackage>* out) {
  uint64_t entries = big(blob, 0, 4);
  if (blob.size() < 8 || entries > 4000) return;
  uint64_t data = 8 + entries * 16;
  std::string_view name, version, release;
  for (uint64_t i = 0; i < entries; ++i) {
    size_t at = 8 + static_cast<size_t>(i) * 16;
    if (at + 16 > blob.size()) return;
    uint64_t tag = big(blob, at, 4), type = big(blob, at + 4, 4), offset = big(blob, at + 8, 4);
    if (tag < 1000 || tag > 1002 || type != 6 || data + offset >= blob.size()) continue;
    std::string_view text = blob.substr(static_cast<size_t>(data + offset), 256);
    size_t end = text.find('\0');
    if (end == text.npos) continue;
    (tag == 1000 ? name : tag == 1001 ? version : release) = text.substr(0, end);
  }
  if (!name.empty() && !version.empty())
    add_rpm_lines(std::string(name) + "-" + std::string(version) + "-" +
                      (release.empty() ? "0" : std::string(release)),
                  out);
}

/// The part of SQLite's format that a full walk over one table needs.
class Sqlite {
 public:
  explicit Sqlite(const ReadAt& read_at) : read_at_(read_at) {}

  std::string walk(std::map<std::string, SystemPackage>* out) {
    std::string head = read_at_(0, 100);
    page_size_ = big(head, 16, 2) == 1 ? 65536 : static_cast<size_t>(big(head, 16, 2));
    reserved_ = static_cast<size_t>(big(head, 20, 1));
    if (head.size() < 100 || page_size_ < 512 || (page_size_ & (page_size_ - 1)) != 0 ||
        reserved_ + 480 > page_size_)
      return "its first page makes no sense";
    uint64_t root = 0;
    visit(1, [&](std::string_view record) {
      // sqlite_schema: type, name, tbl_name, rootpage, sql.
      std::vector<std::string> fields = columns(record, 4);
      if (fields.size() == 4 && fields[0] == "table" && fields[1] == "Packages")
        root = big(fields[3], 0, fields[3].size());
    });
    if (root == 0) return problem_.empty() ? "it has no table Packages" : problem_;
    seen_.clear();
    visit(root, [&](std::string_view record) {
      std::vector<std::string> fields = columns(record, 2);
      if (fields.size() == 2 && ++packages_ <= kMaxPackages) add_header(fields[1], out);
    });
    return problem_;
  }

 private:
  static uint64_t varint(std::string_view bytes, size_t* at) {
    uint64_t value = 0;
    for (int i = 0; i < 9 && *at < bytes.size(); ++i) {
      unsigned char byte = static_cast<unsigned char>(bytes[(*at)++]);
      if (i == 8) return value << 8 | byte;
      value = value << 7 | (byte & 0x7f);
      if ((byte & 0x80) == 0) break;
    }
    return value;
  }

  /// The first `count` columns as bytes; integers big-endian.
  static std::vector<std::string> columns(std::string_view record, size_t count) {
    std::vector<std::string> out;
    size_t at = 0;
    uint64_t header = varint(record, &at);
    if (header > record.size()) return out;
    size_t data = static_cast<size_t>(header);
    while (at < header && out.size() < count) {
      uint64_t type = varint(record, &at);
      static const size_t kSizes[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
      uint64_t size = type < 12 ? kSizes[type] : (type - 12) / 2;
      if (type == 9) {
        out.emplace_back(1, '\1');
        continue;
      }
      if (data > record.size()) return out;
      // The record is cut off where it is long: what is there is enough.
      out.emplace_back(
          record.substr(data, static_cast<size_t>(std::min<uint64_t>(size, record.size()))));
      data += static_cast<size_t>(std::min<uint64_t>(size, record.size() + 1));
    }
    return out;
  }

  std::string page(uint64_t number) {
    if (number == 0 || ++pages_ > kMaxPages || bytes_ > kMaxBytes) {
      problem_ = "it is too large, only a part of it was read";
      return "";
    }
    bytes_ += page_size_;
    std::string text = read_at_((number - 1) * page_size_, page_size_);
    if (text.size() < page_size_) problem_ = "it ends early";
    return text;
  }

  template <class Record>
  void visit(uint64_t number, const Record& record, int depth = 0) {
    if (depth > 20 || !seen_.insert(number).second) return;
    std::string text = page(number);
    if (text.size() < page_size_) return;
    size_t begin = number == 1 ? 100 : 0;
    int kind = static_cast<int>(big(text, begin, 1));
    size_t cells = static_cast<size_t>(big(text, begin + 3, 2));
    size_t pointers = begin + (kind == 5 ? 12 : 8);
    if (kind != 5 && kind != 13) return;
    for (size_t i = 0; i < cells; ++i) {
      size_t at = static_cast<size_t>(big(text, pointers + 2 * i, 2));
      if (at < 8 || at >= page_size_) continue;
      if (kind == 5)
        visit(big(text, at, 4), record, depth + 1);
      else
        record(payload(text, at));
    }
    if (kind == 5) visit(big(text, begin + 8, 4), record, depth + 1);
  }

  std::string payload(std::string_view text, size_t at) {
    uint64_t size = varint(text, &at);
    varint(text, &at);  // the row's number
    size_t usable = page_size_ - reserved_, most = usable - 35;
    size_t local = static_cast<size_t>(std::min<uint64_t>(size, usable));
    if (size > most) {
      size_t least = (usable - 12) * 32 / 255 - 23;
      size_t kept = least + static_cast<size_t>((size - least) % (usable - 4));
      local = kept <= most ? kept : least;
    }
    if (at >= text.size()) return "";
    std::string out(text.substr(at, local));
    uint64_t next = size > most ? big(text, at + local, 4) : 0;
    while (next != 0 && out.size() < std::min<uint64_t>(size, kHeaderBytes)) {
      std::string more = page(next);
      if (more.size() < page_size_) break;
      next = big(more, 0, 4);
      out.append(more, 4, usable - 4);
    }
    return out;
  }

  const ReadAt& read_at_;
  size_t page_size_ = 0, reserved_ = 0, pages_ = 0, packages_ = 0;
  uint64_t bytes_ = 0;
  std::set<uint64_t> seen_;
  std::string problem_;
};

/// ndb: pages of slots (magic, package, block, blocks), then headers behind 16 bytes of their own.
std::string walk_ndb(const ReadAt& read_at, std::map<std::string, SystemPackage>* out) {
  std::string head = read_at(0, 32);
  uint64_t slot_pages = little(head, 12, 4);
  if (slot_pages == 0 || slot_pages > 2048) return "its first page makes no sense";
  size_t packages = 0;
  uint64_t bytes = 0;
  for (uint64_t page = 0; page < slot_pages; ++page) {
    std::string slots = read_at(page * 4096, 4096);
    for (size_t at = page == 0 ? 32 : 0; at + 16 <= slots.size(); at += 16) {
      uint64_t package = little(slots, at + 4, 4), block = little(slots, at + 8, 4);
      if (slots.compare(at, 4, "Slot") != 0 || package == 0 || block == 0) continue;
      if (++packages > kMaxPackages || bytes > kMaxBytes)
        return "it is too large, only a part of it was read";
      std::string blob = read_at(block * 16, 16 + (8 << 10));
      if (blob.compare(0, 4, "BlbS") != 0) continue;
      // The index comes first: longer ones are read in full.
      uint64_t index = 8 + std::min<uint64_t>(big(blob, 16, 4), 4000) * 16;
      if (index + 1024 > blob.size() - 16)
        blob = read_at(block * 16, 16 + static_cast<size_t>(index) + 1024);
      bytes += blob.size();
      add_header(std::string_view(blob).substr(std::min<size_t>(16, blob.size())), out);
    }
  }
  return "";
}

}  // namespace

std::string add_rpm_database(const ReadAt& read_at, std::map<std::string, SystemPackage>* out) {
  std::string magic = read_at(0, 16);
  if (magic == std::string("SQLite format 3\0", 16)) return Sqlite(read_at).walk(out);
  if (magic.rfind("RpmP", 0) == 0) return walk_ndb(read_at, out);
  return "it is in an older format of rpm; the output of rpm -qa in captured/rpm-qa.txt takes its "
         "place";
}

}  // namespace tracefire::doctor
