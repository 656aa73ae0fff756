/// Compares the elements of two arrays side by side and returns the required steps.
///
/// An element is identified by its member `id`, or by all of its bytes. A table maps elements to their positions in the other
/// array, so that n elements need n steps. The steps are correct for any matching of elements.
struct ArrayDiffCursor {
    /// A step of the comparison.
    enum Step {
        case same
        case change(Range<Int>, Range<Int>)
        /// The new element is inserted before the old one.
        case insert(Range<Int>)
        case remove
        /// The old elements are exhausted.
        case append(Range<Int>)
        /// The new elements are exhausted.
        case removeRest(count: Int)
    }

    private var before: ArraySlice<Range<Int>>
    private var after: ArraySlice<Range<Int>>
    /// The last position of each element, computed on demand.
    private var indices: (before: [JSONName: Int], after: [JSONName: Int])?

    init(before: ArraySlice<Range<Int>>, after: ArraySlice<Range<Int>>) {
        self.before = before
        self.after = after
    }

    mutating func next(_ old: UnsafeRawBufferPointer, _ new: UnsafeRawBufferPointer) -> Step? {
        guard let left = before.first else { return after.popFirst().map { .append($0) } }
        guard let right = after.first else {
            defer { before.removeAll() }
            return .removeRest(count: before.count)
        }
        let oldBytes = UnsafeRawBufferPointer(rebasing: old[left])
        let newBytes = UnsafeRawBufferPointer(rebasing: new[right])
        if oldBytes.hasSameBytes(newBytes) {
            before.removeFirst()
            after.removeFirst()
            return .same
        }
        // With one element on each side there is no better matching.
        guard before.count > 1 || after.count > 1 else { return takeBoth(left, right) }
        let oldKey = Self.key(oldBytes)
        let newKey = Self.key(newBytes)
        if oldKey == newKey { return takeBoth(left, right) }
        let indices = indices ?? (Self.indices(before, old), Self.indices(after, new))
        self.indices = indices
        // The distance of each element in the other array, if it is still ahead.
        let oldDistance = indices.after[oldKey].map { $0 - after.startIndex }.flatMap { $0 > 0 ? $0 : nil }
        let newDistance = indices.before[newKey].map { $0 - before.startIndex }.flatMap { $0 > 0 ? $0 : nil }
        switch (oldDistance, newDistance) {
        case (nil, nil): return takeBoth(left, right)
        case (let oldDistance?, let newDistance?) where oldDistance > newDistance: return takeOld()
        case (nil, _?): return takeOld()
        case (_?, _): return takeNew(right)
        }
    }

    private mutating func takeBoth(_ left: Range<Int>, _ right: Range<Int>) -> Step {
        before.removeFirst()
        after.removeFirst()
        return .change(left, right)
    }

    private mutating func takeOld() -> Step {
        before.removeFirst()
        return .remove
    }

    private mutating func takeNew(_ right: Range<Int>) -> Step {
        after.removeFirst()
        return .insert(right)
    }

    private static func indices(_ elements: ArraySlice<Range<Int>>, _ text: UnsafeRawBufferPointer) -> [JSONName: Int] {
        var indices = Dictionary<JSONName, Int>(minimumCapacity: elements.count)
        for index in elements.indices {
            indices[key(UnsafeRawBufferPointer(rebasing: text[elements[index]]))] = index
        }
        return indices
    }

    /// Returns the identity of an element.
    private static func key(_ element: UnsafeRawBufferPointer) -> JSONName {
        guard element.first == 0x7B else { return JSONName(element) }
        var cursor = JSONCursor(element)
        cursor.at = 1
        var isFirst = true
        while let name = try? cursor.name(&isFirst), let value = try? cursor.value(depth: 1) {
            if JSONName(name, in: cursor).isEqual("id") { return JSONName(cursor.bytes(value)) }
        }
        return JSONName(element)
    }
}
