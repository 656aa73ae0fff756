/// Goes through the elements of two arrays side by side and says what to do with each.
///
/// An element is known by its member `id`, or else by all of its bytes. Where an element is in the other array is looked
/// up in a table, so that n elements cost n steps; what the steps say is right however the elements are matched.
struct ElementWalk {
    enum Step {
        case same
        case change(Range<Int>, Range<Int>)
        /// The new element comes before the old one.
        case insert(Range<Int>)
        case remove
        /// The old elements are used up.
        case append(Range<Int>)
        /// The new elements are used up.
        case removeRest(count: Int)
    }

    private var before: ArraySlice<Range<Int>>
    private var after: ArraySlice<Range<Int>>
    /// Where each element is last; made when it is needed first.
    private var places: (before: [JSONName: Int], after: [JSONName: Int])?

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
        if oldBytes.hasSameBytes(as: newBytes) {
            before.removeFirst()
            after.removeFirst()
            return .same
        }
        // One to one: nothing could be gained by looking further.
        guard before.count > 1 || after.count > 1 else { return takeBoth(left, right) }
        let oldKey = Self.key(oldBytes)
        let newKey = Self.key(newBytes)
        if oldKey == newKey { return takeBoth(left, right) }
        let places = places ?? (Self.places(before, old), Self.places(after, new))
        self.places = places
        // How far each is away in the other array, when it is still to come there.
        let oldDistance = places.after[oldKey].map { $0 - after.startIndex }.flatMap { $0 > 0 ? $0 : nil }
        let newDistance = places.before[newKey].map { $0 - before.startIndex }.flatMap { $0 > 0 ? $0 : nil }
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

    private static func places(_ elements: ArraySlice<Range<Int>>, _ text: UnsafeRawBufferPointer) -> [JSONName: Int] {
        var places = Dictionary<JSONName, Int>(minimumCapacity: elements.count)
        for index in elements.indices {
            places[key(UnsafeRawBufferPointer(rebasing: text[elements[index]]))] = index
        }
        return places
    }

    /// What an element is known by.
    private static func key(_ element: UnsafeRawBufferPointer) -> JSONName {
        guard element.first == 0x7B else { return JSONName(element) }
        var cursor = JSONCursor(element)
        cursor.at = 1
        var isFirst = true
        while let name = try? cursor.name(&isFirst), let value = try? cursor.value(depth: 1) {
            if JSONName(name, in: cursor).says("id") { return JSONName(cursor.bytes(value)) }
        }
        return JSONName(element)
    }
}
