// Trace events in chunks: appending moves none of them.
// Ownership: owns its events; their addresses stay valid until clear() or truncate(). Threads: as
// Trace.
#pragma once

#include <compare>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include "core/trace/event.h"

namespace zl {

class EventList {
 public:
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = TraceEvent;
    using difference_type = std::ptrdiff_t;
    using pointer = const TraceEvent*;
    using reference = const TraceEvent&;

    Iterator() = default;
    Iterator(const EventList* list, std::size_t at) : list_(list), at_(at) {}
    reference operator*() const { return (*list_)[at_]; }
    pointer operator->() const { return &**this; }
    reference operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator+=(difference_type n) {
      at_ += static_cast<std::size_t>(n);
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this - 1); }
    friend Iterator operator+(Iterator a, difference_type n) { return a += n; }
    friend Iterator operator+(difference_type n, Iterator a) { return a += n; }
    friend Iterator operator-(Iterator a, difference_type n) { return a -= n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }

   private:
    const EventList* list_ = nullptr;
    std::size_t at_ = 0;
  };

  TraceEvent& append(const TraceEvent& event) {
    if (chunks_.empty() || chunks_.back().size() == kChunk) chunks_.emplace_back();
    std::vector<TraceEvent>& last = chunks_.back();
    last.reserve(kChunk);  // a copy's has no room
    return last.emplace_back(event);
  }
  void clear() { chunks_.clear(); }
  // Without the events from the size-th on.
  void truncate(std::size_t size) {
    while (this->size() > size) {
      std::vector<TraceEvent>& last = chunks_.back();
      const std::size_t kept = (chunks_.size() - 1) * kChunk;
      if (kept >= size) {
        chunks_.pop_back();
      } else {
        last.erase(last.begin() + static_cast<std::ptrdiff_t>(size - kept), last.end());
      }
    }
  }
  bool empty() const { return chunks_.empty(); }
  std::size_t size() const {
    return empty() ? 0 : (chunks_.size() - 1) * kChunk + chunks_.back().size();
  }
  const TraceEvent& operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
  const TraceEvent& front() const { return chunks_.front().front(); }
  const TraceEvent& back() const { return chunks_.back().back(); }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  static constexpr std::size_t kChunk = 1024;

  std::vector<std::vector<TraceEvent>> chunks_;
};

}  // namespace zl
