// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/read/elf.h"

#include <elf.h>

#include <cstring>

#include "tools/doctor/text.h"

namespace tracefire::doctor {

namespace {

constexpr size_t kMaxTable = 512 << 10;

template <class T>
bool get(const std::string& bytes, size_t offset, T* out) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(out, bytes.data() + offset, sizeof(T));
  return true;
}

std::string text_at(const std::string& table, uint64_t offset) {
  if (offset >= table.size()) return "";
  size_t end = table.find('\0', offset);
  return table.substr(
      offset, std::min<size_t>(end == table.npos ? table.size() : end, offset + 4096) - offset);
}

std::vector<std::string> paths(const std::string& text) {
  std::vector<std::string> out;
  for (std::string_view part : split(text, ':'))
    if (!part.empty() && out.size() < 64) out.emplace_back(part);
  return out;
}

struct Segment {
  uint64_t address, offset, size;
};

/// File offset of an address, or the address itself where no segment has it.
uint64_t file_offset(const std::vector<Segment>& loads, uint64_t address) {
  for (const Segment& load : loads)
    if (address >= load.address && address - load.address < load.size)
      return load.offset + (address - load.address);
  return address;
}

template <class Ehdr, class Phdr, class Dyn, class Shdr>
void read_class(const ReadAt& read_at, const std::string& head, ElfFacts* out) {
  Ehdr ehdr;
  if (!get(head, 0, &ehdr)) return;
  out->machine = ehdr.e_machine;
  out->valid = true;
  std::vector<Segment> loads;
  Segment dynamic{0, 0, 0};
  size_t count = std::min<size_t>(ehdr.e_phnum, 256);
  std::string table = read_at(ehdr.e_phoff, count * sizeof(Phdr));
  for (size_t i = 0; i < count; ++i) {
    Phdr phdr;
    if (ehdr.e_phentsize != sizeof(Phdr) || !get(table, i * sizeof(Phdr), &phdr)) break;
    if (phdr.p_type == PT_LOAD) loads.push_back({phdr.p_vaddr, phdr.p_offset, phdr.p_filesz});
    if (phdr.p_type == PT_DYNAMIC) dynamic = {phdr.p_vaddr, phdr.p_offset, phdr.p_filesz};
  }
  uint64_t strings = 0, strings_size = 0, verneed = 0, verneed_count = 0, soname = 0, rpath = 0,
           runpath = 0;
  bool has_soname = false, has_rpath = false, has_runpath = false;
  std::vector<uint64_t> needed;
  std::string entries = read_at(dynamic.offset, std::min<uint64_t>(dynamic.size, 64 << 10));
  for (size_t i = 0;; ++i) {
    Dyn dyn;
    if (!get(entries, i * sizeof(Dyn), &dyn) || dyn.d_tag == DT_NULL) break;
    uint64_t value = dyn.d_un.d_val;
    switch (dyn.d_tag) {
      case DT_STRTAB:
        strings = file_offset(loads, value);
        break;
      case DT_STRSZ:
        strings_size = value;
        break;
      case DT_NEEDED:
        if (needed.size() < 256) needed.push_back(value);
        break;
      case DT_SONAME:
        soname = value, has_soname = true;
        break;
      case DT_RPATH:
        rpath = value, has_rpath = true;
        break;
      case DT_RUNPATH:
        runpath = value, has_runpath = true;
        break;
      case DT_VERNEED:
        verneed = file_offset(loads, value);
        break;
      case DT_VERNEEDNUM:
        verneed_count = value;
        break;
      default:
        break;
    }
  }
  // A large library has megabytes of symbol names; the few that are wanted are read one by one.
  auto name = [&](uint64_t offset) {
    return offset < strings_size ? text_at(read_at(strings + offset, 4096), 0) : std::string();
  };
  for (uint64_t offset : needed) out->needed.push_back(name(offset));
  if (has_soname) out->soname = name(soname);
  if (has_rpath) out->rpath = paths(name(rpath));
  if (has_runpath) out->runpath = paths(name(runpath));
  uint64_t at = verneed;
  for (uint64_t i = 0; i < std::min<uint64_t>(verneed_count, 64); ++i) {
    Elf64_Verneed need;  // the same layout in both classes
    if (!get(read_at(at, sizeof need), 0, &need)) break;
    uint64_t aux_at = at + need.vn_aux;
    for (int k = 0; k < std::min<int>(need.vn_cnt, 32); ++k) {
      Elf64_Vernaux aux;
      if (!get(read_at(aux_at, sizeof aux), 0, &aux)) break;
      out->version_needs.push_back(name(aux.vna_name));
      if (aux.vna_next == 0) break;
      aux_at += aux.vna_next;
    }
    if (need.vn_next == 0) break;
    at += need.vn_next;
  }
  // A kernel module has sections only; its version stands in .modinfo.
  if (ehdr.e_type != ET_REL || ehdr.e_shentsize != sizeof(Shdr)) return;
  size_t sections = std::min<size_t>(ehdr.e_shnum, 4096);
  std::string headers = read_at(ehdr.e_shoff, sections * sizeof(Shdr));
  Shdr names;
  if (!get(headers, ehdr.e_shstrndx * sizeof(Shdr), &names)) return;
  std::string section_names =
      read_at(names.sh_offset, std::min<uint64_t>(names.sh_size, kMaxTable));
  for (size_t i = 0; i < sections; ++i) {
    Shdr section;
    if (!get(headers, i * sizeof(Shdr), &section)) return;
    if (text_at(section_names, section.sh_name) != ".modinfo") continue;
    std::string info = read_at(section.sh_offset, std::min<uint64_t>(section.sh_size, 64 << 10));
    for (std::string_view field : split(info, '\0'))
      if (field.rfind("version=", 0) == 0) out->module_version = std::string(field.substr(8));
  }
}

}  // namespace

ElfFacts read_elf(const ReadAt& read_at) {
  ElfFacts out;
  std::string head = read_at(0, sizeof(Elf64_Ehdr));
  if (head.size() < EI_NIDENT || head.compare(0, 4, "\177ELF") != 0 || head[EI_DATA] != ELFDATA2LSB)
    return out;
  if (head[EI_CLASS] == ELFCLASS64) {
    out.is64 = true;
    read_class<Elf64_Ehdr, Elf64_Phdr, Elf64_Dyn, Elf64_Shdr>(read_at, head, &out);
  } else if (head[EI_CLASS] == ELFCLASS32) {
    read_class<Elf32_Ehdr, Elf32_Phdr, Elf32_Dyn, Elf32_Shdr>(read_at, head, &out);
  }
  return out;
}

}  // namespace tracefire::doctor
